"""What is sent: the body of a chat completions request, legal also for strict servers.

Encoded anew for each call. Keeping each message's bytes would double what a session's history takes in memory,
to save about one microsecond a message.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import Message, ModelRequest, ToolCall, ToolDefinition
from exeunt.actors.text import encodable
from exeunt.models.door.jsontext import is_object, without_lone_surrogates

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)

# Servers refuse an assistant message without content and calls, and some one of white space only.
EMPTY_ANSWER_TEXT = "(empty)"

_RESERVED = frozenset({"messages", "model", "stream", "stream_options", "tools", "n"})


class _Text(msgspec.Struct, gc=False):
    role: str
    content: str


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str


class _Call(msgspec.Struct, gc=False):
    id: str
    function: _Function
    type: str = "function"


class _Calls(msgspec.Struct, gc=False):
    role: str
    content: str | None
    tool_calls: list[_Call]


class _Result(msgspec.Struct, gc=False):
    role: str
    tool_call_id: str
    content: str


_Wire = _Text | _Calls | _Result
_encode = msgspec.json.Encoder().encode


class RequestEncoder:
    """Makes the bodies of the requests for one model."""

    __slots__ = ("_developer_role", "_head", "_stream_tail", "_tail")

    def __init__(
        self,
        model: str,
        options: Mapping[str, Any],
        *,
        developer_role: Literal["system", "developer"],
        stream_usage: bool,
    ) -> None:
        """*options* are further fields of the body. Raises `InvalidConfiguration`."""
        if not isinstance(model, str) or not model.strip():
            raise InvalidConfiguration(f"model must be a name, not {model!r}")
        for name in options:
            if not isinstance(name, str) or name in _RESERVED:
                raise InvalidConfiguration(f"options must not hold {name!r}: it is set for each request")
        try:
            head = _encode({"model": model, **options})
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidConfiguration(f"model and options must be encodable as JSON: {error}") from error
        usage = b',"stream_options":{"include_usage":true}' if stream_usage else b""
        self._head = head[:-1] + b',"messages":'
        self._tail = b"}"
        self._stream_tail = b',"stream":true' + usage + b"}"
        self._developer_role = developer_role

    def encode(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return the body for *request*. Never raises for what a model or a user wrote."""
        parts = [self._head, self._messages(request.messages)]
        if request.tools:
            parts += (b',"tools":', _tools(request.tools))
        parts.append(self._stream_tail if stream else self._tail)
        return b"".join(parts)

    def _messages(self, messages: Sequence[Message]) -> bytes:
        wire = [self._wire(message) for message in messages]
        try:
            return _encode(wire)
        except UnicodeEncodeError:
            for message in wire:
                _make_encodable(message)
            return _encode(wire)

    def _wire(self, message: Message) -> _Wire:
        role = message.role
        if role == "tool":
            return _Result(role, message.tool_call_id or "", message.content)
        if role == "assistant":
            content = message.content
            blank = not content or content.isspace()
            calls = message.tool_calls
            if calls:
                return _Calls(role, None if blank else content, [_call(call) for call in calls])
            return _Text(role, EMPTY_ANSWER_TEXT if blank else content)
        return _Text(self._developer_role if role == "developer" else role, message.content)


def legal_name(name: str) -> str:
    """Return *name* as strict servers take it. A name that a model made up must not spoil the history."""
    if _LEGAL_NAME.fullmatch(name):
        return name
    return _ILLEGAL.sub("_", name)[:64] or "unknown_tool"


def legal_arguments(text: str) -> str:
    """Return *text* if it is the JSON of an object, else `{}`: what was wrong with it stands in the result."""
    if is_object(text):
        return text
    mended = without_lone_surrogates(encodable(text))
    return mended if is_object(mended) else "{}"


def _call(call: ToolCall) -> _Call:
    return _Call(call.id, _Function(legal_name(call.name), legal_arguments(call.arguments_json)))


def _tools(tools: tuple[ToolDefinition, ...]) -> bytes:
    wire = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                # An empty one is refused by some servers, and says nothing to any.
                **({"description": tool.description} if tool.description else {}),
                # Some servers refuse a schema without properties.
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]
    try:
        return _encode(wire)
    except UnicodeEncodeError:
        return encodable(json.dumps(wire, ensure_ascii=False)).encode()


def _make_encodable(message: _Wire) -> None:
    if isinstance(message, _Calls):
        if message.content is not None:
            message.content = encodable(message.content)
        for call in message.tool_calls:
            call.id = encodable(call.id)
        return
    message.content = encodable(message.content)
    if isinstance(message, _Result):
        message.tool_call_id = encodable(message.tool_call_id)
