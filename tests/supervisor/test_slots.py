import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor import FairSlots, TenantSlots


class Caller:
    """A ticket that writes down when it is granted."""

    def __init__(self, tenant: str, log: "list[Caller] | None" = None) -> None:
        self.tenant = tenant
        self.log = [] if log is None else log

    def granted(self) -> None:
        self.log.append(self)


def callers(tenant: str, count: int, log: list[Caller]) -> list[Caller]:
    return [Caller(tenant, log) for _ in range(count)]


def drain(slots: FairSlots, running: Caller, log: list[Caller], count: int) -> str:
    """Release one after the other; return the tenants in the order in which they were granted."""
    start = len(log)
    for _ in range(count):
        slots.release(running)
        running = log[-1]
    return "".join(caller.tenant for caller in log[start:])


def test_a_free_slot_is_granted_at_once_without_a_callback() -> None:
    slots, caller = FairSlots(1), Caller("a")

    assert slots.request(caller)
    assert caller.log == []


def test_a_released_slot_goes_to_the_waiter_before_release_returns() -> None:
    slots, first, second = FairSlots(1), Caller("a"), Caller("a")
    slots.request(first)

    assert not slots.request(second)
    assert slots.release(first)
    assert [second] == second.log


def test_within_a_tenant_the_first_to_come_is_the_first_served() -> None:
    slots, log, first = FairSlots(1), list[Caller](), Caller("a")
    slots.request(first)
    waiting = callers("a", 5, log)
    for caller in waiting:
        slots.request(caller)

    drain(slots, first, log, 5)

    assert waiting == log


def test_a_newcomer_waits_for_at_most_one_slot_of_a_tenant_with_a_long_queue() -> None:
    slots, log, first = FairSlots(1), list[Caller](), Caller("a")
    slots.request(first)
    for caller in callers("a", 500, log):
        slots.request(caller)
    drain(slots, first, log, 100)

    slots.request(Caller("b", log))

    assert "b" in drain(slots, log[-1], log, 2)


def test_weights_share_the_slots_in_their_proportion() -> None:
    slots, log, first = FairSlots(1, weights={"a": 3.0}), list[Caller](), Caller("x")
    slots.request(first)
    for caller in callers("a", 100, log) + callers("b", 100, log):
        slots.request(caller)

    order = drain(slots, first, log, 40)

    assert Counter(order) == {"a": 30, "b": 10}


def test_a_tenant_that_leaves_and_comes_back_gains_nothing_by_it() -> None:
    slots, log = FairSlots(1, weights={"heavy": 4.0}), list[Caller]()
    running = Caller("x")
    slots.request(running)
    for caller in callers("heavy", 200, log):
        slots.request(caller)
    slots.request(Caller("light", log))
    for _ in range(100):
        slots.release(running)
        running = log[-1]
        if running.tenant == "light":
            # Never more than one request at a time, so it is idle while it runs.
            slots.request(Caller("light", log))

    assert Counter(caller.tenant for caller in log)["light"] == pytest.approx(20, abs=1)


def test_a_stream_of_new_tenants_does_not_starve_one_that_waits() -> None:
    slots, log, running = FairSlots(1), list[Caller](), Caller("x")
    slots.request(running)
    slots.request(Caller("patient", log))
    slots.request(Caller("patient", log))
    for number in range(10):
        slots.request(Caller(f"new {number}", log))
        slots.release(running)
        running = log[-1]

    assert [caller.tenant for caller in log].count("patient") == 2


def test_one_that_requeues_in_front_is_the_next_of_its_tenant() -> None:
    slots, log = FairSlots(1), list[Caller]()
    parked, other = Caller("a", log), Caller("a", log)
    slots.request(parked)
    slots.request(other)
    third = Caller("a", log)
    slots.request(third)

    slots.release(parked)
    assert not slots.requeue_front(parked)
    slots.release(other)

    assert [other, parked] == log


def test_one_that_requeues_into_a_free_slot_has_it_at_once() -> None:
    slots, parked = FairSlots(1), Caller("a")
    slots.request(parked)
    slots.release(parked)

    assert slots.requeue_front(parked)


