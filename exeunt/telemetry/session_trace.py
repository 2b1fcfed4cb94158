"""The open spans of one session, and how they begin and end.

Times are those of the log, in nanoseconds, made monotonic: a clock that is set back would end spans before they began.
Spans end when the events of a handler run are seen, children first: what follows an end in the same run, such as the
boundary of a clear, still belongs to them.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from exeunt.actors.models import Message
from exeunt.telemetry import names
from exeunt.telemetry.propagation import NOWHERE

logger = logging.getLogger("exeunt.telemetry")

EARLY = 32
"""Span events that are kept for a turn whose span has not begun: hooks of its message. Further ones are left out."""

Attributes = Mapping[str, Any]


class ContextLike(Protocol):
    """What is read of a session's context."""

    @property
    def messages(self) -> Sequence[Message]: ...


class OptionsLike(Protocol):
    """What is read of a session's options."""

    @property
    def model_name(self) -> str: ...
    @property
    def provider_name(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def streaming(self) -> bool: ...


class SessionLike(Protocol):
    """A session in memory."""

    @property
    def options(self) -> OptionsLike: ...
    @property
    def context(self) -> ContextLike: ...


@attrs.frozen
class Habits:
    """What all traces of a host have in common."""

    tracer: Tracer
    capture_content: bool
    content_limit: int
    agent_name: str
    find: Callable[[str], SessionLike | None]


Waiting = tuple[int | None, Context]
"""When a message was accepted, if that was seen, and the parent that its sender named."""


class OpenCall:
    """A tool call in flight."""

    __slots__ = ("asked", "span", "turn_id")

    def __init__(self, span: Span, turn_id: str | None) -> None:
        self.span = span
        self.turn_id = turn_id
        self.asked: dict[str, int] | None = None
        """When it asked people, by the id of the request."""


class OpenTurn:
    """A turn under way."""

    __slots__ = (
        "answer",
        "attempt_began",
        "began",
        "chat",
        "error_type",
        "input_tokens",
        "last_chat",
        "output_tokens",
        "parent",
        "span",
        "turn_id",
    )

    def __init__(self, span: Span, turn_id: str, parent: Context, began: int) -> None:
        self.span = span
        self.turn_id = turn_id
        self.began = began
        self.parent = parent
        self.chat: Span | None = None
        self.last_chat: Span | None = None
        """The model call that has ended last."""
        self.attempt_began: int | None = None
        """When the request was made whose first piece has not come."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.answer = ""
        self.error_type = ""


class SessionTrace:
    """One session, while anything of it is open."""

    __slots__ = (
        "accepted",
        "calls",
        "cleared",
        "early",
        "ended",
        "ended_call",
        "ended_turn",
        "fallen",
        "follows",
        "free_since",
        "habits",
        "hooks",
        "moment",
        "session_id",
        "turn",
    )

    def __init__(self, session_id: str, habits: Habits) -> None:
        self.session_id = session_id
        self.habits = habits
        self.moment = 0
        """The time of the last event."""
        self.free_since = 0
        """When something else last ended that had kept the queue waiting."""
        self.accepted: dict[str, Waiting] = {}
        """Messages that are not in the context yet."""
        self.turn: OpenTurn | None = None
        self.calls: dict[str, OpenCall] = {}
        self.early: list[tuple[str, Attributes, int]] = []
        self.hooks: dict[str, int] = {}
        """When hooks began that run."""
        self.follows: tuple[SpanContext, str] | None = None
        """What the next turn is linked to, and why."""
        self.cleared: Context | None = None
        """The parent of the turn that cleared the context, until the seeded turn has begun."""
        self.ended: list[tuple[Span, int]] = []
        self.ended_turn: OpenTurn | None = None
        """The turn that has ended in this handler run."""
        self.ended_call: Span | None = None
        """The call of the host that has ended in this handler run."""
        self.fallen: Waiting | None = None
        """What was known of the message that was dropped last in this handler run."""

    @property
    def is_over(self) -> bool:
        """Whether nothing needs to be remembered."""
        return (
            self.turn is None
            and not self.calls
            and not self.accepted
            and self.cleared is None
            and self.follows is None
        )

    def at(self, time: float) -> int:
        """Take note of the time of an event; return it."""
        moment = int(time * 1e9)
        if moment > self.moment:
            self.moment = moment
        return self.moment

    def ends(self, span: Span) -> None:
        """End *span* now, once all of this handler run is seen."""
        self.ended.append((span, self.moment))

    def end_all(self) -> None:
        """End what has ended."""
        self.ended_turn = self.ended_call = self.fallen = None
        ended, self.ended = self.ended, []
        while ended:
            span, moment = ended.pop(0)
            try:
                span.end(moment)
            except Exception:
                # A processor of the program's; the others are to end all the same.
                logger.exception("session %s: a span could not be ended", self.session_id)

    # --- Turns -----------------------------------------------------------------------------------------------

    def begin_turn(self, turn_id: str, began: int, parent: Context, attributes: dict[str, Any]) -> OpenTurn:
        """Begin the span of a turn, below *parent*, with what has happened for it already."""
        if self.turn is not None:
            self.leave_turn_open()
        links = None
        if self.follows is not None:
            context, why = self.follows
            links = [Link(context, {names.LINK: why})]
            self.follows = None
        habits = self.habits
        told: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.CONVERSATION_ID: self.session_id,
            names.TURN_ID: turn_id,
        }
        title = names.INVOKE_AGENT
        if habits.agent_name:
            title = f"{title} {habits.agent_name}"
            told[names.AGENT_NAME] = habits.agent_name
        session = habits.find(self.session_id)
        if session is not None:
            options = session.options
            told[names.PROVIDER] = options.provider_name
            told[names.REQUEST_MODEL] = options.model_name
            if options.tenant:
                told[names.TENANT] = options.tenant
        told.update(attributes)
        span = habits.tracer.start_span(title, parent, SpanKind.INTERNAL, told, links, start_time=began)
        for name, about, moment in self.early:
            span.add_event(name, about, max(moment, began))
        self.early.clear()
        turn = self.turn = OpenTurn(span, turn_id, parent, began)
        return turn

    def turn_of(self, turn_id: str, began: int | None = None) -> OpenTurn:
        """Return the turn under way; where nothing is known of it, it began in another activation."""
        if self.turn is not None and self.turn.turn_id == turn_id:
            return self.turn
        began = self.moment if began is None else began
        return self.begin_turn(turn_id, began, NOWHERE, {names.TURN_RESUMED: True})

    def end_turn(self, turn: OpenTurn) -> None:
        """End the span of a turn, and whatever of it is still open."""
        self.end_chat(turn)
        for call_id in [key for key, call in self.calls.items() if call.turn_id == turn.turn_id]:
            self.ends(self.calls.pop(call_id).span)
        self.ends(turn.span)
        self.hooks.clear()
        self.turn = None
        self.ended_turn = turn
        self.free_since = self.moment

    def end_chat(self, turn: OpenTurn) -> None:
        """End the span of a model call, if one is open."""
        if turn.chat is not None:
            self.ends(turn.chat)
            turn.last_chat = turn.chat
            turn.chat = turn.attempt_began = None

    def leave_turn_open(self) -> None:
        """End all spans of a turn that goes on elsewhere, or never will."""
        if self.turn is not None:
            self.turn.span.set_attribute(names.TURN_LEFT_OPEN, True)
            self.end_turn(self.turn)

    def leave(self) -> None:
        """End everything: the session has left."""
        self.leave_turn_open()
        for call in self.calls.values():
            self.ends(call.span)
        self.calls.clear()
        self.accepted.clear()
        self.hooks.clear()
        self.cleared = self.follows = None

    # --- What happens in a span ------------------------------------------------------------------------------

    def note(self, name: str, attributes: Attributes) -> None:
        """Add a span event to the turn under way, or to the one that is about to begin; else it is left out."""
        turn = self.turn or self.ended_turn
        if turn is not None:
            turn.span.add_event(name, attributes, self.moment)
        elif self.accepted and len(self.early) < EARLY:
            self.early.append((name, attributes, self.moment))

    def note_call(self, call_id: str, name: str, attributes: Attributes) -> None:
        """Add a span event to a tool call."""
        call = self.calls.get(call_id)
        if call is not None:
            call.span.add_event(name, attributes, self.moment)


def failed(span: Span, error_type: str, message: str | None = None) -> None:
    """Say that what *span* stands for has failed."""
    span.set_attribute(names.ERROR_TYPE, error_type)
    span.set_status(Status(StatusCode.ERROR, message))
