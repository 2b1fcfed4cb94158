"""All traces of one host: from its events to spans, and the spans that are current where it calls foreign code."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

import attrs
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, TracerProvider

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import Event, SessionResume
from exeunt.actors.ports import Observer, Tracing
from exeunt.actors.state.session_state import Pending
from exeunt.telemetry import calls, life, turns
from exeunt.telemetry.propagation import carrier, extracted, with_current
from exeunt.telemetry.session_trace import Habits, SessionLike, SessionTrace, Waiting

CONTENT_LIMIT = 64 * 1024
"""Characters of one attribute with content. Collectors refuse spans of some megabytes, and a context may have more."""

REMEMBERED = 4096
"""Sessions whose last turn is remembered, to link the first turn after a resume with it: the oldest are forgotten."""

SWEEP_FROM = 1024
"""Open traces from which on those are looked for whose session has left without a word."""

HANDLERS = {**turns.HANDLERS, **calls.HANDLERS, **life.HANDLERS}


@attrs.frozen
class TelemetryStatistics:
    """Traces at one moment."""

    open_sessions: int
    """Sessions of which a span is open, or a message waits whose turn has none yet."""
    turns: int
    """Turns whose spans have ended so far."""
    left_open: int
    """Sessions whose spans had to be ended because they had left without a word."""
    forgotten: int
    """Sessions whose last turn is remembered no more: their next turn after a resume has no link."""


class HostLike(Protocol):
    """What is needed of a host."""

    tracing: Tracing | None

    def observe(self, observer: Observer) -> None: ...
    def find(self, session_id: str, /) -> SessionLike | None: ...


@final
class Telemetry:
    """Traces of the sessions of one host: `open_host(telemetry=Telemetry(provider))`.

    *tracer_provider* makes the spans (default: the program's own, `opentelemetry.trace.get_tracer_provider()`); when it
    exports them, and who shuts it down, is its owner's business. *source_name* is the name of the instrumentation,
    *agent_name* that of the agent, if it has one. With *capture_content*, spans hold what was said: prompts, answers,
    arguments, results and texts of failures, each attribute up to *content_limit* characters.

    A turn has the parent that was current where its message was sent, or that the message's note names (`traceparent`
    and `tracestate` of the W3C). While a tool or a model is called, its span is current, so that what these do is a
    part of the trace. Raises `InvalidConfiguration`.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        source_name: str = "exeunt",
        agent_name: str = "",
        capture_content: bool = False,
        content_limit: int = CONTENT_LIMIT,
    ) -> None:
        if tracer_provider is not None and not callable(getattr(tracer_provider, "get_tracer", None)):
            raise InvalidConfiguration(
                f"tracer_provider is a TracerProvider of OpenTelemetry, not {tracer_provider!r:.80}"
            )
        for name, text in (("source_name", source_name), ("agent_name", agent_name)):
            if not isinstance(text, str) or (name == "source_name" and not text):
                raise InvalidConfiguration(f"{name} is a text, not {text!r:.80}")
        if type(content_limit) is not int or content_limit < 1:
            raise InvalidConfiguration(
                f"content_limit is a number of characters of at least 1, not {content_limit!r:.80}"
            )
        provider = tracer_provider or trace.get_tracer_provider()
        self._find: Callable[[str], SessionLike | None] = _nowhere
        self._habits = Habits(
            tracer=provider.get_tracer(source_name),
            capture_content=bool(capture_content),
            content_limit=content_limit,
            agent_name=agent_name,
            find=self._look,
        )
        self._host: HostLike | None = None
        self._sessions: dict[str, SessionTrace] = {}
        self._last: OrderedDict[str, SpanContext] = OrderedDict()
        self._waiting: dict[str, dict[str, Waiting]] = {}
        """Messages that wait in sessions which are being taken up, until their first event is seen."""
        self._sweep_at = SWEEP_FROM
        self._turns = self._left_open = self._forgotten = 0

    # --- A host ------------------------------------------------------------------------------------------------

    def attach(self, host: HostLike, /) -> None:
        """Trace *host* from now on, until `detach`. `open_host(telemetry=...)` does both.

        Raises `InvalidConfiguration` if it traces a host already, or the host is traced.
        """
        if self._host is not None:
            raise InvalidConfiguration("this telemetry traces another host: give each host one of its own")
        if host.tracing is not None:
            raise InvalidConfiguration("the host is traced already: one telemetry is enough")
        self._host = host
        self._find = host.find
        host.tracing = self
        host.observe(self.observe)

    def detach(self) -> None:
        """End what is open, and trace no more. Does nothing if no host is attached."""
        if self._host is None:
            return
        for spans in self._sessions.values():
            spans.leave()
            spans.end_all()
        self._sessions.clear()
        self._waiting.clear()
        self._host.tracing = None
        self._host = None
        self._find = _nowhere

    def observe(self, session_id: str, events: Sequence[Event], /) -> None:
        """Make spans of *events*, which just happened in the session. Called once for each handler run of an actor."""
        if self._host is None:
            return
        spans = self._sessions.get(session_id)
        waiting = self._waiting.pop(session_id, None) if self._waiting else None
        try:
            if waiting is not None:
                # The first that an activation does; the one before has left what it says.
                spans = spans or self._begin(session_id)
                spans.at(events[0].time)
                self._resumed(spans)
                spans.accepted.update(waiting)
            for event in events:
                kind = event.__class__
                handler = HANDLERS.get(kind)
                if handler is None and kind is not SessionResume:
                    continue
                if spans is None:
                    spans = self._begin(session_id)
                spans.at(event.time)
                if handler is not None:
                    handler(spans, event)
                elif event.seq == event.origin.first_seq and waiting is None:
                    # Else somebody has only come to a session that was in memory.
                    self._resumed(spans)
        finally:
            # Also when a processor of the program's provider has raised.
            if spans is not None:
                self._seen(spans)

    def statistics(self) -> TelemetryStatistics:
        """Return a look at the traces. Costs nothing."""
        return TelemetryStatistics(
            open_sessions=len(self._sessions),
            turns=self._turns,
            left_open=self._left_open,
            forgotten=self._forgotten,
        )

    # --- What is current (exeunt.actors.ports.Tracing) -----------------------------------------------------------

    def taking_up(self, session_id: str, waiting: Sequence[Pending], /) -> None:
        """Know the parents of messages that were accepted by another activation, or in another process."""
        spans = self._sessions.get(session_id)
        known = {} if spans is None else spans.accepted
        found = {
            one.message_id: known.get(one.message_id) or (None, extracted(one.trace))
            for one in waiting
            if one.trace is not None
        }
        if found:
            self._waiting[session_id] = found

    def sending(self, note: dict[str, Any] | None, /) -> dict[str, Any] | None:
        """Return the note of a message with the span that is current for its sender, unless it names one."""
        return with_current(note)

    def calling_model(self, session_id: str, turn_id: str, /) -> object:
        """Make the span of a model call current in this task; return what `called` takes."""
        spans = self._sessions.get(session_id)
        turn = None if spans is None else spans.turn
        return None if turn is None or turn.turn_id != turn_id else _current(turn.chat)

    def calling_tool(self, session_id: str, call_id: str, /) -> object:
        """Make the span of a tool call current in this task; return what `called` takes."""
        return _current(self._call(session_id, call_id))

    def called(self, token: Any, /) -> None:
        """Make current again what was before."""
        if token is not None:
            contexts.detach(token)

    def carrier(self, session_id: str, call_id: str, /) -> dict[str, str]:
        """Return the span of a tool call as `traceparent` and `tracestate`; nothing where it has none."""
        span = self._call(session_id, call_id)
        return {} if span is None else carrier(span)

    def _look(self, session_id: str) -> SessionLike | None:
        return self._find(session_id)

    # --- Keeping -----------------------------------------------------------------------------------------------

    def _call(self, session_id: str, call_id: str) -> Span | None:
        spans = self._sessions.get(session_id)
        call = None if spans is None else spans.calls.get(call_id)
        return None if call is None else call.span

    def _begin(self, session_id: str) -> SessionTrace:
        if len(self._sessions) >= self._sweep_at:
            self._sweep()
        spans = self._sessions[session_id] = SessionTrace(session_id, self._habits)
        return spans

    def _sweep(self) -> None:
        """End the traces of sessions that are gone: another host that took one over did not ask them."""
        for session_id in [key for key in self._sessions if self._find(key) is None]:
            spans = self._sessions.pop(session_id)
            spans.leave()
            spans.end_all()
            self._left_open += 1
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._sessions))

    def _resumed(self, spans: SessionTrace) -> None:
        """An activation begins: what the one before has left open is over."""
        if spans.turn is not None or spans.calls:
            self._left_open += 1
        spans.leave()
        last = self._last.get(spans.session_id)
        if last is not None:
            spans.follows = (last, "session_resumed")

    def _seen(self, spans: SessionTrace) -> None:
        """All events of a handler run were seen: end what has ended."""
        session_id, turn = spans.session_id, spans.ended_turn
        if turn is not None:
            self._turns += 1
            self._last[session_id] = turn.span.get_span_context()
            self._last.move_to_end(session_id)
            if len(self._last) > REMEMBERED:
                self._last.popitem(last=False)
                self._forgotten += 1
        if spans.is_over:
            del self._sessions[session_id]
        spans.end_all()


def _current(span: Span | None) -> object:
    return None if span is None else contexts.attach(trace.set_span_in_context(span))


def _nowhere(session_id: str) -> SessionLike | None:
    return None
