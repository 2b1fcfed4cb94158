"""What turns ask a session's clients before they go on: more credits, or another model."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import trio

from exeunt.actors.errors import ClientGone, ClientRefused
from exeunt.actors.permissions import LeavePending
from exeunt.actors.session import PendingRequest
from exeunt.actors.turn_requests import AutoModeSwitchRequest, SessionLimitsExhaustedRequest

if TYPE_CHECKING:
    from exeunt.wire.serving.client import Client
    from exeunt.wire.serving.served import Served

LIMITS = "session_limits_exhausted.requested"
SWITCH = "auto_mode_switch.requested"

GATED = frozenset({LIMITS, SWITCH})
"""Events for which a client says by its interest that it answers them."""

UNANNOUNCED = 10.0
"""Seconds for an answer about the limit where no client has said that it gives one: a program's comes at once, and
people are not to wait for nobody."""


async def ask_for_credits(served: "Served", request: SessionLimitsExhaustedRequest) -> Any:
    """Leave the decision to the clients, who are told of the request by its event."""
    if interested(served, LIMITS):
        return LeavePending()
    if not served.clients:
        return LeavePending() if served.hub.options.wait_for_clients else "cancel"
    await trio.sleep(UNANNOUNCED)
    return "cancel"


async def ask_to_switch(served: "Served", request: AutoModeSwitchRequest) -> Any:
    """Ask the client that serves such requests; or leave it to one that answers the event."""
    if answers_events(served):
        return LeavePending()
    client = _serving(served)
    if client is None:
        return LeavePending() if served.hub.options.wait_for_clients else "no"
    params: dict[str, Any] = {"sessionId": served.session_id, **about_limit(request)}
    try:
        answer: Any = await client.peer.ask("autoModeSwitch.request", params, math.inf)
    except ClientGone:
        return LeavePending() if served.hub.options.wait_for_clients else "no"
    except ClientRefused:
        return "no"
    return cast("Mapping[str, Any]", answer).get("response") if isinstance(answer, Mapping) else answer


def about_limit(request: Any) -> dict[str, Any]:
    """Return what clients are told of the provider's limit: of a request, or of its event."""
    about: dict[str, Any] = {}
    if request.error_code:
        about["errorCode"] = request.error_code
    if request.retry_after_seconds is not None:
        about["retryAfterSeconds"] = math.ceil(request.retry_after_seconds)
    return about


def can_be_asked_to_switch(served: "Served") -> bool:
    """Whether any client says whether a session goes on with another model."""
    return answers_events(served) or _serving(served) is not None


def answers_events(served: "Served") -> bool:
    """Whether a client answers the event itself, so that none is asked beside it."""
    return bool(served.asking.direct) or interested(served, SWITCH)


def interested(served: "Served", kind: str) -> bool:
    """Whether any client has said that it answers events of this kind."""
    return any(client.wants(kind) for client in served.clients.values())


def _serving(served: "Served") -> "Client | None":
    return next((one for one in served.clients.values() if one.config.requestAutoModeSwitch), None)


def open_question(served: "Served") -> PendingRequest | None:
    """Return what the session's turn has asked, while nobody has answered."""
    if served.session is None:
        return None
    asked = served.session.pending_requests()
    return next((one for one in asked if one.kind in ("session_limits", "auto_mode_switch")), None)


async def ask_again(served: "Served", client: "Client") -> None:
    """Ask a client that has come while a turn waits: it may be the one that was asked, and is back."""
    question = open_question(served)
    if question is None:
        return
    if isinstance(question.request, SessionLimitsExhaustedRequest):
        request = question.request
        about = {"usedAiCredits": request.used_ai_credits, "maxAiCredits": request.max_ai_credits}
        served.notify_one(client, LIMITS, {"requestId": question.request_id, **about})
    elif isinstance(question.request, AutoModeSwitchRequest):
        data = {"requestId": question.request_id, **about_limit(question.request)}
        served.notify_one(client, SWITCH, data)
        if client.config.requestAutoModeSwitch and not answers_events(served):
            answer = await ask_to_switch(served, question.request)
            if not isinstance(answer, LeavePending):
                served.asking.answer(question.request_id, answer)
