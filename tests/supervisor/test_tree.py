"""Starting, failing, restarting, giving up."""

import itertools
from random import Random

import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.errors import RestartIntensityExceeded
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
from tests.supervisor.tree_support import OFTEN, PLAIN, Stage


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
