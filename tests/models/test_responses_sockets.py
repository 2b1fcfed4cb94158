"""The Responses API over web sockets: what is sent, what is kept, and what becomes of connections."""

import gc
import sys
from typing import Any

import pytest
import trio

from exeunt import approve_all, tool
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage
from exeunt.models import model_from_provider
from exeunt.models.responses.sockets import ResponsesSocketModel, line, lines
from exeunt.testing import checked_host
from tests.models.openai_support import Said, streamed
from tests.models.responses_support import calling, message, thinking, told
from tests.models.socket_double import (
    CLOSE,
    DROP,
    HANG,
    PING,
    SocketDouble,
    answer,
    open_socket_double,
)

HELLO = ModelRequest([Said("system", "Be brief."), Said("user", "Hello")], session_id="s")
FORGOTTEN = {"type": "error", "status": 400, "error": {"code": "previous_response_not_found", "message": "x"}}


def sockets_at(double: SocketDouble, **settings: Any) -> ResponsesSocketModel:
    settings = {"base_url": f"http://127.0.0.1:{double.port}/v1", "trust_env": False, **settings}
    return ResponsesSocketModel("test-model", **settings)


def going_on(*texts: str, session_id: str = "s") -> ModelRequest:
    """A conversation: the user and the model in turn."""
    said = [Said("user" if number % 2 == 0 else "assistant", text) for number, text in enumerate(texts)]
    return ModelRequest([Said("system", "Be brief."), *said], session_id=session_id)


async def test_an_answer_is_read_from_the_messages_of_a_socket() -> None:
    async with open_socket_double(told(thinking("hm.", None), message("Hi there"))) as double:
        model = sockets_at(double, api_key="sk-1", options={"reasoning": {"effort": "low"}})
        deltas, whole = await streamed(model, HELLO)
        await model.aclose()
    assert "".join(delta.text for delta in deltas) == "Hi there"
    assert whole == ModelResponse("Hi there", (), "stop", Usage(12, 9, 4, 0, 5), "hm.")
    ((target, headers),) = double.handshakes
    assert target == "/v1/responses"
    assert headers["authorization"] == "Bearer sk-1"
    assert "content-type" not in headers
    assert double.messages == [
        {
            "type": "response.create",
            "model": "test-model",
            "store": False,
            "reasoning": {"effort": "low"},
            "include": ["reasoning.encrypted_content"],
            "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": "Hello"}],
        }
    ]


async def test_a_request_that_goes_on_holds_only_what_is_new() -> None:
    async with open_socket_double(
        answer("One.", "r1"), answer("Two.", "r2"), answer("Three.", "r3")
    ) as double:
        model = sockets_at(double)
        assert (await model.complete(going_on("a"))).content == "One."
        assert (await model.complete(going_on("a", "One.", "b"))).content == "Two."
        # Another history than the server has seen: whole.
        assert (await model.complete(going_on("a", "Won.", "b", "Two.", "c"))).content == "Three."
        statistics = model.statistics()
        await model.aclose()
    assert [one.get("previous_response_id") for one in double.messages] == [None, "r1", None]
    assert [len(one["input"]) for one in double.messages] == [1, 1, 5]
    assert double.messages[1]["input"][0]["content"] == "b"
    assert double.messages[1]["instructions"] == "Be brief."
    assert len(double.handshakes) == 1
    assert (statistics.calls, statistics.failures) == (3, 0)
    assert (statistics.pool.opened, statistics.pool.reused, statistics.pool.idle) == (1, 2, 1)


async def test_what_the_server_has_forgotten_is_sent_whole() -> None:
    async with open_socket_double(answer("One.", "r1"), [FORGOTTEN], answer("Two.", "r2")) as double:
        model = sockets_at(double)
        await model.complete(going_on("a"))
        assert (await model.complete(going_on("a", "One.", "b"))).content == "Two."
        await model.aclose()
    assert [one.get("previous_response_id") for one in double.messages] == [None, "r1", None]
    assert [len(one["input"]) for one in double.messages] == [1, 1, 3]
    assert len(double.handshakes) == 1


