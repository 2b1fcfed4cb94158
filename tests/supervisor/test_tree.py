"""Starting, failing, restarting, giving up."""

import itertools
from collections.abc import Awaitable, Callable
from random import Random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.errors import ChildStartFailed, InvalidConfiguration, RestartIntensityExceeded
from exeunt.supervisor import (
    Backoff,
    ChildEvent,
    ChildEventKind,
    ChildSpec,
    ChildState,
    RestartIntensity,
    Supervisor,
    open_supervisor,
)

PLAIN = Backoff(first=1.0, maximum=8.0, factor=2.0, jitter=0.0)
OFTEN = RestartIntensity(100, 5.0)


class Stage:
    """Children that write down what they do, and fail when told to."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.kill: dict[str, trio.Event] = {}

    def actor(self, name: str) -> Callable[..., Awaitable[object]]:
        async def play(*, task_status: "trio.TaskStatus[str]") -> None:
            self.log.append(f"+{name}")
            self.kill[name] = trio.Event()
            task_status.started(name)
            try:
                await self.kill[name].wait()
            finally:
                self.log.append(f"-{name}")
            raise ValueError(name)

        return play

    def cast(self, names: str) -> list[ChildSpec]:
        return [ChildSpec(name, self.actor(name)) for name in names]

    async def fail(self, *names: str) -> None:
        """Let these children fail in the same step, and wait until nothing moves but the clock."""
        self.log.clear()
        for name in names:
            self.kill[name].set()
        await wait_all_tasks_blocked()

    def said(self) -> str:
        return " ".join(self.log)


async def test_a_child_runs_until_the_supervisor_is_left() -> None:
    stage = Stage()
    async with open_supervisor() as supervisor:
        child = await supervisor.start_child(ChildSpec("a", stage.actor("a")))

        assert (child.value, child.state) == ("a", ChildState.RUNNING)
        assert stage.said() == "+a"

    assert stage.said() == "+a -a"
    assert ChildState.ENDED is child.state


@pytest.mark.parametrize(
    ("restart", "error", "starts"),
    [
        ("permanent", None, 2),
        ("permanent", ValueError, 2),
        ("transient", None, 1),
        ("transient", ValueError, 2),
        ("temporary", None, 1),
        ("temporary", ValueError, 1),
    ],
)
async def test_the_restart_type_decides_which_ends_are_followed_by_a_restart(
    restart: str, error: type[Exception] | None, starts: int, autojump_clock: MockClock
) -> None:
    begun = 0

    async def child() -> None:
        nonlocal begun
        begun += 1
        if begun > 1:
            await trio.sleep_forever()
        if error is not None:
            raise error

    async with open_supervisor(backoff=PLAIN) as supervisor:
        await supervisor.start_child(ChildSpec("child", child, restart=restart))
        await trio.sleep(100)

        # One that ended for good is forgotten.
        assert (starts, starts - 1) == (begun, supervisor.statistics().children)


async def test_a_crash_loop_takes_the_supervisor_down_after_three_restarts(autojump_clock: MockClock) -> None:
    begun: list[float] = []
    events: list[ChildEvent] = []

    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        begun.append(trio.current_time())
        raise ValueError(f"crash {len(begun)}")

    supervisor = Supervisor([ChildSpec("crash", crash)], observer=events.append, backoff=Backoff(jitter=0.0))
    with pytest.raises(RestartIntensityExceeded, match="allows 3 restarts within 5 s") as caught:
        await supervisor.run()

    assert [time - begun[0] for time in begun] == pytest.approx([0.0, 0.1, 0.3, 0.7])
    assert str(caught.value.__cause__) == "crash 4"
    assert ["started", *["failed", "restarted"] * 3, "failed", "gave_up"] == [event.kind for event in events]
    assert [
        event.delay if event.delay is None else pytest.approx(event.delay)
        for event in events
        if event.kind is ChildEventKind.FAILED
    ] == [0.1, 0.2, 0.4, None]
    assert events[-1] == caught.value.details
    statistics = supervisor.statistics()
    assert (
        statistics.starts,
        statistics.restarts,
        statistics.failures,
        statistics.gave_up,
        statistics.children,
    ) == (1, 3, 4, 1, 0)


async def test_back_off_delays_are_exactly_those_of_the_seeded_source_of_chance(
    autojump_clock: MockClock,
) -> None:
    begun: list[float] = []

    async def crash() -> None:
        await trio.lowlevel.checkpoint()
        begun.append(trio.current_time())
        raise ValueError

    backoff = Backoff(jitter=0.5)
    with pytest.raises(RestartIntensityExceeded):
        await Supervisor(
            [ChildSpec("crash", crash)],
            backoff=backoff,
            intensity=RestartIntensity(5, 5.0),
            random=Random(42).random,
        ).run()

    twin = Random(42).random
    expected = [backoff.delay(attempt, twin) for attempt in range(1, 6)]
    assert expected == pytest.approx([after - before for before, after in itertools.pairwise(begun)])


async def test_a_child_that_ran_for_a_whole_period_starts_its_back_off_anew(
    autojump_clock: MockClock,
) -> None:
    delays: list[float | None] = []
    lives = iter([0.0, 0.0, 5.0, 0.0])

    async def child() -> None:
        await trio.sleep(next(lives, 1e9))
        raise ValueError

    async with open_supervisor(
        [ChildSpec("child", child)],
        backoff=PLAIN,
        intensity=OFTEN,
        observer=lambda event: delays.append(event.delay) if event.kind == "failed" else None,
    ):
        await trio.sleep(100)

    assert delays == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("one_for_one", "-b +b"),
        ("one_for_all", "-b -d -c -a +a +b +c +d"),
        ("rest_for_one", "-b -d -c +b +c +d"),
    ],
)
async def test_a_strategy_stops_in_reverse_start_order_and_starts_in_start_order(
    strategy: str, order: str, autojump_clock: MockClock
) -> None:
    stage = Stage()
    async with open_supervisor(stage.cast("abcd"), strategy=strategy, backoff=PLAIN):
        await stage.fail("b")
        await trio.sleep(1.5)

        assert order == stage.said()


async def test_coupled_children_that_fail_together_count_as_one_failure(autojump_clock: MockClock) -> None:
    stage = Stage()
    async with open_supervisor(
        stage.cast("abc"), strategy="one_for_all", backoff=PLAIN, intensity=RestartIntensity(1, 5.0)
    ) as supervisor:
        await stage.fail("a", "b", "c")
        await trio.sleep(1.5)

        assert " ".join(stage.log[3:]) == "+a +b +c"
        assert (supervisor.statistics().failures, supervisor.statistics().restarts) == (3, 3)


async def test_a_failure_further_up_the_chain_takes_over_the_recovery(autojump_clock: MockClock) -> None:
    stage = Stage()
    async with open_supervisor(stage.cast("abc"), strategy="rest_for_one", backoff=PLAIN, intensity=OFTEN):
        await stage.fail("c")
        stage.log.clear()
        await stage.fail("a")
        await trio.sleep(10)

        assert stage.log[-5:] == ["-a", "-b", "+a", "+b", "+c"]
        assert stage.log.count("+b") == 1


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
