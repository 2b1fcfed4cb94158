"""Replies made ready to be given: what can be built once is built before the first request."""

from collections.abc import Callable, Sequence
from typing import cast

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import (
    FinishReason,
    ModelError,
    ModelErrorKind,
    ModelResponse,
    ToolCall,
)
from exeunt.testing.replies import After, Broken, Call, Fail, Hang, Reply, ReplyFunction, Say, say


@attrs.define
class Plan:
    """One reply, compiled."""

    response: ModelResponse | None = None
    """The answer, where it is the same each time."""
    calls: tuple[Call, ...] = ()
    """The calls of an answer that needs fresh ids each time; `base` is the rest of it."""
    base: Say | None = None
    pieces: tuple[str, ...] = ()
    reasoning: str = ""
    delay: float = 0.0
    gap: float = 0.0
    error: Callable[[], Exception] | None = None
    hangs: bool = False
    function: ReplyFunction | None = None


@attrs.define
class Script:
    """The place in a script."""

    plans: Sequence[Plan]
    cycle: bool
    default: Plan | None
    place: int = 0

    def next(self) -> Plan | None:
        """The next reply; `None` after the last."""
        if self.place >= len(self.plans):
            if not self.cycle or not self.plans:
                return self.default
            self.place = 0
        plan = self.plans[self.place]
        self.place += 1
        return plan


def compile_reply(reply: Reply) -> Plan:
    """Return the plan of *reply*. Raises `InvalidConfiguration` if it is none."""
    match reply:
        case str() | Say() | Call():
            return _answer([reply])
        case Fail():
            return Plan(error=reply.make)
        case Hang():
            return Plan(hangs=True)
        case Broken():
            return _broken(reply)
        case After():
            plan = compile_reply(reply.reply)
            plan.delay += reply.seconds
            return plan
        case Sequence():
            return _answer(reply)
        case _ if callable(reply):
            return Plan(function=reply)
        case _:
            raise InvalidConfiguration(f"{reply!r} is no reply: see exeunt.testing.replies for what is.")


def response_of(plan: Plan, new_id: Callable[[], str]) -> ModelResponse:
    """The answer of *plan*, with an id from *new_id* for each call that has none."""
    if plan.response is not None:
        return plan.response
    calls = [
        ToolCall(new_id() if call.id is None else call.id, call.name, call.arguments_json)
        for call in plan.calls
    ]
    return _response(plan.base, tuple(calls))


def _response(text: Say | None, calls: tuple[ToolCall, ...]) -> ModelResponse:
    finish_reason: FinishReason = "tool_calls" if calls else "stop"
    if text is None:
        return ModelResponse("", calls, finish_reason)
    return ModelResponse(text.text, calls, finish_reason, text.usage, text.reasoning)


def _answer(parts: Sequence[object]) -> Plan:
    texts: list[Say] = []
    calls: list[Call] = []
    for part in parts:
        match part:
            case Say():
                texts.append(part)
            case str():
                texts.append(say(part))
            case Call():
                calls.append(part)
            case _:
                raise InvalidConfiguration(
                    f"{part!r} cannot be part of an answer: a list holds one say(...) and calls. "
                    "To delay or to fail, wrap or replace the whole list."
                )
    if len(texts) > 1:
        raise InvalidConfiguration("An answer has one text: join them, or write two replies.")
    text = texts[0] if texts else None
    plan = Plan(base=text, calls=tuple(calls))
    if text is not None:
        plan.pieces, plan.reasoning, plan.delay, plan.gap = text.pieces, text.reasoning, text.delay, text.gap
    if all(call.id is not None for call in calls):
        fixed = tuple(ToolCall(cast("str", call.id), call.name, call.arguments_json) for call in calls)
        plan.response = _response(text, fixed)
    return plan


def _broken(reply: Broken) -> Plan:
    if reply.end == "stall":
        return Plan(pieces=reply.pieces, hangs=True)

    def cut() -> ModelError:
        count = len(reply.pieces)
        return ModelError(
            ModelErrorKind.TRUNCATED_STREAM, f"The stream ended after {count} pieces.", retry=reply.retry
        )

    return Plan(pieces=reply.pieces, error=cut)