async def test_reasoning_that_is_not_taken_back_is_left_out() -> None:
    refused = {
        "type": "error",
        "status": 400,
        "error": {"code": "invalid_encrypted_content", "message": "encrypted content"},
    }
    async with (
        open_socket_double(
            told(thinking("hm"), message("One."), id="r1"), [FORGOTTEN], [refused], answer("Two.")
        ) as double,
        checked_host() as host,
    ):
        session = await host.create_session(model=sockets_at(double))
        await session.send_and_wait("a")
        assert (await session.send_and_wait("b")).content == "Two."
    kinds = [[item["type"] for item in one["input"]] for one in double.messages]
    assert kinds == [
        ["message"], ["message"], ["message", "reasoning", "message", "message"], ["message", "message", "message"]
    ]  # fmt: skip


async def test_reasoning_that_was_not_taken_back_is_not_sent_again() -> None:
    error = {"code": "invalid_encrypted_content", "message": "encrypted content"}
    refused = {"type": "error", "status": 400, "error": error}
    async with (
        open_socket_double(
            told(thinking("hm"), message("One."), id="r1"),
            [FORGOTTEN],
            [refused],
            answer("Two.", "r2"),
            answer("Three.", "r3"),
            [FORGOTTEN],
            answer("Four.", "r4"),
        ) as double,
        checked_host() as host,
    ):
        session = await host.create_session(model=sockets_at(double))
        for text in ("One.", "Two.", "Three.", "Four."):
            assert (await session.send_and_wait("go on")).content == text
    kinds = [[item["type"] for item in one["input"]] for one in double.messages]
    # The server goes on from what it was told without the reasoning, and what is sent whole is without it too.
    assert kinds[4:] == [["message"], ["message"], ["message"] * 7]
    assert [one.get("previous_response_id") for one in double.messages[4:]] == ["r2", "r3", None]


async def test_a_session_with_a_limit_sends_what_is_new_and_what_it_has_left() -> None:
    @tool(skip_permission=True)
    async def look() -> str:
        """Look."""
        await trio.lowlevel.checkpoint()
        return "seen"

    calls = [told(calling("look", "{}", f"call_{number}"), id=f"r{number}") for number in range(3)]
    async with open_socket_double(*calls, answer("Done.")) as double, checked_host() as host:
        session = await host.create_session(
            model=sockets_at(double), tools=[look], prices={"*": {"request": 1}}, limits={"credits": 10}
        )
        assert (await session.send_and_wait("go")).content == "Done."
    assert [one.get("previous_response_id") for one in double.messages] == [None, "r0", "r1", "r2"]
    for number, one in enumerate(double.messages[1:]):
        result, status = one["input"]
        assert (result["type"], result["call_id"]) == ("function_call_output", f"call_{number}")
        assert f"Remaining session limits: {9 - number} AI credits" in status["content"]


async def test_a_server_does_not_see_more_outdated_messages_than_are_bearable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line, "MOST_OUTDATED", 2)

    @tool(skip_permission=True)
    async def look() -> str:
        """Look."""
        await trio.lowlevel.checkpoint()
        return "seen"

    calls = [told(calling("look", "{}", f"call_{number}"), id=f"r{number}") for number in range(5)]
    async with open_socket_double(*calls, answer("Done.")) as double, checked_host() as host:
        session = await host.create_session(
            model=sockets_at(double), tools=[look], prices={"*": {"request": 1}}, limits={"credits": 10}
        )
        assert (await session.send_and_wait("go")).content == "Done."
    assert [one.get("previous_response_id") for one in double.messages] == [
        None,
        "r0",
        "r1",
        None,
        "r3",
        "r4",
    ]
    whole = double.messages[3]["input"]
    assert sum("session_limits_status" in str(item) for item in whole) == 1


async def test_a_turn_with_a_tool_sends_the_result_alone() -> None:
    @tool
    async def look(word: str) -> str:
        """Look a word up."""
        await trio.lowlevel.checkpoint()
        return f"{word}: they leave"

    steps = (
        told(thinking("I look."), calling("look", '{"word": "exeunt"}', "call_a"), id="r1"),
        answer("They leave."),
    )
    async with open_socket_double(*steps) as double, checked_host() as host:
        provider = {
            "type": "openai", "wire_api": "responses", "transport": "websockets", "trust_env": False,
            "base_url": f"http://127.0.0.1:{double.port}/v1",
        }  # fmt: skip
        session = await host.create_session(
            model="m", provider=provider, tools=[look], streaming=True, on_permission_request=approve_all
        )
        assert (await session.send_and_wait("What?")).content == "They leave."
        first, second = double.messages
        await session.disconnect()
    assert second["previous_response_id"] == "r1"
    assert second["input"] == [
        {"type": "function_call_output", "call_id": "call_a", "output": "exeunt: they leave"}
    ]
    assert second["tools"] == first["tools"]
    gc.collect()


