"""Frames and messages: from any bytes come bodies, errors with a code, or an end; never a crash."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt.testing import ScriptedModel
from exeunt.wire import rpc
from exeunt.wire.framing import LONGEST_HEAD, FrameError, FrameReader, frame
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import open_wire

LIMIT = 2048


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(1, 80), max_size=40))
def test_frames_come_out_whole_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(body) for body in bodies)
    reader, seen = FrameReader(LIMIT), list[bytes]()
    position = 0
    for cut in cuts:
        seen += reader.feed(stream[position : position + cut])
        position += cut
    seen += reader.feed(stream[position:])
    assert seen == bodies
    assert not reader.is_inside


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_any_bytes_give_bodies_or_a_frame_error(pieces: list[bytes]) -> None:
    reader = FrameReader(LIMIT)
    try:
        for piece in pieces:
            for body in reader.feed(piece):
                assert len(body) <= LIMIT
    except FrameError:
        pass


@pytest.mark.parametrize("text", ["", "-1", "+5", "1_0", "1 0", "0x10", "\u0661", "9" * 16, "five"])
def test_a_length_that_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(FrameError):
        FrameReader(LIMIT).feed(f"Content-Length: {text}\r\n\r\n".encode())


def test_other_headers_and_any_case_are_taken() -> None:
    head = b"content-TYPE: application/vscode-jsonrpc\r\nCONTENT-length:  2 \r\n\r\n"
    assert FrameReader(LIMIT).feed(head + b"{}") == [b"{}"]


def test_a_head_that_never_ends_is_refused() -> None:
    with pytest.raises(FrameError, match="header is longer"):
        FrameReader(LIMIT).feed(b"X" * (LONGEST_HEAD + 1))


def test_a_frame_that_is_too_long_is_refused_before_it_is_received() -> None:
    with pytest.raises(FrameError, match=f"longer than {LIMIT}"):
        FrameReader(LIMIT).feed(frame(b"x" * (LIMIT + 1))[:40])


@given(st.binary(max_size=300))
def test_any_body_is_a_message_or_an_error_with_a_code(body: bytes) -> None:
    message = read(body)
    if isinstance(message, rpc.RpcError):
        assert message.code in (rpc.PARSE_ERROR, rpc.INVALID_REQUEST)
        msgspec.json.decode(rpc.refusal(b"", message))
    else:
        assert message.jsonrpc == "2.0"


def read(body: bytes) -> rpc.Envelope | rpc.RpcError:
    """What a body says, or what its sender is answered."""
    try:
        return rpc.read(body)
    except rpc.RpcError as error:
        return error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0", 2]) | JSON,
            "id": JSON,
            "method": st.sampled_from(["ping", "session.send"]) | JSON,
            "params": JSON,
            "result": JSON,
            "error": JSON,
        },
    )
)
def test_any_json_object_is_a_message_or_an_error_with_a_code(content: dict[str, object]) -> None:
    message = read(msgspec.json.encode(content))
    if isinstance(message, rpc.RpcError):
        assert message.code == rpc.INVALID_REQUEST
    else:
        assert content["jsonrpc"] == "2.0"
        # The id comes back as it came.
        answer = msgspec.json.decode(rpc.answer(bytes(message.id), 1))
        assert answer["id"] == content.get("id")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", rpc.PARSE_ERROR, "Parse error"),
        (b"\xff\xfe", rpc.PARSE_ERROR, "Parse error"),
        (b"[" * 100_000, rpc.INVALID_REQUEST, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 100_000, rpc.PARSE_ERROR, "Parse error"),
        (b"[]", rpc.INVALID_REQUEST, "jsonrpc"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', rpc.INVALID_REQUEST, "not a recognizable JSON-RPC"),
        (b'{"id":1,"method":"ping"}', rpc.INVALID_REQUEST, "missing field `jsonrpc`"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', rpc.INVALID_REQUEST, "an id is"),
        (b'{"jsonrpc":"2.0","id":"%b","method":"ping"}' % (b"x" * 300), rpc.INVALID_REQUEST, "an id is"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', rpc.INVALID_REQUEST, "not a recognizable JSON-RPC"),
    ],
)
async def test_a_body_that_is_no_message_is_answered_and_the_connection_lives(
    body: bytes, code: int, text: str, autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = await wire.connect()
        await client.send_bytes(frame(body))
        answer = await client.answer(None)
        assert answer["error"]["code"] == code
        assert text in answer["error"]["message"]
        assert (await client.call("ping", message="x"))["message"] == "pong: x"


async def test_bytes_that_are_no_frame_are_answered_and_the_connection_ends(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.send_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await client.answer(None)
        assert answer["error"] == {
            "code": -32700,
            "message": "Header must provide a Content-Length property.",
        }
        await client.closed.wait()
        assert wire.server.statistics().closed == {"bad_frame": 1}
        assert (await other.call("ping"))["message"] == "pong"


async def test_a_frame_over_the_limit_ends_its_connection_with_an_error(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), options=WireOptions(longest_frame=LIMIT)) as wire:
        client = await wire.connect()
        await client.send_bytes(b"Content-Length: 1000000000\r\n\r\n")
        answer = await client.answer(None)
        assert "a frame of 1000000000 bytes is longer than 2048" in answer["error"]["message"]
        await client.closed.wait()
        assert wire.server.statistics().connections == 0


async def test_a_client_that_stops_in_the_middle_of_a_frame_is_cut_off(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), options=WireOptions(frame_timeout=30)) as wire:
        client = await wire.connect()
        await client.send_bytes(b"Content-Length: 100\r\n\r\n{")
        await client.closed.wait()
        assert wire.server.statistics().closed == {"silent_in_a_frame": 1}


async def test_a_client_that_is_silent_between_two_messages_may_stay(autojump_clock: MockClock) -> None:
    import trio

    async with open_wire(ScriptedModel([]), options=WireOptions(frame_timeout=30)) as wire:
        client = await wire.connect()
        await trio.sleep(86_400)
        assert (await client.call("ping"))["message"] == "pong"
