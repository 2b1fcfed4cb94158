"""Traces of which the turns of clients are a part, in the form of the W3C.

The host's own telemetry makes the spans (`exeunt.telemetry`); `external_tool.requested` has that of a call.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served

LONGEST = 512
"""Characters of a header: what the W3C wants to be passed on of `tracestate`. A longer one is left out."""


def trace_of(served: "Served", traceparent: str | None, tracestate: str | None) -> dict[str, str]:
    """Return what a message is a part of: what was sent with it, or else with the session's configuration."""
    if not traceparent:
        traceparent, tracestate = served.config.traceparent, served.config.tracestate
    if not traceparent or len(traceparent) > LONGEST:
        return {}
    found = {"traceparent": traceparent}
    if tracestate and len(tracestate) <= LONGEST:
        found["tracestate"] = tracestate
    return found
