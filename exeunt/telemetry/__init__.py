"""Traces of turns, for OpenTelemetry: made of the events of sessions and their clock. Needs the extra `exeunt[otel]`.

A turn is a span `invoke_agent`, its model calls are spans `chat` below it, its tool calls spans `execute_tool`. Names
and attributes are those of OpenTelemetry's conventions for generative AI, and `exeunt.*` where these have none.

Reading order: `names` (of attributes and span events), `content` (what was said, where that is wanted), `propagation`
(traces that cross a process), `session_trace` (the open spans of one session), then from events to spans: `turns`,
`calls`, `life`; `telemetry` (all of a host's). `export` sends spans to a file or a collector, for `exeunt serve`.
"""

import importlib.util

if importlib.util.find_spec("opentelemetry") is None:
    raise ModuleNotFoundError('traces need an extra: pip install "exeunt[otel]"', name="opentelemetry")

from exeunt.telemetry.telemetry import Telemetry, TelemetryStatistics

__all__ = ["Telemetry", "TelemetryStatistics"]
