"""What is sent: the body of a Responses request, legal also for strict servers.

Encoded anew for each call, as for chat completions, and whole: the context is the session's, so the server is asked
to store nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from exeunt.actors.models import (
    MediaSupport,
    Message,
    ModelRequest,
    ModelResponse,
    ReasoningBlocks,
    ToolCall,
    ToolDefinition,
    is_transient,
    reasoning_blocks_of,
)
from exeunt.actors.text import encodable
from exeunt.models.door.bodies import check_described, encoded_tools, open_object
from exeunt.models.door.calls import EMPTY_TEXT, legal_arguments, legal_name
from exeunt.models.door.jsontext import is_list
from exeunt.models.media import IMAGES_AND_PDFS, fitted
from exeunt.models.responses.items import Call, Content, Item, Output, Text, parts_of
from exeunt.models.responses.kept import ENCRYPTED, restored

# What the context decides is not to be set by options; nor is who keeps it, beside `store`.
_RESERVED = frozenset(
    {
        "background",
        "conversation",
        "input",
        "instructions",
        "model",
        "previous_response_id",
        "stream",
        "tools",
    }
)

# Servers refuse the id of a call that is longer, and other APIs make such ids.
_LONGEST_ID = 64

_encode = msgspec.json.Encoder().encode


class Encoded(msgspec.Struct, frozen=True):
    """A request in its parts: for who sends some of the items only."""

    head: bytes
    """The beginning of the body: an object that is still open, with at least one field."""
    items: Sequence[bytes]
    """The elements of `input`."""
    tail: bytes
    """Further fields, each with a comma before it."""
    passing: int = 0
    """How many of the last items stand in this request only: no later one will hold them."""

    @property
    def lasting(self) -> Sequence[bytes]:
        """The elements that a later request of the same conversation begins with."""
        return self.items[: len(self.items) - self.passing]


class RequestEncoder:
    """Makes the bodies of the requests for one model."""

    __slots__ = ("_developer_role", "_head", "_keeper", "_media")

    def __init__(
        self,
        model: str,
        options: Mapping[str, Any],
        *,
        developer_role: Literal["system", "developer"],
        keeper: str,
        media: MediaSupport | None = None,
    ) -> None:
        """*options* are further fields of the body. *keeper* is the name under which this door keeps reasoning.

        Raises `InvalidConfiguration`.
        """
        check_described(model, options, _RESERVED, media)
        fields = {"model": model, "store": False, **options}
        if fields.get("reasoning") and not fields["store"]:
            # Without it some servers give nothing that a later request could hold. Others refuse to be asked for it by
            # a model that does not reason, so only who sets `reasoning` asks.
            fields["include"] = _with_encrypted(fields.get("include"))
        self._head = open_object(fields)
        self._developer_role = developer_role
        self._keeper = keeper
        self._media = media or IMAGES_AND_PDFS

    def encode(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return the body for *request*. Never raises for what a model or a user wrote."""
        instructions, items = self._items(request)
        try:
            text = _encode(items)
        except UnicodeEncodeError:
            for item in items:
                _make_encodable(item)
            text = _encode(items)
        parts = [self._head, *instructions, b',"input":', text, *_tools(request.tools)]
        parts.append(b',"stream":true}' if stream else b"}")
        return b"".join(parts)

    def encode_parts(self, request: ModelRequest) -> Encoded:
        """Return the same in parts, without `stream`."""
        instructions, items = self._items(request)
        for item in items:
            _make_encodable(item)
        return Encoded(
            self._head + b"".join(instructions),
            [_encode(item) for item in items],
            b"".join(_tools(request.tools)),
            sum(map(is_transient, request.messages[-1:])),
        )

    def encode_answer(self, answer: ModelResponse) -> list[bytes]:
        """Return the items that a later request will hold for *answer*, if the session takes it as it is."""
        items: list[Item] = []
        self._add_answer(answer.content, answer.tool_calls, answer.reasoning_blocks, items)
        for item in items:
            _make_encodable(item)
        return [_encode(item) for item in items]

    def _items(self, request: ModelRequest) -> tuple[list[bytes], list[Item]]:
        system: list[str] = []
        items: list[Item] = []
        for message in fitted(request.messages, request.media or self._media):
            if message.role == "system" and not items:
                system.append(message.content)
            else:
                self._add(message, items)
        text = encodable("\n\n".join(each for each in system if each))
        return [b',"instructions":', _encode(text)] if text else [], items

    def _add(self, message: Message, items: list[Item]) -> None:
        role = message.role
        if role == "tool":
            output = parts_of(message) if message.media else message.content
            items.append(Output(legal_id(message.tool_call_id or ""), output))
        elif role == "assistant":
            self._add_answer(message.content, message.tool_calls, reasoning_blocks_of(message), items)
        else:
            content = parts_of(message) if message.media else message.content
            items.append(Text(self._developer_role if role == "developer" else role, content))

    def _add_answer(
        self, text: str, made: Sequence[ToolCall], kept: ReasoningBlocks | None, items: list[Item]
    ) -> None:
        calls = [
            Call(legal_id(call.id), legal_name(call.name), legal_arguments(call.arguments_json))
            for call in made
        ]
        blank = not text or text.isspace()
        if kept is not None and kept.provider == self._keeper and not (blank and not calls):
            items += restored(kept.blocks, text, calls)
            return
        if not blank or not calls:
            items.append(Text("assistant", EMPTY_TEXT if blank else text))
        items += calls


def legal_id(call_id: str) -> str:
    """Return *call_id* as servers take it: one that is too long becomes another, always the same."""
    if len(call_id) <= _LONGEST_ID:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _with_encrypted(include: Any) -> list[Any]:
    given: list[Any] = include if is_list(include) else []
    return given if ENCRYPTED in given else [*given, ENCRYPTED]


def _tools(tools: tuple[ToolDefinition, ...]) -> list[bytes]:
    if not tools:
        return []
    wire = [
        {
            "type": "function",
            "name": tool.name,
            # An empty one is refused by some servers, and says nothing to any.
            **({"description": tool.description} if tool.description else {}),
            # Some servers refuse a schema without properties.
            "parameters": tool.parameters or {"type": "object", "properties": {}},
            # Unless told otherwise the API holds a schema to rules that few schemas keep.
            "strict": False,
        }
        for tool in tools
    ]
    return [b',"tools":', encoded_tools(wire)]


def _make_encodable(item: Item) -> None:
    if isinstance(item, Text):
        item.content = _encodable(item.content)
    elif isinstance(item, Output):
        item.output = _encodable(item.output)
        item.call_id = encodable(item.call_id)
    elif isinstance(item, Call):
        item.call_id = encodable(item.call_id)


def _encodable(content: Content) -> Content:
    if isinstance(content, str):
        return encodable(content)
    return [
        {key: encodable(value) if isinstance(value, str) else value for key, value in part.items()}
        for part in content
    ]
