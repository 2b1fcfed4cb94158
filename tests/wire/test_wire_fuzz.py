"""Whatever a client sends, it is answered, and nobody else notices.

`make soak` takes ten times the examples, and new ones each time.
"""

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.models import ModelRequest
from exeunt.testing import ScriptedModel, call
from exeunt.testing.replies import Reply
from exeunt.wire import rpc
from exeunt.wire.framing import frame
from exeunt.wire.table import METHODS
from tests.wire.wire_client import CLEAR, Wire, open_wire, tool
from tests.wire.wire_values import IDS, JSON, PIECES, fields, objects

EXAMPLES_PER_METHOD = settings().max_examples // 40
"""Each has up to sixteen requests, and there are a hundred methods."""

TRIED = sorted(set(METHODS) - {"runtime.shutdown"})
"""All methods but the one that ends the server."""


@st.composite
def requests(draw: st.DrawFn, name: str | None = None) -> dict[str, Any]:
    """A request: a true method, with parameters that have the right names and often the right types."""
    name = name or draw(st.sampled_from(TRIED))
    kind = METHODS[name].params
    params = draw(objects(kind))
    if "sessionId" in fields(kind) and draw(st.integers(0, 9)):
        params["sessionId"] = draw(st.sampled_from(["s", "s", "other", "nobody"]))
    whole = params if draw(st.integers(0, 9)) else draw(JSON)
    return {"jsonrpc": "2.0", "id": draw(IDS), "method": name, "params": whole}


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """An answer, mostly to something that nobody asked."""
    content = {draw(st.sampled_from(["result", "error"])): draw(JSON)}
    return {"jsonrpc": "2.0", "id": draw(IDS), **content}


MESSAGES = requests() | answers() | st.dictionaries(st.text(max_size=8), JSON, max_size=4)


CODES = frozenset(
    {
        rpc.PARSE_ERROR,
        rpc.INVALID_REQUEST,
        rpc.METHOD_NOT_FOUND,
        rpc.INVALID_PARAMS,
        rpc.FAILED,
        rpc.AUTHENTICATION_FAILED,
        rpc.AUTHENTICATION_NOT_CONFIGURED,
        rpc.TOO_MANY_REQUESTS,
    }
)
"""What a request can be refused with."""


def reply(request: ModelRequest) -> Reply:
    """Call the tool where a session has just begun; else say something."""
    last = request.messages[-1]
    if last.role == "user" and last.content == "go" and request.tools:
        return call("t")
    return "said"


def model() -> ScriptedModel:
    """One that answers any number of requests that a test can make."""
    return ScriptedModel([reply] * 200)


async def works(wire: Wire) -> None:
    """See a client through a session of its own: with a call of a tool, and a clear."""
    client = await wire.connect()
    await client.create("mine", tools=[tool("t"), CLEAR])
    await client.say("go", session="mine")
    await client.give(await client.requested(), session="mine", result="done")
    await client.event("session.idle")
    assert client.events("assistant.message")[-1]["data"]["content"] == "said"
    await client.call("session.delete", sessionId="mine")
    await client.stream.aclose()


class Failures(logging.Handler):
    """Remembers what the server took for its own mistake."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(self.format(record))


@pytest.fixture
def mistakes() -> Iterator[list[str]]:
    """The server's own mistakes of this test: there must be none."""
    handler = Failures()
    logger = logging.getLogger("exeunt.wire")
    logger.addHandler(handler)
    yield handler.records
    logger.removeHandler(handler)


async def answered(messages: list[dict[str, Any]]) -> None:
    """Send all of `messages`, see that each is answered, and that another client is served."""
    async with open_wire(model(), settled=False) as wire:
        hostile = await wire.connect()
        await hostile.create("s", tools=[tool("t")])
        for message in messages:
            await hostile.send(message)
        await wait_all_tasks_blocked()
        for key, answer in hostile.answers.items():
            assert "result" in answer or answer["error"]["code"] in CODES, (key, answer)
        if not hostile.closed.is_set():
            assert (await hostile.call("ping", message="still there"))["message"] == "pong: still there"
        await hostile.stream.aclose()
        await works(wire)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(MESSAGES, min_size=1, max_size=12))
def test_any_requests_are_answered_and_another_client_is_served(
    mistakes: list[str], messages: list[dict[str, Any]]
) -> None:
    trio.run(answered, messages, clock=MockClock(autojump_threshold=0))
    assert mistakes == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=EXAMPLES_PER_METHOD)
@given(data=st.data())
@pytest.mark.parametrize("name", TRIED)
def test_each_method_answers_whatever_it_is_given(
    mistakes: list[str], name: str, data: st.DataObject
) -> None:
    messages = data.draw(st.lists(requests(name), min_size=4, max_size=16))
    trio.run(answered, messages, clock=MockClock(autojump_threshold=0))
    assert mistakes == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES | MESSAGES, max_size=8))
def test_any_bytes_between_frames_end_at_most_their_own_connection(
    mistakes: list[str], pieces: list[bytes | dict[str, Any]]
) -> None:
    async def main() -> None:
        async with open_wire(model(), settled=False) as wire:
            hostile = wire.raw()
            for piece in pieces:
                data = piece if isinstance(piece, bytes) else frame(msgspec.json.encode(piece))
                try:
                    await hostile.send_bytes(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break
            await wait_all_tasks_blocked()
            await hostile.stream.aclose()
            await works(wire)
            await wait_all_tasks_blocked()
            assert wire.server.statistics().connections == 0

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert mistakes == []