async def test_each_session_has_a_connection_of_its_own() -> None:
    async with open_socket_double(*[answer("Hi.", f"r{number}") for number in range(4)]) as double:
        model = sockets_at(double)
        for session in ("a", "b", "a", "b"):
            await model.complete(going_on("hello", session_id=session))
        assert model.statistics().pool.idle == 2
        await model.aclose()
    assert len(double.handshakes) == 2


@pytest.mark.parametrize("end", [DROP, CLOSE])
async def test_a_connection_that_died_between_two_requests_is_replaced(end: str) -> None:
    async with open_socket_double(answer("One.", "r1"), [end], answer("Two.")) as double:
        model = sockets_at(double)
        await model.complete(going_on("a"))
        # The server ends it when the next request is there.
        assert (await model.complete(going_on("a", "One.", "b"))).content == "Two."
        statistics = model.statistics()
        await model.aclose()
    assert len(double.handshakes) == 2
    assert double.messages[2].get("previous_response_id") is None
    assert (statistics.pool.stale, statistics.pool.in_use, statistics.failures) == (1, 0, 0)


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    async with open_socket_double(answer("One."), answer("Two.")) as double:
        model = sockets_at(double)
        await model.complete(HELLO)
        await double.streams[0].aclose()
        assert (await model.complete(HELLO)).content == "Two."
        assert (model.statistics().pool.expired, model.statistics().pool.stale) == (1, 0)
        await model.aclose()


async def test_signs_of_life_are_answered() -> None:
    replies = ([PING, *answer("One.")], [PING, *answer("Two.")], answer("Three."))
    async with open_socket_double(*replies) as double:
        model = sockets_at(double)
        for _ in range(2):
            await model.complete(HELLO)
        await model.complete(HELLO)
        assert (double.pongs, len(double.handshakes)) == (2, 1)
        await model.aclose()


@pytest.mark.parametrize(
    ("reply", "kind", "retry"),
    [
        ([DROP], ModelErrorKind.CONNECTION_LOST, True),
        ([CLOSE], ModelErrorKind.CONNECTION_LOST, True),
        ([*answer("Hi.")[:4], DROP], ModelErrorKind.CONNECTION_LOST, True),
        ([b"no json"], ModelErrorKind.MALFORMED_RESPONSE, True),
        (
            [{"type": "error", "status": 429, "error": {"message": "slower"}}],
            ModelErrorKind.RATE_LIMITED,
            True,
        ),
        (
            [*answer("Hi.")[:4], {"type": "error", "status": 500, "error": None}],
            ModelErrorKind.SERVER_ERROR,
            True,
        ),
        (
            [
                {
                    "type": "error",
                    "status": 400,
                    "error": {"code": "websocket_connection_limit_reached", "message": "x"},
                }
            ],
            ModelErrorKind.CONNECTION_LOST,
            True,
        ),
        (
            [{"type": "response.failed", "response": {"error": {"code": "server_error"}}}],
            ModelErrorKind.SERVER_ERROR,
            True,
        ),
    ],
)
async def test_an_answer_that_breaks_off_is_an_error_and_its_connection_closed(
    reply: Any, kind: ModelErrorKind, retry: bool
) -> None:
    async with open_socket_double(reply) as double:
        model = sockets_at(double)
        with pytest.raises(ModelError) as caught:
            await streamed(model, HELLO)
        assert (caught.value.kind, caught.value.retry) == (kind, retry)
        statistics = model.statistics()
        assert (statistics.in_flight, statistics.failures) == (0, 1)
        assert (statistics.pool.in_use, statistics.pool.idle) == (0, 0)
        await model.aclose()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ModelErrorKind.AUTHENTICATION),
        (404, ModelErrorKind.NOT_FOUND),
        (429, ModelErrorKind.RATE_LIMITED),
        (503, ModelErrorKind.SERVER_ERROR),
    ],
)
async def test_a_handshake_that_is_refused_says_why(status: int, kind: ModelErrorKind) -> None:
    async with open_socket_double(status=status) as double:
        model = sockets_at(double)
        with pytest.raises(ModelError, match="no sockets here") as caught:
            await model.complete(HELLO)
        assert (caught.value.kind, caught.value.status) == (kind, status)
        assert model.statistics().pool.in_use == 0
        await model.aclose()


