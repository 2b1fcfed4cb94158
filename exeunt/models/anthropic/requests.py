"""What is sent: the body of a request to the Messages API, legal also for strict servers.

Encoded anew for each call, as in `exeunt.models.openai.requests`, and for the same reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from exeunt.actors.citations import CitableSource
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MediaSupport, Message, ModelRequest, ToolDefinition, is_transient
from exeunt.models.anthropic.blocks import (
    EPHEMERAL,
    Block,
    Said,
    Text,
    ToolResult,
    ToolUse,
    make_encodable,
)
from exeunt.models.anthropic.effort import fields_of_effort, most_tokens_of
from exeunt.models.anthropic.media import search_result, shown_blocks, sources_of
from exeunt.models.anthropic.thoughts import blocks_with_thoughts
from exeunt.models.door.bodies import check_described, encoded_tools, open_object
from exeunt.models.door.calls import EMPTY_TEXT, legal_arguments, legal_id, legal_name
from exeunt.models.media import IMAGES_AND_PDFS, fitted

_RESERVED = frozenset({"messages", "model", "stream", "system", "tools"})

# Of the conversation: the end of this request, and that of the one before, which the server has in its cache. With
# the end of the preamble that makes three; an API takes four.
_BREAKPOINTS = 2

_encode = msgspec.json.Encoder().encode


class RequestEncoder:
    """Makes the bodies of the requests for one model."""

    __slots__ = ("_cached", "_cited", "_head", "_head_without_thinking", "_media", "_tag")

    def __init__(
        self,
        model: str,
        options: Mapping[str, Any],
        *,
        max_tokens: int | None,
        effort: str | None,
        prompt_cache: bool,
        citations: bool,
        media: MediaSupport | None,
        tag: str,
    ) -> None:
        """*options* are further fields of the body, and win. *tag* marks the thoughts that may be given back.

        Raises `InvalidConfiguration`.
        """
        check_described(model, options, _RESERVED, media)
        most = most_tokens_of(model) if max_tokens is None else max_tokens
        most = options.get("max_tokens", most)
        if not isinstance(most, int) or isinstance(most, bool) or most <= 0:
            raise InvalidConfiguration(f"max_tokens must be a whole number above zero, not {most!r}")
        fields = {"model": model, "max_tokens": most, **fields_of_effort(model, effort, most), **options}
        self._head = open_object(fields)
        thinking = fields.get("thinking")
        budgeted = isinstance(thinking, Mapping) and "budget_tokens" in thinking
        self._head_without_thinking = (
            open_object({name: value for name, value in fields.items() if name != "thinking"})
            if budgeted
            else None
        )
        self._cached = prompt_cache
        self._cited = citations
        self._media = media or IMAGES_AND_PDFS
        self._tag = tag

    def encode(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return the body for *request*. Never raises for what a model or a user wrote."""
        system, said = self._conversation(request)
        # With a budget, the API wants to see the thoughts that a run of tool calls began with. There are none when
        # another model began it.
        head = self._head
        if self._head_without_thinking is not None and _runs_without_thoughts(said):
            head = self._head_without_thinking
        if self._cached:
            _mark(system, said, sum(map(is_transient, request.messages[-1:])))
        parts = [head]
        if request.tools:
            parts += (b',"tools":', _tools(request.tools, cached=self._cached and not system))
        if system:
            parts += (b',"system":', _encoded(system))
        parts += (b',"messages":', _encoded(said))
        parts.append(b',"stream":true}' if stream else b"}")
        return b"".join(parts)

    def _conversation(self, request: ModelRequest) -> tuple[list[Text], list[Said]]:
        """Return the system's blocks, and the others by turns: what follows from the same side is one message."""
        system: list[Text] = []
        said: list[Said] = []
        # To be cited, a text has to be a document of its own.
        shown = fitted(request.messages, request.media or self._media, native_texts=self._cited)
        for message, whole in zip(shown, request.messages, strict=True):
            role = message.role
            if role in ("system", "developer"):
                if message.content.strip():
                    system.append(Text(message.content))
            elif role == "assistant":
                _add(said, "assistant", self._answer(message))
            elif role == "tool":
                # Events of the log say how a call ended; other messages need not.
                failed = getattr(whole, "success", True) is False
                sources = sources_of(whole) if self._cited else ()
                _add(said, "user", [self._result(message, failed, sources)])
            else:
                _add(said, "user", shown_blocks(message, cited=self._cited) or [Text(EMPTY_TEXT)])
        if not said or said[0].role != "user":
            # A conversation begins with the user, also where its begin was taken away.
            said.insert(0, Said("user", [Text(EMPTY_TEXT)]))
        if said[-1].role != "user":
            # What ends with the model's own words is an answer to be continued, which few models take.
            said.append(Said("user", [Text(EMPTY_TEXT)]))
        return system, said

    def _answer(self, message: Message) -> list[Block]:
        content = message.content
        text = content if content.strip() else ""
        calls: list[Block] = [
            ToolUse(
                legal_id(call.id),
                legal_name(call.name),
                msgspec.Raw(legal_arguments(call.arguments_json).encode()),
            )
            for call in message.tool_calls
        ]
        blocks = blocks_with_thoughts(message, self._tag, text, calls)
        return blocks or [Text(EMPTY_TEXT)]

    def _result(self, message: Message, failed: bool, sources: tuple[CitableSource, ...]) -> ToolResult:
        content = message.content
        call_id = legal_id(message.tool_call_id or "")
        if message.media or sources:
            # The API takes nothing but text in a result that is marked as an error.
            shown = shown_blocks(message, cited=self._cited)
            return ToolResult(call_id, [*shown, *map(search_result, sources)])
        return ToolResult(call_id, content if content.strip() else EMPTY_TEXT, failed)


def _add(said: list[Said], role: str, blocks: Sequence[Block]) -> None:
    if said and said[-1].role == role:
        said[-1].content += blocks
    else:
        said.append(Said(role, [*blocks]))


def _runs_without_thoughts(said: Sequence[Said]) -> bool:
    """Whether the tool calls that are being answered began without a thought."""
    first: Said | None = None
    for message in reversed(said):
        if message.role == "assistant":
            first = message
        elif not any(type(block) is ToolResult for block in message.content):
            break
    return first is not None and isinstance(first.content[0], Text | ToolUse)


def _mark(system: list[Text], said: list[Said], transient: int) -> None:
    """Say up to where a later request will be the same: not with the last *transient* blocks of this one."""
    if system:
        system[-1].cache_control = EPHEMERAL
    left = _BREAKPOINTS
    for message in reversed(said):
        blocks = message.content
        block = blocks[-1 - transient] if len(blocks) > transient else None
        transient = 0
        if message.role == "user" and block is not None and not isinstance(block, ToolUse | msgspec.Raw):
            block.cache_control = EPHEMERAL
            left -= 1
            if not left:
                return


def _tools(tools: tuple[ToolDefinition, ...], *, cached: bool) -> bytes:
    wire = [
        {
            "name": tool.name,
            # An empty one says nothing.
            **({"description": tool.description} if tool.description else {}),
            "input_schema": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in tools
    ]
    if cached:
        wire[-1]["cache_control"] = {"type": "ephemeral"}
    return encoded_tools(wire)


def _encoded(value: list[Text] | list[Said]) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        for each in value:
            make_encodable(each)
        return _encode(value)
