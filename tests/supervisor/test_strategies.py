import pytest

from exeunt.supervisor import Strategy
from exeunt.supervisor.strategies import covers


@pytest.mark.parametrize(
    ("strategy", "restarted"),
    [
        (Strategy.ONE_FOR_ONE, [2]),
        (Strategy.ONE_FOR_ALL, [0, 1, 2, 3, 4]),
        (Strategy.REST_FOR_ONE, [2, 3, 4]),
    ],
)
def test_the_failure_of_the_third_of_five_children_restarts_those_of_its_strategy(
    strategy: Strategy, restarted: list[int]
) -> None:
    assert restarted == [position for position in range(5) if covers(strategy, 2, position)]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_failure_always_restarts_the_child_itself(strategy: Strategy) -> None:
    assert all(covers(strategy, position, position) for position in range(5))
