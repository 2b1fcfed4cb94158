"""Approvals: what a permission handler is asked and may answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

import attrs

from exeunt.actors.errors import InvalidAnswer, InvalidConfiguration


@attrs.frozen
class PermissionRequest:
    """A tool call that wants to run."""

    tool_call_id: str
    tool_name: str
    arguments: Any
    """The decoded arguments, as a hook may have changed them."""
    tool_description: str
    kind: str = "custom-tool"
    request_id: str = attrs.field(default="", eq=False)
    """The id under which it can be answered from anywhere: `session.answer(request_id, ...)`."""
    hook_message: str | None = None
    """Why a hook wants a person to be asked; `None` where none wants that."""


@attrs.frozen
class ApproveOnce:
    """This call may run."""

    kind: ClassVar[str] = "approve-once"


@attrs.frozen
class ApproveForSession:
    """This call may run, and later calls of the tool in this session without asking again."""

    kind: ClassVar[str] = "approve-for-session"


@attrs.frozen
class Reject:
    """A person said no. The model reads it, with the feedback, and goes on."""

    kind: ClassVar[str] = "reject"
    feedback: str | None = None


@attrs.frozen
class UserNotAvailable:
    """There is nobody to ask: the call is denied."""

    kind: ClassVar[str] = "user-not-available"


@attrs.frozen
class LeavePending:
    """The handler does not answer: the request stays open until `session.answer`, or until its time is over."""

    kind: ClassVar[str] = "no-result"


PermissionDecision = ApproveOnce | ApproveForSession | Reject | UserNotAvailable
PermissionHandler = Callable[[PermissionRequest, Any], Any | Awaitable[Any]]

_BY_KIND: dict[str, type[PermissionDecision]] = {
    "approve-once": ApproveOnce,
    "approved": ApproveOnce,
    "approve-for-session": ApproveForSession,
    "reject": Reject,
    "user-not-available": UserNotAvailable,
}


def approve_all(request: PermissionRequest, invocation: Any) -> PermissionDecision:
    """Approve every call. A handler for hosts whose tools are all safe."""
    return ApproveOnce()


def leave_pending(request: Any, invocation: Any) -> LeavePending:
    """Answer nothing, for `on_permission_request` and `on_user_input_request`: somebody answers from outside."""
    return LeavePending()


def answer_of_handler(answer: Any) -> PermissionDecision | LeavePending:
    """Return what a permission handler answered: a decision, or that it leaves the request open.

    Raises as `to_decision`.
    """
    if isinstance(answer, PermissionDecision):
        return answer
    return LeavePending() if leaves_pending(answer) else to_decision(answer)


def leaves_pending(answer: Any) -> bool:
    """Say whether a handler's answer is none."""
    if isinstance(answer, LeavePending):
        return True
    kind = _field(answer, "kind", answer)
    return isinstance(kind, str) and kind == LeavePending.kind


def decision_from_outside(answer: Any) -> PermissionDecision:
    """Return *answer*, given by whoever it was, as a decision. Raises `InvalidAnswer`; nothing has happened then."""
    try:
        return to_decision(answer)
    except InvalidConfiguration as error:
        raise InvalidAnswer(
            f"{answer!r:.80} answers no request for approval; one of {', '.join(_BY_KIND)} does"
        ) from error


def to_decision(answer: Any) -> PermissionDecision:
    """Return *answer* as a decision: one already, its kind as a `str`, or `{"kind": ..., "feedback": ...}`.

    Raises `InvalidConfiguration` for anything else; the call is then denied.
    """
    if isinstance(answer, PermissionDecision):
        return answer
    kind, feedback = _field(answer, "kind", answer), _field(answer, "feedback", None)
    decision = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if decision is None:
        raise InvalidConfiguration(
            f"a permission handler answered {answer!r}; it must answer one of {', '.join(_BY_KIND)}"
        )
    return Reject(feedback) if decision is Reject else decision()


def _field(answer: Any, name: str, default: Any) -> Any:
    if isinstance(answer, Mapping):
        return cast("Mapping[str, Any]", answer).get(name)
    return getattr(answer, name, default)
