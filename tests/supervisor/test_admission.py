from typing import Any

import pytest

from exeunt.actors.errors import InvalidConfiguration, Overloaded
from exeunt.supervisor import Admission


class Turn:
    def __init__(self, tenant: str = "a") -> None:
        self.tenant = tenant

    def granted(self) -> None:
        pass


def test_a_message_is_refused_when_running_and_waiting_turns_fill_the_host() -> None:
    admission = Admission(running=1, waiting=1)
    first, second = Turn("a"), Turn("b")
    admission.offer("a")
    admission.request(first)
    admission.offer("b")
    admission.request(second)

    with pytest.raises(Overloaded, match="2 turns running or waiting") as refusal:
        admission.offer("c", session_id="s1")

    assert refusal.value.session_id == "s1"
    admission.release(first)
    admission.offer("c")


def test_a_tenant_is_refused_beyond_its_share_while_others_are_let_in() -> None:
    admission = Admission(running=1, waiting=9, tenant_share=2)
    for _ in range(2):
        admission.offer("noisy")
        admission.request(Turn("noisy"))

    with pytest.raises(Overloaded, match="its share is 2"):
        admission.offer("noisy")

    admission.offer("quiet")


def test_a_share_counts_running_and_waiting_turns_together() -> None:
    admission = Admission(running=10, waiting=0, tenant_share=1)
    turn = Turn("a")
    admission.request(turn)

    with pytest.raises(Overloaded):
        admission.offer("a")

    admission.release(turn)
    admission.offer("a")


def test_a_turn_that_follows_from_an_accepted_one_waits_beyond_the_bound_and_is_not_refused() -> None:
    admission = Admission(running=1, waiting=0, tenant_share=1)
    admission.request(Turn())

    assert not admission.request(Turn())
    assert not admission.requeue_front(Turn())
    assert admission.statistics().waiting == 2


def test_the_decisions_are_counted_by_what_refused() -> None:
    admission = Admission(running=1, waiting=1, tenant_share=1)
    admission.offer("a")
    admission.request(Turn("a"))
    with pytest.raises(Overloaded):
        admission.offer("a")
    admission.offer("b")
    admission.request(Turn("b"))
    with pytest.raises(Overloaded):
        admission.offer("c")

    statistics = admission.statistics()

    assert (
        statistics.accepted,
        statistics.refused,
        statistics.refused_host,
        statistics.refused_tenant,
    ) == (2, 2, 1, 1)
    assert (
        statistics.running,
        statistics.waiting,
        statistics.requested,
        statistics.granted,
    ) == (1, 1, 2, 1)


def test_asking_about_a_tenant_leaves_nothing_behind() -> None:
    admission = Admission(running=1, waiting=1, tenant_share=1)
    for number in range(100):
        admission.offer(f"tenant {number}")

    assert admission.statistics().tenants == {}


@pytest.mark.parametrize(
    "options",
    [
        {"running": 0, "waiting": 1},
        {"running": 1, "waiting": -1},
        {"running": 1, "waiting": 1, "tenant_share": 0},
        {"running": 1, "waiting": 1, "weights": {"a": 0.0}},
        {"running": 1, "waiting": 1, "weights": {"a": float("inf")}},
        {"running": 1.5, "waiting": 1},
    ],
)
def test_a_bound_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="give"):
        Admission(**options)
