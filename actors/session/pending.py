"""What a session asks people, as whoever answers sees it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import attrs

from exeunt.actors.events import PermissionRequested
from exeunt.actors.models import ToolCall
from exeunt.actors.permissions import PermissionRequest
from exeunt.actors.turn import requests
from exeunt.actors.user_input import UserInputRequest

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.state.session_state import Asked
    from exeunt.actors.turn.actor import SessionActor

RequestKind = Literal["permission", "user_input"]


@attrs.frozen
class PendingRequest:
    """An open request: a tool call waits until somebody answers it, or until its time is over.

    A value: it changes no more, whatever becomes of the request. `session.answer(request_id, ...)` answers it.
    """

    session_id: str
    tenant: str
    request_id: str
    kind: RequestKind
    tool_call_id: str
    tool_name: str
    asked_at: datetime
    """UTC."""
    deadline: datetime | None
    """When it ends without an answer; UTC. `None` where the log of an old version does not say."""
    request: PermissionRequest | UserInputRequest
    """What is asked: whether the call may run, or a question."""


def pending_requests(actor: "SessionActor") -> tuple[PendingRequest, ...]:
    """Return what is open, oldest first."""
    return tuple(_shown(actor, asked, call) for asked, call in requests.listed(actor))


def pending_in(actors: "Iterable[SessionActor]", tenant: str | None) -> Sequence[PendingRequest]:
    """Return what is open in any of *actors*, or in those of one tenant; oldest first."""
    asking = [actor for actor in actors if actor.state.requests is not None]
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
