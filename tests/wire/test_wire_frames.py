"""Frames and messages: from any bytes come bodies, errors with a code, or an end; never a crash."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt.testing import ScriptedModel, call
from exeunt.wire import rpc
from exeunt.wire.framing import BEGINNING, LONGEST_HEAD, FrameError, FrameReader, frame
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import WireFailure, open_wire, tool

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


@given(st.lists(st.binary(max_size=4000), max_size=8), st.lists(st.integers(1, 2000), max_size=40))
def test_a_body_that_is_too_long_is_passed_over_however_it_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(frame(body) for body in bodies)
    reader, seen = FrameReader(LIMIT, 4000), list[bytes]()
    position = 0
    for cut in cuts:
        seen += reader.feed(stream[position : position + cut])
        position += cut
    seen += reader.feed(stream[position:])
    assert seen == [body for body in bodies if len(body) <= LIMIT]
    long = [body for body in bodies if len(body) > LIMIT]
    told = [(one.length, one.beginning) for one in reader.too_long]
    assert told == [(len(body), body[:BEGINNING]) for body in long]
    assert not reader.is_inside


@given(st.binary(max_size=BEGINNING))
def test_any_beginning_of_a_message_has_a_head(beginning: bytes) -> None:
    assert rpc.head(beginning).key == b"" or b'"id"' in beginning


@pytest.mark.parametrize(
    ("beginning", "head"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"session.send","params":{"x', (b"7", "session.send", False)),
        (b' { "id" : "a-1" , "jsonrpc" : "2.0", "method": "m", "pa', (b'"a-1"', "m", False)),
        (b'{"jsonrpc":"2.0","id":7,"result":{"id":9,"method":"m","x', (b"7", "", True)),
        (b'{"id":-3,"error":{"message":"', (b"-3", "", True)),
        (b'{"jsonrpc":"2.0","id":7,"params":{"result":1,', (b"7", "", False)),
        (b'{"jsonrpc":"2.0","method":"note","params":{"id":5,', (b"", "note", False)),
        (b'{"params":{"id":5,"method":"m"', (b"", "", False)),
        (b'{"id":{"a":1},"method":"m",', (b"", "", False)),
        (b"\x00" * 40, (b"", "", False)),
    ],
)
def test_the_head_of_a_message_is_read_and_nothing_behind_it(
    beginning: bytes, head: tuple[bytes, str, bool]
) -> None:
    assert rpc.head(beginning) == head


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


async def test_a_message_that_is_too_long_is_refused_alone(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["fine", "after"])
    async with open_wire(model, options=WireOptions(longest_frame=LIMIT)) as wire:
        client = await wire.connect()
        await client.create()
        with pytest.raises(
            WireFailure, match=r"session\.send failed with message: a frame of .* 2048"
        ) as failed:
            await client.say("x" * LIMIT * 4)
        assert failed.value.code == rpc.INVALID_REQUEST
        # The connection lives, and so does its session.
        await client.say("short")
        await client.event("session.idle")
        await client.send({"jsonrpc": "2.0", "params": ["x" * LIMIT]})
        assert "longer than 2048" in (await client.answer(None))["error"]["message"]
    assert [message.content for message in model.requests[0].messages] == ["short"]


@pytest.mark.parametrize("session_first", [True, False])
async def test_a_result_of_a_tool_that_is_too_long_is_a_failure_of_its_call(
    session_first: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([call("t"), "I see"])
    async with open_wire(model, options=WireOptions(longest_frame=LIMIT)) as wire:
        client, other = await wire.connect(), await wire.connect()
        await client.create(tools=[tool("t")])
        await other.call("session.resume", sessionId="s")
        await client.say()
        request_id = await client.requested()
        params = {"sessionId": "s"} if session_first else {}
        params |= {"requestId": request_id, "result": "x" * LIMIT}
        params["sessionId"] = "s"
        # Not by one that was not asked.
        for one in (other, client):
            assert client.events("tool.execution_complete") == []
            with pytest.raises(WireFailure, match="longer than 2048"):
                await one.call("session.tools.handlePendingToolCall", **params)
        await client.event("session.idle")
    assert "too long to be read: a frame of" in model.requests[-1].results["call_1"]


async def test_an_answer_that_is_too_long_is_a_failure_of_what_was_asked(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("t"), "denied"])
    async with open_wire(model, options=WireOptions(longest_frame=LIMIT)) as wire:
        client = await wire.connect()
        client.handlers["hooks.invoke"] = lambda params: {"output": {"additionalContext": "x" * LIMIT}}
        await client.create(tools=[tool("t")], hooks=True)
        await client.say()
        await client.event("session.idle")
        assert client.events("external_tool.requested") == []
    assert "answer is refused: a frame of" in str(client.events("hook.end")[0]["data"])


async def test_a_stranger_that_sends_a_message_that_is_too_long_is_cut_off(autojump_clock: MockClock) -> None:
    options = WireOptions(longest_frame=LIMIT)
    async with open_wire(ScriptedModel([]), options=options, tokens={"a": "ada"}) as wire:
        client = wire.raw()
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {"token": "x" * LIMIT}})
        assert "longer than 2048" in (await client.answer(None))["error"]["message"]
        await client.closed.wait()
        assert wire.server.statistics().closed == {"bad_frame": 1}


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
