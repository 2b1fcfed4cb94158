import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor import Backoff, RestartIntensity, RestartLog, RestartPolicy


def test_three_restarts_in_five_seconds_are_tolerated_and_the_fourth_is_not() -> None:
    log = RestartLog(RestartIntensity())

    assert [log.record(now) for now in (0.0, 1.0, 2.0, 3.0)] == [True, True, True, False]


def test_a_restart_older_than_the_period_is_forgotten() -> None:
    log = RestartLog(RestartIntensity(1, 5.0))

    assert log.record(0.0)
    assert log.record(5.001)
    assert log.recent == 1


def test_a_restart_exactly_as_old_as_the_period_still_counts() -> None:
    log = RestartLog(RestartIntensity(1, 5.0))

    assert log.record(0.0)
    assert not log.record(5.0)


def test_an_intensity_of_zero_gives_up_at_the_first_failure() -> None:
    assert not RestartLog(RestartIntensity(0, 5.0)).record(0.0)


@given(
    st.integers(0, 5),
    st.floats(0.1, 10.0),
    st.lists(st.floats(0.0, 5.0), max_size=50),
)
def test_the_log_agrees_with_counting_all_restarts_and_stays_small(
    most: int, period: float, gaps: list[float]
) -> None:
    log = RestartLog(RestartIntensity(most, period))
    now, all_times = 0.0, list[float]()
    for gap in gaps:
        now += gap
        all_times.append(now)
        within = sum(time >= now - period for time in all_times)

        assert log.record(now) == (within <= most)
        assert log.recent == min(within, most + 1)


def test_delays_grow_by_the_factor_up_to_the_maximum() -> None:
    backoff = Backoff(first=0.5, maximum=3.0, factor=2.0, jitter=0.0)

    assert [backoff.delay(attempt, lambda: 0.5) for attempt in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_an_attempt_too_large_for_a_float_waits_the_maximum() -> None:
    assert Backoff(factor=10, jitter=0.0).delay(10**9, lambda: 0.0) == 30.0


def test_jitter_takes_away_its_part_of_the_random_number() -> None:
    assert Backoff(first=1.0, jitter=0.5).delay(1, lambda: 0.5) == 0.75


def test_a_policy_draws_each_delay_from_its_own_source_of_chance() -> None:
    policy = RestartPolicy(RestartIntensity(), Backoff(), Random(7).random)
    twin = Random(7).random

    assert [Backoff().delay(n, twin) for n in (1, 2, 3)] == [policy.delay(n) for n in (1, 2, 3)]


@given(
    st.floats(0.0, 100.0),
    st.floats(0.0, 1000.0),
    st.floats(1.0, 10.0),
    st.floats(0.0, 1.0),
    st.integers(1, 10_000),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_a_delay_is_between_its_jitter_and_its_maximum(
    first: float, above: float, factor: float, jitter: float, attempt: int, chance: float
) -> None:
    backoff = Backoff(first, first + above, factor, jitter)
    delay = backoff.delay(attempt, lambda: chance)

    assert first * (1.0 - jitter) <= delay <= backoff.maximum


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RestartIntensity, {"max_restarts": -1}),
        (RestartIntensity, {"max_restarts": True}),
        (RestartIntensity, {"max_restarts": 2.5}),
        (RestartIntensity, {"period": 0.0}),
        (RestartIntensity, {"period": math.inf}),
        (RestartIntensity, {"period": math.nan}),
        (Backoff, {"first": -0.1}),
        (Backoff, {"first": 2.0, "maximum": 1.0}),
        (Backoff, {"maximum": math.inf}),
        (Backoff, {"factor": 0.5}),
        (Backoff, {"jitter": 1.5}),
        (Backoff, {"jitter": "0.5"}),
    ],
    ids=str,
)
def test_a_value_that_cannot_work_is_refused(kind: type, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="give"):
        kind(**options)
