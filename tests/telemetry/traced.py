"""Spans in memory, and what holds of all of them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from exeunt.actors.events import Event, ToolExecutionComplete, TurnEnd
from exeunt.telemetry import Telemetry


class Traces:
    """A program's own tracing, with what it has exported."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        self._begun = _Begun()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self._begun)
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("the program")
        self.ends = Counter[str]()
        """Ends of turns and of calls, as the events tell them."""

    def telemetry(self, **options: Any) -> Telemetry:
        """Telemetry that makes its spans here."""
        return Telemetry(self.provider, **options)

    def count(self, session_id: str, events: Sequence[Event], /) -> None:
        """An observer: counts what there must be a span of."""
        for event in events:
            if isinstance(event, TurnEnd):
                self.ends[f"turn {event.reason}"] += 1
            elif isinstance(event, ToolExecutionComplete):
                self.ends[f"call {event.outcome}"] += 1

    def told_ends(self) -> Counter[str]:
        """The same, as the spans tell them. Spans that were left open tell none."""
        told = Counter[str]()
        for operation, kind, name in (
            ("invoke_agent", "turn", "exeunt.turn.reason"),
            ("execute_tool", "call", "exeunt.tool.outcome"),
        ):
            told.update(
                f"{kind} {about(span)[name]}" for span in self.named(operation) if name in about(span)
            )
        return told

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of that."""
        return list(self._memory.get_finished_spans())

    def named(self, operation: str) -> list[ReadableSpan]:
        """The host's spans of an operation."""
        return [span for span in self.spans if about(span).get("gen_ai.operation.name") == operation]

    @property
    def turns(self) -> list[ReadableSpan]:
        """The spans of turns."""
        return self.named("invoke_agent")

    @property
    def chats(self) -> list[ReadableSpan]:
        """The spans of model calls."""
        return self.named("chat")

    @property
    def calls(self) -> list[ReadableSpan]:
        """The spans of tool calls."""
        return self.named("execute_tool")

    def check(self) -> None:
        """See that every span has ended, and that each trace is a tree in which children lie within their parents."""
        spans = {span_id(span): span for span in self.spans}
        assert len(spans) == len(self.spans)
        assert set(spans) == self._begun.ids
        for span in spans.values():
            assert span.start_time is not None
            assert span.end_time is not None
            assert span.start_time <= span.end_time
            operation = about(span).get("gen_ai.operation.name")
            parent = None if span.parent is None else spans.get(span.parent.span_id)
            if operation == "chat":
                assert parent is not None
            if parent is None:
                continue
            assert trace_id(parent) == trace_id(span)
            if operation in ("chat", "execute_tool"):
                assert about(parent)["gen_ai.operation.name"] == "invoke_agent"
                assert parent.start_time is not None
                assert parent.end_time is not None
                assert parent.start_time <= span.start_time <= span.end_time <= parent.end_time


class _Begun(SpanProcessor):
    """Notes which spans have begun."""

    def __init__(self) -> None:
        self.ids: set[int] = set()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.ids.add(span.get_span_context().span_id)


def about(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def span_id(span: ReadableSpan) -> int:
    """The id of a span."""
    return _context(span).span_id


def trace_id(span: ReadableSpan) -> int:
    """The id of a span's trace."""
    return _context(span).trace_id


def trace_state(span: ReadableSpan, vendor: str) -> str | None:
    """What a vendor has put into the state of a span's trace."""
    return _context(span).trace_state.get(vendor)


def _context(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def parent_id(span: ReadableSpan) -> int | None:
    """The id of a span's parent; `None` for one that begins a trace."""
    return None if span.parent is None else span.parent.span_id


def happened(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    """The span events of a span."""
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def linked(span: ReadableSpan) -> list[tuple[int, dict[str, Any]]]:
    """The ids of the spans that a span is linked to, and why."""
    return [(link.context.span_id, dict(link.attributes or {})) for link in span.links]


def seconds(span: ReadableSpan) -> float:
    """How long a span has taken."""
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9