def test_a_withdrawn_request_is_never_granted() -> None:
    slots, log, first = FairSlots(1), list[Caller](), Caller("a")
    slots.request(first)
    gone, stays = callers("a", 2, log)
    slots.request(gone)
    slots.request(stays)

    assert slots.withdraw(gone)
    assert not slots.withdraw(gone)
    slots.release(first)

    assert [stays] == log


def test_releasing_twice_frees_one_slot_only() -> None:
    slots, first, second = FairSlots(1), Caller("a"), Caller("a")
    slots.request(first)
    assert slots.release(first)
    slots.request(second)

    assert not slots.release(first)
    assert slots.statistics().running == 1


def test_asking_again_changes_nothing() -> None:
    slots, first, second = FairSlots(1), Caller("a"), Caller("a")
    assert slots.request(first)
    assert slots.request(first)
    assert not slots.request(second)
    assert not slots.request(second)

    assert (
        slots.statistics().running,
        slots.statistics().waiting,
        slots.statistics().requested,
    ) == (1, 1, 2)


def test_a_tenant_at_its_own_capacity_waits_while_others_use_the_free_slots() -> None:
    slots, log = FairSlots(3, tenant_capacity=1), list[Caller]()
    first, second, other = Caller("a", log), Caller("a", log), Caller("b", log)

    assert [slots.request(first), slots.request(second), slots.request(other)] == [True, False, True]
    slots.release(other)
    assert log == []
    slots.release(first)
    assert [second] == log


def test_a_callback_that_raises_loses_its_slot_to_the_next(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Caller):
        def granted(self) -> None:
            raise ValueError("no")

    slots, first, broken, last = FairSlots(1), Caller("a"), Broken("a"), Caller("a")
    for caller in (first, broken, last):
        slots.request(caller)

    slots.release(first)

    assert [last] == last.log
    assert slots.statistics().callback_errors == 1
    assert "granted() of" in caplog.text


def test_callbacks_that_release_at_once_do_not_recurse() -> None:
    slots = FairSlots(1)

    class Instant(Caller):
        def granted(self) -> None:
            super().granted()
            slots.release(self)

    log = list[Caller]()
    first = Caller("a")
    slots.request(first)
    for number in range(5_000):
        slots.request(Instant(f"t{number % 7}", log))

    slots.release(first)

    assert len(log) == 5_000
    assert slots.statistics().running == 0


def test_a_callback_may_ask_for_another_slot() -> None:
    slots, log = FairSlots(2), list[Caller]()
    answers = list[bool]()

    class Greedy(Caller):
        def granted(self) -> None:
            answers.append(slots.request(Caller("b", log)))

    first, second = Caller("a"), Caller("a")
    slots.request(first)
    slots.request(second)
    slots.request(Greedy("a"))
    slots.release(first)
    slots.release(second)

    assert answers == [False]
    assert [caller.tenant for caller in log] == ["b"]


def test_a_callback_that_gives_its_slot_up_and_asks_again_does_not_overtake_those_that_wait() -> None:
    slots, log = FairSlots(1), list[Caller]()
    again = Caller("a", log)

    class Fickle(Caller):
        def granted(self) -> None:
            slots.release(self)
            assert not slots.request(again)

    first, waiter = Caller("a"), Caller("a", log)
    for caller in (first, Fickle("a"), waiter):
        slots.request(caller)
    slots.release(first)
    slots.release(waiter)

    assert [waiter, again] == log


def test_requests_taken_back_leave_no_memory_behind() -> None:
    slots = FairSlots(1)
    slots.request(Caller("a"))
    slots.request(Caller("b"))
    for number in range(1_000):
        caller = Caller(f"t{number}")
        slots.request(caller)
        slots.withdraw(caller)

    assert {"a": TenantSlots(1, 0), "b": TenantSlots(0, 1)} == slots.statistics().tenants
    # The heap is an implementation detail, but its growth would be a leak that nothing else shows.
    assert len(slots._heap) <= 20  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("capacity", "options"),
    [
        (0, {}),
        (1, {"tenant_capacity": 0}),
        (1, {"weights": {"a": -1.0}}),
        (1, {"weights": {"a": math.nan}}),
        (True, {}),
    ],
)
def test_slots_that_cannot_work_are_refused(capacity: int, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="give"):
        FairSlots(capacity, **options)


