"""Which children a failure restarts: OTP's three strategies, as a pure rule."""

import enum


class Strategy(enum.StrEnum):
    """What the failure of one child means for the others. Closed."""

    ONE_FOR_ONE = "one_for_one"
    """Only the failed child is restarted. For children that do not know of each other."""

    ONE_FOR_ALL = "one_for_all"
    """All children are stopped and started again. For children that cannot live without each other."""

    REST_FOR_ONE = "rest_for_one"
    """The failed child and all that were started after it. For a chain: each may use those before it."""


def covers(strategy: Strategy, failed: int, other: int) -> bool:
    """Say whether the failure of the child at start position *failed* restarts the one at *other*.

    A child is covered by its own failure under every strategy.
    """
    if strategy is Strategy.ONE_FOR_ALL:
        return True
    if strategy is Strategy.REST_FOR_ONE:
        return other >= failed
    return other == failed
