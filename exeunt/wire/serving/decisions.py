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

NOTHING: Mapping[str, Any] = {}


def decision_from(result: Any) -> PermissionDecision:
    """Return the decision in *result*. What is none denies the call, as if nobody could be asked."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", result) if isinstance(result, Mapping) else NOTHING
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
    return UserNotAvailable()