@given(
    st.lists(st.integers(1, 8), min_size=2, max_size=6),
    st.integers(1, 4),
    st.integers(10, 80),
)
def test_two_tenants_that_wait_all_the_time_get_slots_by_their_weights(
    weights: list[int], capacity: int, grants: int
) -> None:
    log = list[Caller]()
    slots = FairSlots(capacity, weights={str(number): weight for number, weight in enumerate(weights)})
    running = callers("x", capacity, log)
    for caller in running:
        slots.request(caller)
    for number in range(len(weights)):
        for caller in callers(str(number), grants, log):
            slots.request(caller)
    for _ in range(grants):
        slots.release(running.pop(0))
        running.append(log[-1])
    served = Counter(caller.tenant for caller in log)

    shares = [served[str(number)] / weight for number, weight in enumerate(weights)]
    for mine, weight in zip(shares, weights, strict=True):
        for other, other_weight in zip(shares, weights, strict=True):
            assert mine - other <= 1 / weight + 1 / other_weight + 1e-9


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 50), st.integers(1, 4))
def test_a_noisy_tenant_delays_another_by_a_constant_number_of_slots(
    noisy: int, quiet: int, before: int, capacity: int
) -> None:
    log = list[Caller]()
    slots = FairSlots(capacity, weights={"noisy": noisy, "quiet": quiet})
    running = callers("noisy", capacity, log)
    for caller in running + callers("noisy", before + 100, log):
        slots.request(caller)
    for _ in range(before):
        slots.release(running.pop(0))
        running.append(log[-1])

    slots.request(Caller("quiet", log))
    waited = 0
    while log[-1:] == [] or log[-1].tenant != "quiet":
        slots.release(running.pop(0))
        running.append(log[-1])
        waited += 1

    # Its own grant is one of them.
    assert waited <= noisy // quiet + 2


TENANTS = ("a", "b", "c")


class SlotsMachine(RuleBasedStateMachine):
    """Any order of requests, releases and withdrawals, against a plain list of what must be."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = FairSlots(3, tenant_capacity=2, weights={"a": 2.5})
        self.running: list[Caller] = []
        self.waiting: list[Caller] = []
        self.granted: list[Caller] = []
        self.parked: list[Caller] = []
        self.requested = self.withdrawn = self.answers = 0

    def settle(self) -> None:
        """Take over what was granted meanwhile; each ticket must have been waiting."""
        for caller in self.granted:
            self.waiting.remove(caller)
            self.running.append(caller)
            self.answers += 1
        self.granted.clear()

    def note(self, caller: Caller, *, now: bool) -> None:
        self.requested += 1
        self.answers += now
        (self.running if now else self.waiting).append(caller)

    @rule(tenant=st.sampled_from(TENANTS))
    def request(self, tenant: str) -> None:
        caller = Caller(tenant, self.granted)
        self.note(caller, now=self.slots.request(caller))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), park=st.booleans())
    def release(self, data: st.DataObject, park: bool) -> None:
        caller = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        assert self.slots.release(caller)
        self.settle()
        if park:
            self.parked.append(caller)

    @precondition(lambda self: self.parked)
    @rule()
    def requeue(self) -> None:
        caller = self.parked.pop()
        self.note(caller, now=self.slots.requeue_front(caller))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        caller = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        assert self.slots.withdraw(caller)
        self.withdrawn += 1

    @invariant()
    def no_bound_is_passed(self) -> None:
        assert len(self.running) <= 3
        assert all(held <= 2 for held in Counter(caller.tenant for caller in self.running).values())

    @invariant()
    def nobody_waits_for_a_slot_that_it_may_have(self) -> None:
        if len(self.running) < 3:
            held = Counter(caller.tenant for caller in self.running)
            assert all(held[caller.tenant] == 2 for caller in self.waiting)

    @invariant()
    def the_counters_add_up(self) -> None:
        statistics = self.slots.statistics()
        assert (len(self.running), len(self.waiting)) == (statistics.running, statistics.waiting)
        assert (self.requested, self.answers, self.withdrawn) == (
            statistics.requested,
            statistics.granted,
            statistics.withdrawn,
        )
        running, waiting = (Counter(c.tenant for c in callers) for callers in (self.running, self.waiting))
        assert statistics.tenants == {
            tenant: TenantSlots(running[tenant], waiting[tenant]) for tenant in running | waiting
        }


SlotsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_slots_keep_their_promises_in_any_order_of_calls = SlotsMachine.TestCase
