"""How a supervisor ends: order, grace, cancellation, and children that do not want to."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.errors import RestartIntensityExceeded
from exeunt.supervisor import Backoff, ChildSpec, RestartIntensity, Supervisor, open_supervisor


class Diary:
    """What ended when, in seconds since `begin`."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, float]] = []
        self.start = 0.0

    def begin(self) -> None:
        self.start = trio.current_time()

    def write(self, name: str) -> None:
        self.entries.append((name, round(trio.current_time() - self.start, 6)))

    async def polite(self, name: str, seconds: float, *, stopping: trio.Event) -> None:
        """Takes some time to end by itself."""
        try:
            await stopping.wait()
            await trio.sleep(seconds)
        except trio.Cancelled:
            self.write(f"{name} cancelled")
            raise
        self.write(name)

    async def plain(self, name: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.write(name)

    async def stubborn(self, name: str, seconds: float) -> None:
        """Ignores its cancellation for a while."""
        with trio.CancelScope(shield=True):
            await trio.sleep_forever() if seconds == float("inf") else await trio.sleep(seconds)
        self.write(name)


async def test_each_child_has_its_grace_and_the_next_waits_for_it(autojump_clock: MockClock) -> None:
    diary = Diary()
    children = [
        ChildSpec("first", diary.plain, args=("first",)),
        ChildSpec("in time", diary.polite, args=("in time", 2.0), grace=3.0),
        ChildSpec("too slow", diary.polite, args=("too slow", 10.0), grace=3.0),
        ChildSpec("last", diary.plain, args=("last",)),
    ]
    async with open_supervisor(children):
        await wait_all_tasks_blocked()
        diary.begin()

    assert diary.entries == [("last", 0.0), ("too slow cancelled", 3.0), ("in time", 5.0), ("first", 5.0)]


async def test_a_cancellation_of_the_tree_is_the_same_ordered_shutdown(autojump_clock: MockClock) -> None:
    diary = Diary()
    inner = Supervisor(
        [
            ChildSpec("inner 1", diary.plain, args=("inner 1",)),
            ChildSpec("inner 2", diary.polite, args=("inner 2", 2.0)),
        ],
        name="inner",
    )
    outer = Supervisor(
        [
            ChildSpec("outer 1", diary.plain, args=("outer 1",)),
            ChildSpec("inner", inner.run),
            ChildSpec("outer 2", diary.plain, args=("outer 2",)),
        ],
        name="outer",
    )
    async with trio.open_nursery() as nursery:
        assert outer is await nursery.start(outer.run)
        await wait_all_tasks_blocked()
        diary.begin()
        nursery.cancel_scope.cancel()

    assert diary.entries == [("outer 2", 0.0), ("inner 2", 2.0), ("inner 1", 2.0), ("outer 1", 2.0)]


async def test_a_cancellation_ends_a_back_off_at_once(autojump_clock: MockClock) -> None:
    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    start = trio.current_time()
    with trio.move_on_after(1) as scope:
        await Supervisor([ChildSpec("crash", crash)], backoff=Backoff(first=20.0)).run()

    assert scope.cancelled_caught
    assert trio.current_time() - start == pytest.approx(1.0)


async def test_stop_ends_a_back_off_at_once_and_starts_nobody(autojump_clock: MockClock) -> None:
    begun = 0

    async def crash() -> None:
        nonlocal begun
        await trio.lowlevel.checkpoint()
        begun += 1
        raise ValueError

    start = trio.current_time()
    async with open_supervisor([ChildSpec("crash", crash)], backoff=Backoff(first=20.0)):
        await trio.sleep(1)

    assert begun == 1
    assert trio.current_time() - start == pytest.approx(1.0)


async def test_a_cancellation_while_a_child_starts_stops_those_before_it(autojump_clock: MockClock) -> None:
    diary = Diary()

    async def hang(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await diary.plain("hang")

    diary.begin()
    with trio.move_on_after(1):
        await Supervisor([ChildSpec("first", diary.plain, args=("first",)), ChildSpec("hang", hang)]).run()

    assert diary.entries == [("hang", 1.0), ("first", 1.0)]


async def test_stop_ends_the_run_normally_even_while_a_child_starts(autojump_clock: MockClock) -> None:
    async def hang(*, task_status: "trio.TaskStatus[None]") -> None:  # noqa: ASYNC128 - on purpose
        await trio.sleep_forever()

    supervisor = Supervisor([ChildSpec("hang", hang)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.run)
        await wait_all_tasks_blocked()
        supervisor.stop()
        supervisor.stop()


async def test_a_child_that_ignores_its_cancellation_is_named_in_the_log_every_five_seconds(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()
    async with open_supervisor([ChildSpec("stubborn", diary.stubborn, args=("stubborn", 12.0))], name="host"):
        await wait_all_tasks_blocked()
        diary.begin()

    assert diary.entries == [("stubborn", 12.0)]
    assert [
        f"child 'stubborn' of supervisor 'host' ignores its cancellation: waited {seconds} s for it, and going on"
        for seconds in (5, 10)
    ] == [record.getMessage() for record in caplog.records]


async def test_a_restart_waits_for_the_old_run_of_a_child_that_ignores_its_cancellation(
    autojump_clock: MockClock,
) -> None:
    alive = most = 0

    async def child() -> None:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        alive -= 1
        await trio.sleep_forever()

    async with open_supervisor([ChildSpec("child", child)]) as supervisor:
        await wait_all_tasks_blocked()
        start = trio.current_time()
        await supervisor.restart_child("child")

        assert trio.current_time() - start == pytest.approx(30.0)
    assert most == 1


async def test_a_child_that_fails_during_the_shutdown_is_not_restarted(autojump_clock: MockClock) -> None:
    diary = Diary()
    failing = trio.Event()
    starts = 0

    async def dependent() -> None:
        nonlocal starts
        starts += 1
        await failing.wait()
        raise ValueError

    async def last(*, stopping: trio.Event) -> None:
        await stopping.wait()
        failing.set()
        await trio.sleep(3)

    async with open_supervisor(
        [ChildSpec("dependent", dependent), ChildSpec("last", last)], intensity=RestartIntensity(0, 5.0)
    ) as supervisor:
        await wait_all_tasks_blocked()
        diary.begin()

    assert (starts, supervisor.statistics().failures, supervisor.statistics().gave_up) == (1, 1, 0)


async def test_the_body_is_cancelled_when_the_supervisor_gives_up() -> None:
    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    ended = False

    async def host() -> None:
        nonlocal ended
        async with open_supervisor([ChildSpec("crash", crash)], intensity=RestartIntensity(0, 5.0)):
            try:
                await trio.sleep_forever()
            finally:
                ended = True

    with pytest.raises(RestartIntensityExceeded):
        await host()

    assert ended


async def test_an_error_of_the_body_stops_the_children_and_comes_out_as_it_is() -> None:
    diary = Diary()

    async def host() -> None:
        async with open_supervisor([ChildSpec("child", diary.plain, args=("child",))]):
            await wait_all_tasks_blocked()
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        await host()

    assert [name for name, _ in diary.entries] == ["child"]


async def test_errors_of_both_sides_come_in_a_group() -> None:
    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    with pytest.RaisesGroup(KeyError, RestartIntensityExceeded):
        async with open_supervisor([ChildSpec("crash", crash)], intensity=RestartIntensity(0, 5.0)):
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError("body")
