"""What a client answers to a tool call, in all its forms, as the result that the model sees."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from exeunt.actors.outcomes import RESULT_TYPES, ToolResult
from exeunt.actors.text import encodable
from exeunt.actors.tools.binary_results import media_from
from exeunt.actors.tools.citable import sources_from

FAILED_TEXT = "Tool execution failed"
"""What is told of a handler that has raised."""

GONE_TEXT = "client disconnected"
"""What the model reads of a call whose client is gone."""


def result_from(result: Any, error: str | None, tool_name: str, arguments_json: str) -> ToolResult:
    """Return the result that a client sent: a text, an object of the protocol, anything else, or an error.

    An error that is not empty wins; its words stay with the client, which may have put anything into them, such as
    a path or a key: neither the model nor the log gets them. A handler that has something to say to the model
    answers with a result of the kind `failure`. A kind of result that the protocol does not know is a success, as with
    the runtime that the clients were made for.
    """
    if error:
        text = (
            f"Failed to execute `{tool_name}` tool with arguments: {arguments_json or '{}'} "
            f"due to error: Error: {FAILED_TEXT}"
        )
        return ToolResult(encodable(text), "failure", FAILED_TEXT)
    if isinstance(result, str):
        return ToolResult(encodable(result))
    if isinstance(result, Mapping):
        return _from_object(cast("Mapping[str, Any]", result))
    return ToolResult("")


def _from_object(result: Mapping[str, Any]) -> ToolResult:
    media, told = media_from(result.get("binaryResultsForLlm"))
    text = "\n".join(part for part in (_text(result.get("textResultForLlm")), *told) if part)
    blocks = result.get("contents")
    kind = result.get("resultType")
    if kind not in RESULT_TYPES:
        kind = "success"
    reason = result.get("error")
    telemetry = result.get("toolTelemetry")
    log = result.get("sessionLog")
    return ToolResult(
        text,
        cast("Any", kind),
        encodable(reason) if isinstance(reason, str) and reason else None,
        cast("dict[str, Any]", telemetry) if isinstance(telemetry, dict) else None,
        encodable(log) if isinstance(log, str) else None,
        media,
        tuple(cast("list[dict[str, Any]]", blocks)) if isinstance(blocks, list) else (),
        sources_from(result.get("citableSources")),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return encodable(value) if isinstance(value, str) else encodable(msgspec.json.encode(value).decode())


def gone() -> ToolResult:
    """Return the result of a call whose client left before it answered."""
    return ToolResult(GONE_TEXT, "failure", GONE_TEXT)
