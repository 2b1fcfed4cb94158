"""A request without the reasoning of earlier answers, for servers that do not take it back. Pure."""

import hashlib
from collections import OrderedDict

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


MOST_REMEMBERED = 1000
"""Sessions of one model whose reasoning was refused, of those that used it last: some 200 bytes each. Of others it is
sent, and refused, once more."""


class RefusedReasoning:
    """What a server has not taken back, by session: it is not asked again with every further request.

    All that is refused is as old as the newest of it, or older: what the model thinks later it gives away anew.
    """

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: OrderedDict[str, bytes] = OrderedDict()

    def note(self, request: ModelRequest) -> None:
        """The reasoning that *request* had was refused, and without it the server has answered."""
        last = _last(request, None)
        # Requests without a session are of any number of conversations.
        if last is None or not request.session_id:
            return
        self._newest[request.session_id] = _digest(request.messages[last])
        self._newest.move_to_end(request.session_id)
        if len(self._newest) > MOST_REMEMBERED:
            self._newest.popitem(last=False)

    def left_out(self, request: ModelRequest) -> ModelRequest:
        """Return *request* without what is known to be refused. Costs nothing where nothing was."""
        newest = self._newest.get(request.session_id) if self._newest else None
        last = None if newest is None else _last(request, newest)
        if last is None:
            return request
        self._newest.move_to_end(request.session_id)
        return _bare(request, last)


def without_reasoning(request: ModelRequest) -> ModelRequest | None:
    """Return *request* without the reasoning of earlier answers; `None` where it has none."""
    last = _last(request, None)
    return None if last is None else _bare(request, last)


def _last(request: ModelRequest, digest: bytes | None) -> int | None:
    """Return where the last message is that has reasoning, or the last that has this."""
    messages = request.messages
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if reasoning_blocks_of(message) is not None and digest in (None, _digest(message)):
            return position
    return None


def _digest(message: Message) -> bytes:
    kept = reasoning_blocks_of(message)
    assert kept is not None
    return hashlib.blake2b(
        f"{kept.provider}\n{kept.blocks}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def _bare(request: ModelRequest, last: int) -> ModelRequest:
    """Return *request* without the reasoning of its messages up to number *last*."""
    # The others say more than a message must, such as how a call ended.
    messages: list[Message] = [
        message
        if position > last or reasoning_blocks_of(message) is None
        else _Bare(message.role, message.content, message.tool_calls, message.tool_call_id, message.media)
        for position, message in enumerate(request.messages)
    ]
    return msgspec.structs.replace(request, messages=messages)
