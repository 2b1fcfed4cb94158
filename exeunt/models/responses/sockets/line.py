"""One connection, and what the server at its other end remembers of the last answer."""

import hashlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs
import msgspec

from exeunt.models.responses.requests import Encoded

MOST_OUTDATED = 20
"""Messages that hold no more and that a server still sees. Each says that later ones supersede it, and is some 50
tokens of each further call. With more of them the request is sent whole, without them."""


class Socket(Protocol):
    """An open web socket. Whoever holds it is its only user; one that raised or was cancelled is of no more use."""

    async def send(self, message: bytes) -> None:
        """Send one text message. Raises `ModelError`."""
        ...

    async def receive(self) -> bytes:
        """Return the next message, `b""` when the other side has closed. Raises `ModelError`."""
        ...

    async def rest(self) -> bool:
        """Say that it is between two requests; return whether the next one can be sent, as far as is known here."""
        ...

    def close(self) -> None:
        """Close it at once, without waiting. May be called twice."""
        ...

    def abandon(self) -> None:
        """Free what it holds of the system. For finalizers, which may run outside of trio."""
        ...


@runtime_checkable
class SocketOpener(Protocol):
    """What opens web sockets by way of somebody else, in the place of an HTTP client."""

    async def open_socket(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]], *, deadline: float, max_bytes: int
    ) -> Socket:
        """Return an open web socket. *max_bytes* bound one message. Raises `ModelError`."""
        ...


@attrs.frozen
class Remembered:
    """The last answer on a connection: a request that goes on from there holds only what is new."""

    response_id: str
    items: int
    """How many elements of `input` the server has seen that stay, those of its answer too."""
    digest: bytes
    """Of those elements."""
    outdated: int = 0
    """Elements that it has seen besides, and that no request would hold any more."""


class Line:
    """A connection for the requests of one session."""

    __slots__ = ("began", "idle_since", "last", "served", "session_id", "socket")

    def __init__(self, socket: Socket, session_id: str, now: float) -> None:
        self.socket = socket
        self.session_id = session_id
        self.began = now
        self.idle_since = now
        self.served = 0
        """Requests that it has served."""
        self.last: Remembered | None = None

    def continuing(self, parts: Encoded) -> bytes | None:
        """Return the message for a request that goes on from the last answer; `None` where it does not.

        Then that is forgotten: the request is sent whole, and makes the server begin anew.
        """
        last = self.last
        if (
            last is None
            or last.outdated > MOST_OUTDATED
            or len(parts.lasting) <= last.items
            or _digest(parts.items[: last.items]) != last.digest
        ):
            self.last = None
            return None
        previous = b',"previous_response_id":' + msgspec.json.encode(last.response_id)
        return _message(parts.head + previous, parts.items[last.items :], parts.tail)

    def remember(self, response_id: str, parts: Encoded, answer: Sequence[bytes]) -> None:
        """Note what the server knows now: the request, and its answer as a later request will hold it.

        What stood in this request only, such as the credits that were left, the server goes on seeing.
        """
        known = [*parts.lasting, *answer]
        outdated = parts.passing + (0 if self.last is None else self.last.outdated)
        self.last = Remembered(response_id, len(known), _digest(known), outdated) if response_id else None


def whole(parts: Encoded) -> bytes:
    """Return the message for a request with all of its context."""
    return _message(parts.head, parts.items, parts.tail)


def _message(head: bytes, items: Sequence[bytes], tail: bytes) -> bytes:
    return b'{"type":"response.create",%b,"input":[%b]%b}' % (head[1:], b",".join(items), tail)


def _digest(items: Sequence[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        digest.update(b"%d:" % len(item))
        digest.update(item)
    return digest.digest()