async def test_a_cancelled_call_closes_its_connection_and_no_other() -> None:
    async with open_socket_double(answer("One."), [HANG], answer("Two.")) as double:
        model = sockets_at(double)
        await model.complete(going_on("a", session_id="other"))
        with trio.move_on_after(0.1) as scope:
            await model.complete(HELLO)
        assert scope.cancelled_caught
        assert model.statistics().cancelled == 1
        assert (model.statistics().pool.in_use, model.statistics().pool.idle) == (0, 1)
        assert (await model.complete(going_on("a", session_id="other"))).content == "Two."
        await model.aclose()


async def test_an_answer_has_its_time(autojump_clock: trio.testing.MockClock) -> None:
    from exeunt.models.http import Timeouts

    autojump_clock.autojump_threshold = 0.02
    async with open_socket_double([*answer("Hi.")[:3], HANG]) as double:
        model = sockets_at(double, timeouts=Timeouts(gap=5))
        with pytest.raises(ModelError) as caught:
            await streamed(model, HELLO)
        assert caught.value.kind is ModelErrorKind.TIMEOUT
        await model.aclose()


async def test_connections_are_kept_for_a_while_and_not_without_bound(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    autojump_clock.autojump_threshold = 0.02
    monkeypatch.setattr(lines, "MOST_IDLE", 2)
    async with open_socket_double(*[answer("Hi.") for _ in range(4)]) as double:
        model = sockets_at(double)
        for session in ("a", "b", "c"):
            await model.complete(going_on("hello", session_id=session))
        assert (model.statistics().pool.idle, model.statistics().pool.evicted) == (2, 1)
        await trio.sleep(lines.IDLE_EXPIRY)
        await model.complete(going_on("hello", session_id="d"))
        assert (model.statistics().pool.idle, model.statistics().pool.expired) == (1, 2)
        await model.aclose()
        with pytest.raises(ModelError, match="was closed"):
            await model.complete(HELLO)


async def test_a_connection_is_given_up_before_its_server_ends_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    autojump_clock.autojump_threshold = 0.02
    calls = int(lines.OLDEST // 200) + 2
    async with open_socket_double(*[answer("Hi.") for _ in range(calls)]) as double:
        model = sockets_at(double)
        for _ in range(calls):
            await model.complete(HELLO)
            await trio.sleep(200)
        assert (len(double.handshakes), model.statistics().pool.expired) == (2, 1)
        await model.aclose()


async def test_a_message_without_end_is_refused() -> None:
    async with open_socket_double(answer("x" * 2_000)) as double:
        model = sockets_at(double, max_response_bytes=1_000)
        with pytest.raises(ModelError, match="1,000 bytes") as caught:
            await streamed(model, HELLO)
        assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.MALFORMED_RESPONSE, False)
        await model.aclose()


async def test_connections_go_with_the_model() -> None:
    async with open_socket_double(answer("Hi.")) as double:
        model = sockets_at(double)
        await model.complete(HELLO)
        assert double.open == 1
        del model
        gc.collect()
        with trio.fail_after(10):
            await double.all_gone()


async def test_without_the_extra_it_is_said_which_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsproto", None)
    model = ResponsesSocketModel("m", base_url="http://127.0.0.1:9/v1", trust_env=False)
    with pytest.raises(InvalidConfiguration, match=r"exeunt\[websockets\]"):
        await model.complete(HELLO)


@pytest.mark.parametrize(
    "provider",
    [
        {"type": "openai", "wire_api": "responses", "transport": "carrier pigeon"},
        {"type": "openai", "transport": "websockets"},
    ],
)
async def test_a_transport_that_cannot_be_is_refused(provider: dict[str, Any]) -> None:
    await trio.lowlevel.checkpoint()
    with pytest.raises(InvalidConfiguration):
        model_from_provider("m", provider)
