"""What a client answers to a request for approval."""

from collections.abc import Mapping
from typing import Any, cast

from exeunt.actors.permissions import (
    ApproveForSession,
    ApproveOnce,
    PermissionDecision,
    Reject,
    UserNotAvailable,
)

REFUSALS = frozenset(
    {
        "user-not-available",
        "cancelled",
        "denied-by-rules",
        "denied-no-approval-rule-and-could-not-request-from-user",
        "denied-by-content-exclusion-policy",
        "denied-by-permission-request-hook",
    }
)
"""Kinds that deny the call without anybody having said no."""

KINDS = (
    "approve-once",
    "approve-for-session",
    "approve-for-location",
    "reject",
    "user-not-available",
    "approved",
)


def decision_from(result: Any) -> PermissionDecision:
    """Return the decision in *result*. Raises `ValueError` for what is none, in the words that clients know."""
    fields = cast("Mapping[str, Any]", result) if isinstance(result, Mapping) else {}
    kind = fields.get("kind")
    if kind in ("approve-once", "approved"):
        return ApproveOnce()
    if kind in ("approve-for-session", "approve-for-location"):
        # Without an approval that says what for, it is for this once. Here is no place that outlasts a session.
        return ApproveForSession() if fields.get("approval") is not None else ApproveOnce()
    if kind == "reject":
        feedback = fields.get("feedback")
        return Reject(feedback if isinstance(feedback, str) and feedback else None)
    if kind == "denied-interactively-by-user":
        feedback = fields.get("feedback")
        return Reject(feedback if isinstance(feedback, str) and feedback else None)
    if kind in REFUSALS:
        return UserNotAvailable()
    shown = ", ".join(f"`{one}`" for one in KINDS)
    raise ValueError(
        f"permission host returned malformed payload: unknown variant `{kind}`, expected one of {shown}"
    )
