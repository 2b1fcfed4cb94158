"""JSON-RPC 2.0: what a body says, and what is answered."""

import re
from typing import Any, NamedTuple

import msgspec

from exeunt.actors.errors import ExeuntError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
FAILED = -32603
AUTHENTICATION_REQUIRED = -32001
AUTHENTICATION_FAILED = -32002
AUTHENTICATION_NOT_CONFIGURED = -32003
TOO_MANY_REQUESTS = -32005

LONGEST_ID = 256
"""Bytes of a request's id as JSON: clients number their requests, or send UUIDs."""

NOTHING = msgspec.Raw(b"")
NULL = b"null"


class RpcError(ExeuntError):
    """A request is answered with an error: *code*, the message, and *data* for programs."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def no_session(session_id: str) -> RpcError:
    """Return what is raised for a session that is not there, or another tenant's."""
    return RpcError(FAILED, f"Session not found for sessionId: {session_id}")


class Envelope(msgspec.Struct, gc=False):
    """One message. A request has a method and an id, a notification no id, an answer no method."""

    jsonrpc: str
    id: msgspec.Raw = NOTHING
    method: str | None = None
    params: msgspec.Raw = NOTHING
    result: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


_decode = msgspec.json.Decoder(Envelope).decode
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def read(body: bytes) -> Envelope:
    """Return what *body* says. Raises `RpcError` with the code that its sender is answered."""
    try:
        message = _decode(body)
    except msgspec.ValidationError as error:
        if b"jsonrpc" not in body:
            raise RpcError(INVALID_REQUEST, "missing field `jsonrpc`") from error
        raise RpcError(
            INVALID_REQUEST, f"not a recognizable JSON-RPC request, notification, or response: {error}"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from error
    if message.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, "jsonrpc must be '2.0'")
    key = bytes(message.id)
    if len(key) > LONGEST_ID or key[:1] in (b"{", b"[", b"t", b"f"):
        raise RpcError(INVALID_REQUEST, "an id is a number or a text")
    return message


_HEAD = re.compile(
    rb"""\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*
        |"id"\s*:\s*(?P<id>-?\d{1,20}|"[^"\\\x00-\x1f]{1,254}")\s*,\s*
        |"method"\s*:\s*"(?P<method>[^"\\\x00-\x1f]{1,200})"\s*,\s*)+""",
    re.VERBOSE,
)
"""The members before the parameters or the result of a message: clients write them first."""


class Head(NamedTuple):
    """What the beginning of a message says of it."""

    key: bytes = b""
    """The id, as JSON; nothing where it has none, or not before its parameters."""
    method: str = ""
    is_answer: bool = False


def head(beginning: bytes) -> Head:
    """Return what a message says of itself of which only the beginning is there."""
    found = _HEAD.match(beginning)
    if found is None:
        return Head()
    method = (found["method"] or b"").decode("utf-8", "replace")
    return Head(found["id"] or b"", method, beginning.startswith((b'"result"', b'"error"'), found.end()))


def answer(key: bytes, result: Any) -> bytes:
    """Return the body that answers the request *key* with *result*."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key or NULL, encode(result))


def refusal(key: bytes, error: RpcError) -> bytes:
    """Return the body that answers the request *key* with an error; without a key, its id is null."""
    content: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        content["data"] = error.data
    try:
        text = encode(content)
    except (TypeError, ValueError):
        text = encode({"code": error.code, "message": ascii(str(error))})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key or NULL, text)


def request(number: int, method: str, params: Any) -> bytes:
    """Return the body of a request of ours."""
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (number, encode(method), encode(params))


def notification(method: str, params: Any) -> bytes:
    """Return the body of a message that nobody answers."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params))
