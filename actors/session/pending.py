"""What a session asks people, as whoever answers sees it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import attrs

from exeunt.actors.activities.turn_question import told
from exeunt.actors.events import PermissionRequested, SessionLimitsExhaustedRequested
from exeunt.actors.models import ToolCall
from exeunt.actors.permissions import PermissionRequest
from exeunt.actors.state.session_state import TurnRequested
from exeunt.actors.turn import requests, turn_questions
from exeunt.actors.turn_requests import TurnRequest
from exeunt.actors.user_input import UserInputRequest

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.state.session_state import Asked
    from exeunt.actors.turn.actor import SessionActor

RequestKind = Literal["permission", "user_input", "session_limits", "auto_mode_switch"]


@attrs.frozen
class PendingRequest:
    """An open request: a tool call, or a turn, waits until somebody answers it, or until its time is over.

    A value: it changes no more, whatever becomes of the request. `session.answer(request_id, ...)` answers it.
    """

    session_id: str
    tenant: str
    request_id: str
    kind: RequestKind
    tool_call_id: str
    """Empty where the turn itself asks."""
    tool_name: str
    asked_at: datetime
    """UTC."""
    deadline: datetime | None
    """When it ends without an answer; UTC. `None` where the log of an old version does not say."""
    request: PermissionRequest | UserInputRequest | TurnRequest
    """What is asked: whether the call may run, a question, more credits, or whether to go on with another model."""


def pending_requests(actor: "SessionActor") -> tuple[PendingRequest, ...]:
    """Return what is open, oldest first."""
    question = turn_questions.open_question(actor)
    if question is not None:
        return (_shown_question(actor, question.asked),)
    return tuple(_shown(actor, asked, call) for asked, call in requests.listed(actor))


def _shown_question(actor: "SessionActor", asked: TurnRequested) -> PendingRequest:
    return PendingRequest(
        actor.id,
        actor.options.tenant,
        asked.request_id,
        "session_limits" if isinstance(asked, SessionLimitsExhaustedRequested) else "auto_mode_switch",
        "",
        "",
        asked.timestamp,
        None if asked.deadline is None else datetime.fromtimestamp(asked.deadline, UTC),
        told(asked, actor.options.model_name),
    )


def pending_in(actors: "Iterable[SessionActor]", tenant: str | None) -> Sequence[PendingRequest]:
    """Return what is open in any of *actors*, or in those of one tenant; oldest first."""
    asking = [one for one in actors if one.state.requests is not None or one.state.question is not None]
    found = [
        request
        for actor in asking
        if tenant in (None, actor.options.tenant)
        for request in pending_requests(actor)
    ]
    return sorted(found, key=lambda request: request.asked_at)


def _shown(actor: "SessionActor", asked: "Asked", call: "Call") -> PendingRequest:
    event = asked.request
    request: PermissionRequest | UserInputRequest
    if isinstance(event, PermissionRequested):
        arguments = ToolCall(event.tool_call_id, event.tool_name, event.arguments_json).arguments
        request = PermissionRequest(
            event.tool_call_id,
            event.tool_name,
            arguments,
            event.tool_description,
            request_id=event.request_id,
            hook_message=event.hook_message,
        )
    else:
        request = UserInputRequest(
            event.question, event.choices, event.allow_freeform, event.request_id, event.tool_call_id
        )
    return PendingRequest(
        actor.id,
        actor.options.tenant,
        event.request_id,
        "permission" if isinstance(event, PermissionRequested) else "user_input",
        event.tool_call_id,
        event.tool_name,
        event.timestamp,
        None if event.deadline is None else datetime.fromtimestamp(event.deadline, UTC),
        request,
    )
