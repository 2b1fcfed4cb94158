"""Traces that cross the border of the host, in the form of the W3C: `traceparent` and `tracestate`.

What comes in stands in the note of a message, and so in the log: its turn has the same parent whenever it begins.
"""

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

FIELDS = ("traceparent", "tracestate")

_w3c = TraceContextTextMapPropagator()

NOWHERE = Context()
"""The parent of a span that begins a trace. `None` would be whatever is current where an event is seen."""


def extracted(note: Mapping[str, Any] | None) -> Context:
    """Return the parent that a message's note names; `NOWHERE` without one that makes sense."""
    if not note or not isinstance(note.get("traceparent"), str):
        return NOWHERE
    carrier = {name: note[name] for name in FIELDS if isinstance(note.get(name), str)}
    return _w3c.extract(carrier, context=NOWHERE)


def carrier(span: trace.Span) -> dict[str, str]:
    """Return *span* as the parent of what somebody else does; nothing, for a span that names none."""
    found: dict[str, str] = {}
    _w3c.inject(found, trace.set_span_in_context(span, NOWHERE))
    return found


def with_current(note: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a message's note with the span that is current for its sender, unless it names one."""
    span = trace.get_current_span()
    if not span.get_span_context().is_valid or (note is not None and "traceparent" in note):
        return note
    return {**(note or {}), **carrier(span)}
