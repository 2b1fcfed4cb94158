"""Children that come, go, and are restarted by order; children without a task."""

import itertools

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.errors import (
    ChildExists,
    ChildNotFound,
    ChildStartFailed,
    InvalidConfiguration,
    SupervisorClosed,
    SupervisorError,
)
from exeunt.supervisor import (
    Backoff,
    ChildEvent,
    ChildSpec,
    ChildState,
    RestartIntensity,
    Supervisor,
    open_supervisor,
)

PLAIN = Backoff(first=1.0, maximum=8.0, factor=2.0, jitter=0.0)


async def forever() -> None:
    await trio.sleep_forever()


async def test_a_first_start_that_raises_is_an_error_of_the_caller_and_no_reason_to_restart() -> None:
    async def broken(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.lowlevel.checkpoint()
        raise ValueError("no port")

    async with open_supervisor() as supervisor:
        with pytest.raises(ChildStartFailed, match="'broken' raised ValueError") as caught:
            await supervisor.start_child(ChildSpec("broken", broken))

        assert str(caught.value.__cause__) == "no port"
        assert supervisor.statistics().children == 0
        await supervisor.start_child(ChildSpec("broken", forever))


async def test_a_child_that_returns_without_saying_that_it_started_has_not_started() -> None:
    async def silent(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.lowlevel.checkpoint()

    async with open_supervisor() as supervisor:
        with pytest.raises(ChildStartFailed, match="returned without calling started"):
            await supervisor.start_child(ChildSpec("silent", silent))


async def test_a_child_that_hangs_in_its_start_is_cancelled_after_its_time(autojump_clock: MockClock) -> None:
    async def hang(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.sleep_forever()

    async with open_supervisor() as supervisor:
        start = trio.current_time()
        with pytest.raises(ChildStartFailed, match=r"did not call started\(\) within 3 s"):
            await supervisor.start_child(ChildSpec("hang", hang, start_timeout=3.0))

        assert trio.current_time() - start == pytest.approx(3.0)
        assert supervisor.statistics().children == 0


async def test_a_child_that_says_it_started_while_its_start_is_cancelled_is_too_late(
    autojump_clock: MockClock,
) -> None:
    async def late(*, task_status: "trio.TaskStatus[None]") -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(4)
        task_status.started()

    async with open_supervisor() as supervisor:
        with pytest.raises(ChildStartFailed, match="did not call started"):
            await supervisor.start_child(ChildSpec("late", late, start_timeout=3.0))


async def test_the_start_time_out_does_not_run_on_after_the_start(autojump_clock: MockClock) -> None:
    async def child(*, task_status: "trio.TaskStatus[None]") -> None:
        task_status.started()
        await trio.sleep_forever()

    async with open_supervisor() as supervisor:
        await supervisor.start_child(ChildSpec("child", child, start_timeout=3.0))
        await trio.sleep(10)

        assert (supervisor.statistics().running, supervisor.statistics().restarts) == (1, 0)


async def test_saying_twice_that_it_started_is_an_error_in_the_child() -> None:
    async def eager(*, task_status: "trio.TaskStatus[int]") -> None:
        await trio.lowlevel.checkpoint()
        task_status.started(1)
        task_status.started(2)

    async with open_supervisor() as supervisor:
        child = await supervisor.start_child(ChildSpec("eager", eager, restart="temporary"))
        await wait_all_tasks_blocked()

        assert child.value == 1
        assert isinstance(child.last_error, RuntimeError)


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all"])
async def test_a_child_that_is_stopped_before_it_has_started_was_never_there(
    strategy: str, autojump_clock: MockClock
) -> None:
    async def hang(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.sleep_forever()

    refused: list[str] = []

    async def start(name: str) -> None:
        with pytest.raises(ChildStartFailed, match="was stopped before it had started"):
            await supervisor.start_child(ChildSpec(name, hang))
        refused.append(name)

    async with open_supervisor(strategy=strategy) as supervisor, trio.open_nursery() as nursery:
        nursery.start_soon(start, "first")
        await wait_all_tasks_blocked()
        # In a group this one waits until the first has started.
        nursery.start_soon(start, "second")
        await wait_all_tasks_blocked()
        await supervisor.stop_child("second")
        await supervisor.stop_child("first")
        await wait_all_tasks_blocked()

        assert sorted(refused) == ["first", "second"]
        assert supervisor.statistics().children == 0


async def test_a_restart_that_does_not_start_is_a_failure_and_is_tried_again(
    autojump_clock: MockClock,
) -> None:
    begun: list[float] = []

    async def flaky(*, task_status: "trio.TaskStatus[None]") -> None:
        begun.append(trio.current_time())
        if len(begun) in {2, 3}:
            raise ValueError("not yet")
        task_status.started()
        if len(begun) == 1:
            raise ValueError("first")
        await trio.sleep_forever()

    async with open_supervisor(backoff=PLAIN) as supervisor:
        child = await supervisor.start_child(ChildSpec("flaky", flaky))
        await trio.sleep(20)

        assert [b - a for a, b in itertools.pairwise(begun)] == pytest.approx([1.0, 2.0, 4.0])
        assert (child.state, child.restarts) == (ChildState.RUNNING, 1)
        assert isinstance(child.last_error, ChildStartFailed)


async def test_a_cancelled_start_takes_its_child_back(autojump_clock: MockClock) -> None:
    async def hang(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.sleep_forever()

    async with open_supervisor() as supervisor:
        with trio.move_on_after(1) as scope:
            await supervisor.start_child(ChildSpec("hang", hang))
        await wait_all_tasks_blocked()

        assert scope.cancelled_caught
        assert supervisor.statistics().children == 0


async def test_a_name_is_taken_until_its_child_has_ended() -> None:
    async with open_supervisor() as supervisor:
        await supervisor.start_child(ChildSpec("a", forever))
        with pytest.raises(ChildExists, match="'a'"):
            await supervisor.start_child(ChildSpec("a", forever))
        await supervisor.stop_child("a")
        await supervisor.start_child(ChildSpec("a", forever))


async def test_a_stopped_child_is_forgotten_whatever_its_restart_type() -> None:
    async with open_supervisor() as supervisor:
        child = await supervisor.start_child(ChildSpec("a", forever))
        await supervisor.stop_child("a")

        assert ChildState.ENDED is child.state
        with pytest.raises(ChildNotFound, match="'a'"):
            await supervisor.stop_child("a")


async def test_stopping_a_child_in_its_back_off_ends_it_at_once(autojump_clock: MockClock) -> None:
    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    async with open_supervisor(backoff=PLAIN) as supervisor:
        await supervisor.start_child(ChildSpec("crash", crash))
        await wait_all_tasks_blocked()
        assert supervisor.statistics().waiting == 1
        await supervisor.stop_child("crash")
        await trio.sleep(10)

        assert (supervisor.statistics().children, supervisor.statistics().restarts) == (0, 0)


async def test_a_cancelled_stop_gives_up_the_wait_and_the_child_still_ends(autojump_clock: MockClock) -> None:
    async def slow(*, stopping: trio.Event) -> None:
        await trio.sleep_forever()

    async with open_supervisor() as supervisor:
        child = await supervisor.start_child(ChildSpec("slow", slow, grace=3.0))
        with trio.move_on_after(1):
            await supervisor.stop_child("slow")
        states = [child.state]
        await trio.sleep(2.5)
        states.append(child.state)

        assert states == [ChildState.STOPPING, ChildState.ENDED]


async def test_a_child_may_stop_itself() -> None:
    came_back = False

    async def child(supervisor: Supervisor) -> None:
        nonlocal came_back
        await supervisor.stop_child("child")
        came_back = True

    async with open_supervisor() as supervisor:
        await supervisor.start_child(ChildSpec("child", child, args=(supervisor,)))
        await wait_all_tasks_blocked()

        assert supervisor.statistics().children == 0
        assert not came_back


async def test_a_restart_by_order_stops_and_starts_the_child_without_counting_towards_the_intensity() -> None:
    async with open_supervisor(intensity=RestartIntensity(0, 5.0)) as supervisor:
        child = await supervisor.start_child(ChildSpec("a", forever))
        first = child.run
        assert child is await supervisor.restart_child("a")

        assert (child.state, child.restarts) == (ChildState.RUNNING, 1)
        assert first is not child.run


async def test_a_restart_by_order_does_not_wait_for_the_back_off(autojump_clock: MockClock) -> None:
    begun: list[float] = []

    async def child() -> None:
        begun.append(trio.current_time())
        if len(begun) == 1:
            raise ValueError
        await trio.sleep_forever()

    async with open_supervisor(backoff=PLAIN) as supervisor:
        await supervisor.start_child(ChildSpec("child", child))
        await wait_all_tasks_blocked()
        await supervisor.restart_child("child")
        await trio.sleep(10)

        assert [begun[1] - begun[0]] == pytest.approx([0.0])
        assert len(begun) == 2


async def test_a_child_may_restart_itself() -> None:
    begun = 0

    async def child(supervisor: Supervisor) -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            await supervisor.restart_child("child")
        await trio.sleep_forever()

    async with open_supervisor() as supervisor:
        await supervisor.start_child(ChildSpec("child", child, args=(supervisor,)))
        await wait_all_tasks_blocked()

        assert (begun, supervisor.statistics().running) == (2, 1)


async def test_a_restart_by_order_that_does_not_start_says_so(autojump_clock: MockClock) -> None:
    begun = 0

    async def child(*, task_status: "trio.TaskStatus[None]") -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            raise ValueError("no port")
        task_status.started()
        await trio.sleep_forever()

    async with open_supervisor(backoff=PLAIN) as supervisor:
        await supervisor.start_child(ChildSpec("child", child))
        with pytest.raises(ChildStartFailed, match="did not start again"):
            await supervisor.restart_child("child")
        await trio.sleep(2)

        assert (begun, supervisor.statistics().running) == (3, 1)


async def test_an_order_that_restarts_a_failed_child_first_leaves_its_recovery_nothing_to_do(
    autojump_clock: MockClock,
) -> None:
    begun = 0

    async def child(*, task_status: "trio.TaskStatus[None]") -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            await trio.sleep(4)
            raise ValueError("no port")
        task_status.started()
        await trio.sleep_forever()

    async def refused() -> None:
        with pytest.raises(ChildStartFailed):
            await supervisor.restart_child("child")

    async with open_supervisor(backoff=PLAIN) as supervisor, trio.open_nursery() as nursery:
        await supervisor.start_child(ChildSpec("child", child))
        nursery.start_soon(refused)
        await trio.sleep(1)
        # Waits for the first order, and so stands before the recovery that its failure brings.
        await supervisor.restart_child("child")
        await trio.sleep(10)

        assert begun == 3


async def test_a_supervisor_that_does_not_run_takes_no_orders() -> None:
    supervisor = Supervisor()
    supervisor.stop()

    with pytest.raises(SupervisorClosed, match="does not run"):
        await supervisor.start_child(ChildSpec("a", forever))
    async with open_supervisor() as other:
        other.stop()
        with pytest.raises(SupervisorClosed, match="shutting down"):
            await other.start_child(ChildSpec("a", forever))


async def test_a_supervisor_runs_once_at_a_time() -> None:
    async with open_supervisor() as supervisor:
        with pytest.raises(SupervisorError, match="runs already"):
            await supervisor.run()


async def test_a_virtual_child_gets_its_delays_and_is_let_go_when_it_fails_too_often(
    autojump_clock: MockClock,
) -> None:
    events: list[ChildEvent] = []
    async with open_supervisor(backoff=PLAIN, observer=events.append) as supervisor:
        one, other = supervisor.adopt("one"), supervisor.adopt("other")
        delays: list[float | None] = []
        for _ in range(4):
            delays.append(one.failed(ValueError()))
            if delays[-1] is not None:
                one.restarted()

        assert delays == [1.0, 2.0, 4.0, None]
        assert other.failed(ValueError()) == 1.0
        assert supervisor.statistics().virtual == 1
        assert ["started", *["failed", "restarted"] * 3, "failed", "gave_up"] == [
            event.kind for event in events if event.child == "one"
        ]
        other.ended()
        other.ended()
        assert supervisor.statistics().virtual == 0


async def test_a_virtual_child_is_stopped_in_its_place_of_the_order(autojump_clock: MockClock) -> None:
    log: list[str] = []

    async def real(name: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append(name)

    async def stop() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append(f"virtual after {trio.current_time() - start:g} s")

    async with open_supervisor() as supervisor:
        await supervisor.start_child(ChildSpec("first", real, args=("first",)))
        supervisor.adopt("virtual", stop=stop, grace=2.0)
        await supervisor.start_child(ChildSpec("last", real, args=("last",)))
        await wait_all_tasks_blocked()
        start = trio.current_time()

    assert log == ["last", "virtual after 2 s", "first"]


async def test_the_stop_of_a_virtual_child_may_raise_and_the_shutdown_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def stop() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("cannot")

    events: list[ChildEvent] = []
    async with open_supervisor(observer=events.append) as supervisor:
        supervisor.adopt("first")
        supervisor.adopt("broken", stop=stop)

    assert [event.child for event in events if event.kind == "stopped"] == ["broken", "first"]
    assert "stopping 'broken' raised" in caplog.text


async def test_a_virtual_child_has_no_place_in_a_group() -> None:
    async with open_supervisor(strategy="one_for_all") as supervisor:
        with pytest.raises(InvalidConfiguration, match="one_for_all"):
            supervisor.adopt("virtual")
