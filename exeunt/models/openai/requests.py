"""What is sent: the body of a chat completions request, legal also for strict servers.

Encoded anew for each call. Keeping each message's bytes would double what a session's history takes in memory,
to save about one microsecond a message.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from exeunt.actors.models import MediaSupport, Message, ModelRequest, ToolCall, ToolDefinition
from exeunt.actors.text import encodable
from exeunt.models.door.bodies import check_described, encoded_tools, open_object
from exeunt.models.door.calls import EMPTY_TEXT, legal_arguments, legal_name
from exeunt.models.media import IMAGES_AND_PDFS, fitted, tool_names
from exeunt.models.openai.parts import Parts, parts_of, results_of

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


_Wire = _Text | _Calls | _Result | Parts
_encode = msgspec.json.Encoder().encode


class RequestEncoder:
    """Makes the bodies of the requests for one model."""

    __slots__ = ("_developer_role", "_head", "_media", "_stream_tail", "_tail")

    def __init__(
        self,
        model: str,
        options: Mapping[str, Any],
        *,
        developer_role: Literal["system", "developer"],
        stream_usage: bool,
        media: MediaSupport | None = None,
    ) -> None:
        """*options* are further fields of the body. Raises `InvalidConfiguration`."""
        check_described(model, options, _RESERVED, media)
        usage = b',"stream_options":{"include_usage":true}' if stream_usage else b""
        self._head = open_object({"model": model, **options}) + b',"messages":'
        self._tail = b"}"
        self._stream_tail = b',"stream":true' + usage + b"}"
        self._developer_role = developer_role
        self._media = media or IMAGES_AND_PDFS

    def encode(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return the body for *request*. Never raises for what a model or a user wrote."""
        messages = fitted(request.messages, request.media or self._media)
        parts = [self._head, self._messages(messages, with_media=messages is not request.messages)]
        if request.tools:
            parts += (b',"tools":', _tools(request.tools))
        parts.append(self._stream_tail if stream else self._tail)
        return b"".join(parts)

    def _messages(self, messages: Sequence[Message], *, with_media: bool) -> bytes:
        wire = [self._wire(message) for message in messages]
        if with_media:
            wire = _with_results_media(messages, wire)
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
            return _Text(role, EMPTY_TEXT if blank else content)
        if message.media:
            return parts_of(message)
        return _Text(self._developer_role if role == "developer" else role, message.content)


def _with_results_media(messages: Sequence[Message], wire: Sequence[_Wire]) -> list[_Wire]:
    """Put what the results of each batch show behind the last of them."""
    names = tool_names(messages)
    result: list[_Wire] = []
    showing: list[Message] = []
    for message, on_wire in zip(messages, wire, strict=True):
        if message.role != "tool" and showing:
            result.append(results_of(showing, names))
            showing = []
        result.append(on_wire)
        if message.role == "tool" and message.media:
            showing.append(message)
    if showing:
        result.append(results_of(showing, names))
    return result


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
    return encoded_tools(wire)


def _make_encodable(message: _Wire) -> None:
    if isinstance(message, _Calls):
        if message.content is not None:
            message.content = encodable(message.content)
        for call in message.tool_calls:
            call.id = encodable(call.id)
        return
    if isinstance(message, Parts):
        for part in message.content:
            if "text" in part:
                part["text"] = encodable(part["text"])
        return
    message.content = encodable(message.content)
    if isinstance(message, _Result):
        message.tool_call_id = encodable(message.tool_call_id)
