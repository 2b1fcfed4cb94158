"""A request without the reasoning of earlier answers, for servers that do not take it back. Pure."""

import msgspec

from exeunt.actors.media import Media
from exeunt.actors.models import Message, ModelRequest, Role, ToolCall, reasoning_blocks_of


class _Bare(msgspec.Struct, frozen=True, gc=False):
    """An answer without what its model wants to be given back."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    media: tuple[Media, ...]


def without_reasoning(request: ModelRequest) -> ModelRequest | None:
    """Return *request* without the reasoning of earlier answers; `None` where it has none."""
    if all(reasoning_blocks_of(message) is None for message in request.messages):
        return None
    # The others say more than a message must, such as how a call ended.
    messages: list[Message] = [
        message
        if reasoning_blocks_of(message) is None
        else _Bare(message.role, message.content, message.tool_calls, message.tool_call_id, message.media)
        for message in request.messages
    ]
    return msgspec.structs.replace(request, messages=messages)
