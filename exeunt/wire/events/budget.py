"""What clients see of credits, and of what turns ask them before they go on."""

import math
from collections.abc import Iterable
from typing import Any

from exeunt.actors import events as core
from exeunt.wire.events.mapper import EventMapper, WireEvent

Mapped = Iterable[WireEvent]


def checkpoint(mapper: EventMapper, event: core.UsageCheckpoint) -> Mapped:
    if mapper.figures is None:
        mapper.pay(event)
    return mapper.persisted(event, {"totalNanoAiu": event.total_nano_aiu})


def limits_changed(mapper: EventMapper, event: core.SessionLimitsChanged) -> Mapped:
    most = event.max_ai_credits
    return mapper.persisted(event, {"sessionLimits": None if most is None else {"maxAiCredits": most}})


def exhausted(mapper: EventMapper, event: core.SessionLimitsExhaustedRequested) -> Mapped:
    data = {
        "requestId": event.request_id,
        "usedAiCredits": event.used_ai_credits,
        "maxAiCredits": event.max_ai_credits,
    }
    return (mapper.ephemeral(event, data),)


def decided(mapper: EventMapper, event: core.SessionLimitsExhaustedCompleted) -> Mapped:
    response: dict[str, Any] = {"action": event.action}
    if event.action == "add":
        response["additionalAiCredits"] = event.ai_credits
    elif event.action == "set":
        response["maxAiCredits"] = event.ai_credits
    return (mapper.ephemeral(event, {"requestId": event.request_id, "response": response}),)


def switch(mapper: EventMapper, event: core.AutoModeSwitchRequested) -> Mapped:
    data: dict[str, Any] = {"requestId": event.request_id}
    if event.error_code:
        data["errorCode"] = event.error_code
    if event.retry_after_seconds is not None:
        data["retryAfterSeconds"] = math.ceil(event.retry_after_seconds)
    return (mapper.ephemeral(event, data),)


def switched(mapper: EventMapper, event: core.AutoModeSwitchCompleted) -> Mapped:
    return (mapper.ephemeral(event, {"requestId": event.request_id, "response": event.response}),)
