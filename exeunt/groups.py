"""Exception groups, as nurseries raise them, and what is in them."""

from typing import cast

import trio


def lone(error: BaseException) -> BaseException:
    """Return what a group holds if that is one error, however deep; any other error as it is."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return lone(group.exceptions[0]) if len(group.exceptions) == 1 else group


def is_only_cancelled(error: BaseException) -> bool:
    """Say whether *error* is a cancellation, or a group of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_only_cancelled(one) for one in group.exceptions)
    return isinstance(error, trio.Cancelled)
