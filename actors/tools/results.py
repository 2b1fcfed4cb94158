"""What a handler returns, as the result that the model sees."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from exeunt.actors.media import Media
from exeunt.actors.outcomes import RESULT_TYPES, ToolResult
from exeunt.actors.text import encodable
from exeunt.actors.tools.binary_results import media_from
from exeunt.actors.tools.citable import sources_from
from exeunt.actors.tools.pydantic_models import is_model

# The fields of the Copilot SDK's result object, as the wire and as Python write them.
_FIELDS = {
    "textResultForLlm": "text_result_for_llm",
    "resultType": "result_type",
    "toolTelemetry": "tool_telemetry",
    "sessionLog": "session_log",
    "binaryResultsForLlm": "binary_results_for_llm",
    "citableSources": "citable_sources",
    "error": "error",
}
_KNOWN = frozenset(_FIELDS) | frozenset(_FIELDS.values())


def to_result(value: Any) -> ToolResult:
    """Turn what a handler returned into a `ToolResult`. Raises nothing.

    A text is taken as it is, `None` is an empty text, a `ToolResult` (or a mapping with the fields of the
    Copilot SDK's) means what it says, `Media` alone or in a list with texts are shown, and anything else becomes
    compact JSON. What cannot is a failure that names the type: never a success with a text that nobody wrote.
    """
    try:
        if type(value) is str:
            return ToolResult(encodable(value))
        if isinstance(value, ToolResult):
            return _encodable(value)
        if _shows_media(value):
            return _with_media(value)
        if _is_mapping(value) and _is_result_object(value):
            return _from_result_object(value)
        return ToolResult(_text(value))
    except Exception as error:  # noqa: BLE001 - properties and models of the user's classes may raise anything
        if inspect.iscoroutine(value):
            value.close()  # It would warn, much later and elsewhere, that it was never awaited.
        kind = _name_of(value)
        return ToolResult(
            f"The tool returned a value of type {kind}, which cannot be shown.",
            "failure",
            encodable(f"{type(error).__name__}: {error}"),
        )


def _shows_media(value: Any) -> bool:
    """Whether it is `Media`, or a list of `Media` and texts."""
    if type(value) is list or type(value) is tuple:
        parts = cast("Sequence[Any]", value)
        return any(isinstance(part, Media) for part in parts) and all(
            isinstance(part, (Media, str)) for part in parts
        )
    return isinstance(value, Media)


def _with_media(value: Any) -> ToolResult:
    parts: Sequence[Any] = (value,) if isinstance(value, Media) else value
    texts = [_text(part) for part in parts if isinstance(part, str)]
    media = tuple(part for part in parts if isinstance(part, Media))
    return ToolResult("\n".join(texts), media=media)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _name_of(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(str.__str__(value))  # An enum of texts would print its name.
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_repaired(msgspec.to_builtins(value, enc_hook=_plain))).decode()


def _repaired(value: Any) -> Any:
    """*value*, of builtin types, with every text in it encodable."""
    if isinstance(value, str):
        return encodable(value)
    if _is_mapping(value):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired(item) for item in cast("Iterable[Any]", value)]
    return value


def _plain(value: Any) -> Any:
    if is_model(value):
        return value.model_dump(mode="json")
    if _is_mapping(value):
        return dict(value)
    raise NotImplementedError(f"no JSON for objects of type {_name_of(value)}")


def _is_result_object(value: Mapping[Any, Any]) -> bool:
    if "text_result_for_llm" in value or "textResultForLlm" in value:
        return True
    # Without a text, "result_type" alone may be a word of the tool's own.
    return ("result_type" in value or "resultType" in value) and all(key in _KNOWN for key in value)


def _from_result_object(value: Mapping[Any, Any]) -> ToolResult:
    fields = {_FIELDS.get(key, key): item for key, item in value.items()}
    result_type = fields.get("result_type", "success")
    text, error = _text(fields.get("text_result_for_llm")), fields.get("error")
    telemetry, log = fields.get("tool_telemetry"), fields.get("session_log")
    if result_type not in RESULT_TYPES:
        error = f"unknown result type {result_type!r:.80}"
        text, result_type = f"The tool's result has an {error}. Its text was: {text}", "failure"
    media, told = media_from(fields.get("binary_results_for_llm"))
    return ToolResult(
        encodable("\n".join((text, *told)) if told else text),
        result_type,
        None if error is None else _text(error),
        cast("dict[str, Any]", telemetry) if isinstance(telemetry, dict) else None,
        None if log is None else _text(log),
        media,
        sources=sources_from(fields.get("citable_sources")),
    )


def _encodable(result: ToolResult) -> ToolResult:
    """*result* itself, unless a text of it has to be repaired."""
    text = _text(result.text_result_for_llm)
    error = None if result.error is None else _text(result.error)
    log = None if result.session_log is None else _text(result.session_log)
    if (text, error, log) == (result.text_result_for_llm, result.error, result.session_log):
        return result
    return msgspec.structs.replace(result, text_result_for_llm=text, error=error, session_log=log)
