"""What turns ask a session's clients before they go on: more credits, or another model."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import trio

from exeunt.actors.errors import ClientGone, ClientRefused, InvalidAnswer
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
    _show(served, request)
    if interested(served, LIMITS):
        return LeavePending()
    if not served.clients:
        return LeavePending() if served.hub.options.wait_for_clients else "cancel"
    await trio.sleep(UNANNOUNCED)
    return LeavePending() if interested(served, LIMITS) else "cancel"


async def ask_to_switch(served: "Served", request: AutoModeSwitchRequest) -> Any:
    """Ask the client that serves such requests; or leave it to one that answers the event."""
    _show(served, request)
    if answers_events(served):
        return LeavePending()
    client = _serving(served)
    if client is None:
        return LeavePending() if served.hub.options.wait_for_clients else "no"
    params: dict[str, Any] = {"sessionId": served.session_id, **about_limit(request)}
    served.asking.switching = client
    try:
        answer: Any = await client.peer.ask("autoModeSwitch.request", params, math.inf)
    except ClientGone:
        return LeavePending() if served.hub.options.wait_for_clients else "no"
    except ClientRefused:
        return "no"
    finally:
        served.asking.switching = None
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


def tell_again(served: "Served", client: "Client") -> None:
    """Show a client that has come what a turn has asked before: it may be the one that was asked, and is back."""
    question = open_question(served)
    if question is not None and isinstance(
        question.request, SessionLimitsExhaustedRequest | AutoModeSwitchRequest
    ):
        served.notify_one(client, *_event(question.request))


def _show(served: "Served", request: SessionLimitsExhaustedRequest | AutoModeSwitchRequest) -> None:
    """Tell the clients of a request that another process has asked: its event stands far back in the log."""
    if served.asking.shown != request.request_id:
        served.asking.shown = request.request_id
        served.notify(*_event(request))


def _event(request: SessionLimitsExhaustedRequest | AutoModeSwitchRequest) -> tuple[str, dict[str, Any]]:
    if isinstance(request, SessionLimitsExhaustedRequest):
        about = {"usedAiCredits": request.used_ai_credits, "maxAiCredits": request.max_ai_credits}
        return LIMITS, {"requestId": request.request_id, **about}
    return SWITCH, {"requestId": request.request_id, **about_limit(request)}


async def ask_again(served: "Served") -> None:
    """Ask a client for another model that a turn waits for, where nobody has been asked, or who was has left."""
    question = open_question(served)
    if question is None or not isinstance(question.request, AutoModeSwitchRequest):
        return
    if served.asking.switching is None and _serving(served) is not None:
        answer = await ask_to_switch(served, question.request)
        if not isinstance(answer, LeavePending):
            answered(served, question.request_id, answer)


def answered(served: "Served", request_id: str, answer: Any) -> None:
    """Take a client's answer; one that is none is a no."""
    try:
        served.asking.answer(request_id, answer)
    except InvalidAnswer:
        served.asking.answer(request_id, "no")
