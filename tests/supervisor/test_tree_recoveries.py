"""Failures that meet: while a child starts, stops or restarts, in subtrees, and in crowds."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.errors import ChildStartFailed, InvalidConfiguration, RestartIntensityExceeded
from exeunt.supervisor import (
    ChildEvent,
    ChildSpec,
    RestartIntensity,
    Supervisor,
    open_supervisor,
)
from tests.supervisor.tree_support import OFTEN, PLAIN, Stage


async def slow(*, task_status: "trio.TaskStatus[None]") -> None:
    """A child that takes 4 s to start."""
    await trio.sleep(4)
    task_status.started()
    await trio.sleep_forever()


async def test_failures_that_wait_for_a_start_to_finish_are_cured_by_one_recovery(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()

    async with (
        open_supervisor(stage.cast("abc"), strategy="rest_for_one", backoff=PLAIN) as supervisor,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(supervisor.start_child, ChildSpec("slow", slow))
        await trio.sleep(1)
        await stage.fail("c")
        await trio.sleep(1)
        stage.log.clear()
        await stage.fail("a")
        # Until 4 s the start holds up both recoveries, then there is one back-off of 1 s.
        await trio.sleep(3.5)

        assert stage.said() == "-a -b +a +b +c"


async def test_siblings_are_restarted_even_if_the_failed_child_is_stopped_before(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()

    async with (
        open_supervisor(stage.cast("abc"), strategy="one_for_all", backoff=PLAIN) as supervisor,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(supervisor.start_child, ChildSpec("slow", slow))
        await trio.sleep(1)
        await stage.fail("a")
        await stage.fail("b")
        await supervisor.stop_child("a")
        await trio.sleep(10)

        assert stage.said() == "-b -c +b +c"


async def test_a_temporary_child_is_not_started_again_for_the_sake_of_a_sibling(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()
    cast = [ChildSpec("a", stage.actor("a")), ChildSpec("b", stage.actor("b"), restart="temporary")]
    async with open_supervisor(cast, strategy="one_for_all", backoff=PLAIN) as supervisor:
        await stage.fail("a")
        await trio.sleep(1.5)

        assert stage.said() == "-a -b +a"
        assert supervisor.statistics().children == 1


async def test_a_group_whose_second_child_fails_again_while_it_restarts_is_restarted_as_a_whole(
    autojump_clock: MockClock,
) -> None:
    stage, begun = Stage(), 0

    async def flaky(*, task_status: "trio.TaskStatus[None]") -> None:
        nonlocal begun
        begun += 1
        stage.log.append(f"+flaky {begun}")
        if begun == 2:
            raise ValueError("not yet")
        task_status.started()
        await trio.sleep_forever()

    a, c = stage.cast("ac")
    async with open_supervisor(
        [a, ChildSpec("flaky", flaky), c], strategy="one_for_all", backoff=PLAIN, intensity=OFTEN
    ):
        await stage.fail("a")
        await trio.sleep(10)

        assert stage.said() == "-a -c +a +flaky 2 -a +a +flaky 3 +c"


async def test_a_child_that_fails_while_another_is_being_stopped_is_restarted(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()

    async def slow(*, stopping: trio.Event) -> None:
        await stopping.wait()
        await trio.sleep(4)

    async with open_supervisor(stage.cast("a"), backoff=PLAIN) as supervisor, trio.open_nursery() as nursery:
        await supervisor.start_child(ChildSpec("slow", slow))
        nursery.start_soon(supervisor.stop_child, "slow")
        await wait_all_tasks_blocked()
        await stage.fail("a")
        await trio.sleep(2)

        assert stage.said() == "-a +a"
        assert (supervisor.statistics().running, supervisor.statistics().stopping) == (1, 1)


async def test_a_group_member_that_fails_while_it_is_stopped_for_a_sibling_is_no_new_failure(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()

    async def sore_loser(*, task_status: "trio.TaskStatus[None]") -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("at the end")

    async with open_supervisor(
        [*stage.cast("a"), ChildSpec("loser", sore_loser)],
        strategy="one_for_all",
        backoff=PLAIN,
        intensity=RestartIntensity(1, 5.0),
    ) as supervisor:
        await stage.fail("a")
        await trio.sleep(2)

        assert (supervisor.statistics().running, supervisor.statistics().failures) == (2, 1)


async def test_an_exhausted_subtree_is_a_failure_of_one_child_of_its_parent(
    autojump_clock: MockClock,
) -> None:
    crashes = 0

    async def crash() -> None:
        nonlocal crashes
        await trio.lowlevel.checkpoint()
        crashes += 1
        raise ValueError("crash")

    inner = Supervisor([ChildSpec("crash", crash)], name="inner", intensity=RestartIntensity(1, 5.0))
    outer = Supervisor([ChildSpec("inner", inner.run)], name="outer", intensity=RestartIntensity(2, 5.0))
    with pytest.raises(
        RestartIntensityExceeded, match="'outer' gave up after a failure of child 'inner'"
    ) as caught:
        await outer.run()

    assert isinstance(caught.value.__cause__, RestartIntensityExceeded)
    assert str(caught.value.__cause__.__cause__) == "crash"
    # Each of the three lives of the inner supervisor has a first start and one restart.
    assert crashes == 6
    assert (inner.statistics().starts, inner.statistics().gave_up) == (3, 3)


async def test_a_subtree_that_restarts_begins_with_its_static_children_only(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()
    inner = Supervisor(stage.cast("a"), name="inner", intensity=RestartIntensity(0, 5.0))
    async with open_supervisor([ChildSpec("inner", inner.run)], backoff=PLAIN):
        await inner.start_child(ChildSpec("b", stage.actor("b")))
        await stage.fail("a")
        await trio.sleep(2)

        assert stage.said() == "-a -b +a"


async def test_one_child_of_a_thousand_restarts_and_the_others_do_not_notice(
    autojump_clock: MockClock,
) -> None:
    stage = Stage()
    async with open_supervisor(backoff=PLAIN) as supervisor:
        for number in range(1_000):
            await supervisor.start_child(ChildSpec(str(number), stage.actor(str(number))))
        await stage.fail("500")
        await trio.sleep(2)

        assert stage.said() == "-500 +500"
        assert supervisor.statistics().running == 1_000
        stage.log.clear()

    assert [f"-{number}" for number in reversed(range(1_000))] == stage.log


async def test_a_thousand_children_that_fail_together_are_all_restarted(autojump_clock: MockClock) -> None:
    stage = Stage()
    async with open_supervisor(backoff=PLAIN, intensity=RestartIntensity(1_000, 5.0)) as supervisor:
        for number in range(1_000):
            await supervisor.start_child(ChildSpec(str(number), stage.actor(str(number))))
        await stage.fail(*(str(number) for number in range(1_000)))
        assert supervisor.statistics().waiting == 1_000
        await trio.sleep(2)

        assert supervisor.statistics().running == 1_000


async def test_an_observer_that_raises_is_counted_and_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def observer(event: ChildEvent) -> None:
        raise ValueError("observer")

    stage = Stage()
    async with open_supervisor(stage.cast("a"), observer=observer) as supervisor:
        assert (supervisor.statistics().running, supervisor.statistics().observer_errors) == (1, 1)

    assert "the observer of supervisor 'supervisor' raised at started of 'a'" in caplog.text


async def test_what_is_no_exception_takes_the_supervisor_down_and_stops_the_others() -> None:
    stage = Stage()

    async def leave() -> None:
        await trio.lowlevel.checkpoint()
        raise SystemExit(3)

    with pytest.RaisesGroup(SystemExit, flatten_subgroups=True):
        await Supervisor([*stage.cast("a"), ChildSpec("leave", leave)]).run()

    assert stage.said() == "+a -a"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Supervisor(strategy="simple_one_for_one"), id="strategy"),
        pytest.param(
            lambda: Supervisor([ChildSpec("a", trio.sleep), ChildSpec("a", trio.sleep)]), id="twice"
        ),
        pytest.param(lambda: ChildSpec("", trio.sleep), id="name"),
        pytest.param(lambda: ChildSpec("a", "no function"), id="task"),  # type: ignore[arg-type]
        pytest.param(lambda: ChildSpec("a", trio.sleep, restart="sometimes"), id="restart"),
        pytest.param(lambda: ChildSpec("a", trio.sleep, grace=-1), id="grace"),
        pytest.param(lambda: ChildSpec("a", trio.sleep, start_timeout=0), id="start_timeout"),
    ],
)
def test_a_supervisor_that_cannot_work_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidConfiguration):
        make()


async def test_a_static_child_that_does_not_start_ends_the_run_and_those_before_it() -> None:
    stage = Stage()

    async def broken(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.lowlevel.checkpoint()
        raise ValueError("no port")

    with pytest.raises(ChildStartFailed, match="no port"):
        await Supervisor([*stage.cast("ab"), ChildSpec("broken", broken), *stage.cast("c")]).run()

    assert stage.said() == "+a +b -b -a"
