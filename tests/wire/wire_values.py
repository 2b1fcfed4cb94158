"""Values that a hostile client might send: of the right shape and wrong, mostly only just."""

import types
import typing
from functools import cache
from typing import Any, Literal

import attrs
import msgspec
from hypothesis import strategies as st

from exeunt.wire.framing import frame

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)

WORDS = st.sampled_from(
    ["s", "other", "nobody", "", "t", "clear_context", "approve-once", "enqueue", "immediate", "plan"]
)
"""What means something to a server: sessions, tools, decisions, modes."""

# Few, so that one request has the id of another that waits. Not those that the client counts by itself: an answer to
# one request would pass for that to another.
IDS = st.integers(1_000, 1_006) | st.just(-1) | WORDS | st.none() | st.floats(1_000, 1_002)

NUMBERS = st.sampled_from([-1, 0, 0, 1, 2, 60_000]) | st.integers(-(2**70), 2**70)


def fields(params: type) -> dict[str, Any]:
    """The parameters of a method and their types, as they are on the wire."""
    hints = typing.get_type_hints(params)
    if attrs.has(params):
        return {field.name: hints[field.name] for field in attrs.fields(params)}
    return {name: hints[name] for name in getattr(params, "__struct_fields__", ())}


@cache
def like(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, mostly."""
    return st.one_of(_right(kind), _right(kind), _right(kind), WORDS, JSON)


def _right(kind: Any) -> st.SearchStrategy[Any]:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(_right, inside))
    if origin is Literal:
        return st.sampled_from(inside)
    if origin is list:
        return st.lists(st.deferred(lambda: like(inside[0])), max_size=3)
    if origin is dict:
        return st.dictionaries(WORDS, st.deferred(lambda: like(inside[1])), max_size=3)
    if isinstance(kind, type) and (attrs.has(kind) or issubclass(kind, msgspec.Struct)):
        return st.deferred(lambda: objects(kind))
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: WORDS | st.text(max_size=20),
        int: NUMBERS,
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
    }
    return simple.get(kind, st.none() if kind is type(None) else JSON)


@st.composite
def objects(draw: st.DrawFn, kind: type) -> dict[str, Any]:
    """An object with the fields of `kind`: those that must be there nearly always, sometimes others too."""
    made = {name: draw(like(hint)) for name, hint in fields(kind).items() if draw(st.integers(0, 3))}
    return made | draw(st.dictionaries(st.text(max_size=8), JSON, max_size=1))


LENGTHS = st.sampled_from(
    ["-1", "+3", "1_0", "٣", "0x10", "1e3", "", " ", "999999999999999", "9" * 30, "1.0"]
)
"""What is not, or should not be, how long a frame is."""

BODIES = st.sampled_from(
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[" * 5_000,
        b'{"jsonrpc":"2.0","id":' * 2_000,
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b"[" * 5_000,
        b'{"jsonrpc":"2.0","id":7,"method":"session.create","params":' + b'{"a":' * 5_000,
        b'{"jsonrpc":"2.0","id":7,"method":"p\xff","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"message":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5_000,
    ]
)
"""Messages on which readers of JSON are known to fall."""


@st.composite
def near_frames(draw: st.DrawFn) -> bytes:
    """A frame whose length is not that of its body."""
    body = draw(BODIES | st.binary(max_size=40))
    wrong = len(body) + draw(st.integers(-2, 2))
    length = draw(LENGTHS | st.just(str(wrong)))
    name = draw(st.sampled_from(["Content-Length", "content-length", "Content-Type", ""]))
    return f"{name}: {length}\r\n\r\n".encode() + body


PIECES = st.binary(max_size=60) | near_frames() | BODIES.map(frame)
"""Bytes of a stream, whole frames or not."""
