"""The client of the Messages API, on real sockets."""

import json
from typing import Any

import pytest
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import AssistantMessage, AssistantUsage
from exeunt.actors.models import ModelClient, ModelError, ModelErrorKind, ModelRequest
from exeunt.models import model_from_provider, model_names
from exeunt.models.anthropic import AnthropicModel
from exeunt.testing import checked_host
from exeunt.testing.http_double import HttpReply, open_http_double
from tests.models.anthropic_support import answer, claude_at, streamed_answer, text, thought, use
from tests.models.dirty_api import MESSAGES
from tests.models.openai_session_support import Toolbox, talking_to
from tests.models.openai_support import HELLO, streamed


def test_it_is_a_model_client_that_does_not_show_its_keys() -> None:
    model = AnthropicModel("m", api_key="sk-1", auth_token="tok")
    assert isinstance(model, ModelClient)
    assert repr(model) == "<AnthropicModel 'm'>"


async def test_a_call_is_one_post_with_the_headers_of_the_api() -> None:
    async with open_http_double(answer(text("Hi."))) as double:
        model = claude_at(double, api_key="sk-1", betas=["one", "two"], headers={"x-team": "a"})
        response = await model.complete(HELLO)
        await model.aclose()
        (request,) = double.requests
    assert response.content == "Hi."
    assert (request.method, request.target) == ("POST", "/v1/messages")
    wanted = {
        "x-api-key": "sk-1",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one,two",
        "x-team": "a",
        "content-type": "application/json",
        "accept": "application/json",
    }
    assert wanted.items() <= request.headers.items()
    assert "authorization" not in request.headers


async def test_a_token_is_a_bearer_and_no_key_is_no_header() -> None:
    async with open_http_double(answer(text("a")), answer(text("b"))) as double:
        for settings in ({"auth_token": "tok"}, {}):
            model = claude_at(double, **settings)
            await model.complete(HELLO)
            await model.aclose()
        with_token, without = (request.headers for request in double.requests)
    assert with_token["authorization"] == "Bearer tok"
    assert {"authorization", "x-api-key"}.isdisjoint(without)


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/anthropic", "/anthropic/v1/messages"),
        ("/anthropic/v1?key=x", "/anthropic/v1/messages?key=x"),
    ],
)
async def test_a_base_url_may_have_the_version_or_not(base: str, target: str) -> None:
    async with open_http_double(answer(text("a"))) as double:
        model = claude_at(double, base_url=f"http://127.0.0.1:{double.port}{base}")
        await model.complete(HELLO)
        await model.aclose()
        assert double.requests[0].target == target


async def test_an_answer_comes_in_pieces() -> None:
    async with open_http_double(streamed_answer(thought("Hm."), text("Hi there."))) as double:
        model = claude_at(double)
        deltas, response = await streamed(model)
        await model.aclose()
        assert double.requests[0].json["stream"] is True
    assert "".join(delta.text for delta in deltas) == response.content == "Hi there."
    assert "".join(delta.reasoning for delta in deltas) == "Hm."
    assert len(deltas) == 4


@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (400, ModelErrorKind.BAD_REQUEST, False),
        (401, ModelErrorKind.AUTHENTICATION, False),
        (403, ModelErrorKind.AUTHENTICATION, False),
        (404, ModelErrorKind.NOT_FOUND, False),
        (413, ModelErrorKind.BAD_REQUEST, False),
        (429, ModelErrorKind.RATE_LIMITED, True),
        (500, ModelErrorKind.SERVER_ERROR, True),
        (504, ModelErrorKind.TIMEOUT, True),
        (529, ModelErrorKind.OVERLOADED, True),
    ],
)
async def test_errors_have_their_kind_and_the_id_of_the_request(
    status: int, kind: ModelErrorKind, retry: bool
) -> None:
    body = json.dumps({"type": "error", "error": {"type": "x_error", "message": "No, sk-secret."}})
    headers = [("request-id", "req_011"), ("retry-after", "7")]
    async with open_http_double(HttpReply(status=status, body=body.encode(), headers=headers)) as double:
        model = claude_at(double, api_key="sk-secret")
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
    error = caught.value
    assert (error.kind, error.retry, error.status) == (kind, retry, status)
    assert str(error) == f"status {status}: No, ***. (request req_011)"
    assert error.retry_after == (7.0 if retry else None)


@pytest.mark.parametrize(
    ("status", "said", "retry"), [(429, "false", False), (400, "true", True), (429, "x", True)]
)
async def test_a_provider_may_say_whether_to_try_again(status: int, said: str, retry: bool) -> None:
    reply = HttpReply(status=status, body=b"{}", headers=[("x-should-retry", said), ("retry-after", "1")])
    async with open_http_double(reply) as double:
        model = claude_at(double)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        await model.aclose()
    assert (caught.value.retry, caught.value.retry_after) == (retry, 1.0 if retry else None)


async def test_a_request_that_is_too_large_is_not_sent_again_when_the_stream_says_so() -> None:
    error = {"type": "error", "error": {"type": "request_too_large", "message": "Too large"}}
    reply = HttpReply(
        body=f"event: error\ndata: {json.dumps(error)}\n\n".encode(), content_type="text/event-stream"
    )
    async with open_http_double(reply) as double:
        model = claude_at(double)
        with pytest.raises(ModelError) as caught:
            await streamed(model)
        await model.aclose()
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.BAD_REQUEST, False)


async def test_thoughts_go_back_with_the_result_of_the_call_that_they_led_to() -> None:
    first = answer(
        thought("I need the weather.", "sig-1"), use("get_weather", {"city": "Oslo"}), stop="tool_use"
    )
    box = Toolbox()
    async with (
        open_http_double(first) as double,
        talking_to(double, api=MESSAGES, tools=box.tools(), streaming=False) as watched,
    ):
        await watched.ask()
        content = double.requests[1].json["messages"][1]["content"]
    assert content[0] == thought("I need the weather.", "sig-1")
    assert content[1]["type"] == "tool_use"
    message = watched.seen(AssistantMessage)[0]
    assert message.reasoning == "I need the weather."


def refused(message: str) -> HttpReply:
    error = {"type": "invalid_request_error", "message": message}
    return HttpReply(status=400, body=json.dumps({"type": "error", "error": error}).encode())


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1: `thinking` blocks in the latest assistant message cannot be modified",
        "messages.1.content.0.signature: cannot be verified",
    ],
)
async def test_thoughts_that_a_server_does_not_take_back_are_left_out_and_the_request_sent_again(
    message: str,
) -> None:
    first = answer(thought("Hm.", "sig-1"), use("get_weather", {"town": 1}), stop="tool_use")
    box = Toolbox()
    async with (
        open_http_double(first, refused(message)) as double,
        talking_to(double, api=MESSAGES, tools=box.tools(), streaming=False) as watched,
    ):
        await watched.ask()
        _, whole, bare = double.requests
    kinds = [[block["type"] for block in request.json["messages"][1]["content"]] for request in (whole, bare)]
    assert kinds == [["thinking", "tool_use"], ["tool_use"]]
    results = [request.json["messages"][2]["content"][0] for request in (whole, bare)]
    # The arguments were wrong, and so does the result say.
    assert results[0] == results[1]
    assert results[1]["is_error"] is True


async def test_a_request_that_is_wrong_otherwise_is_not_sent_again() -> None:
    async with open_http_double(
        refused("thinking.budget_tokens: too large"), refused("bad signature")
    ) as double:
        model = claude_at(double)
        for _ in range(2):
            with pytest.raises(ModelError):
                await model.complete(HELLO)
        await model.aclose()
        assert len(double.requests) == 2


async def test_thoughts_stay_with_the_server_that_signed_them() -> None:
    async with (
        open_http_double(answer(thought("Hm."), text("One."))) as one,
        open_http_double(answer(text("Two."))) as other,
        checked_host() as host,
    ):
        session = await host.create_session(model=claude_at(one))
        await session.send_and_wait("hello")
        await host.resume_session(session.session_id, model=claude_at(other))
        await session.send_and_wait("again")
        said = other.requests[0].json["messages"][1]["content"]
    assert [block["type"] for block in said] == ["text"]


async def test_a_session_tells_what_came_out_of_the_cache() -> None:
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 9,
        "output_tokens": 2,
    }
    async with (
        open_http_double(answer(text("Hi."), usage=usage)) as double,
        talking_to(double, api=MESSAGES, streaming=False) as watched,
    ):
        await watched.ask()
    (used,) = watched.seen(AssistantUsage)
    assert (used.input_tokens, used.output_tokens) == (100, 2)
    assert (used.cache_read_tokens, used.cache_write_tokens) == (90, 9)


# --- From plain configuration ---


async def make(model: str, provider: Any) -> ModelClient:
    await trio.lowlevel.checkpoint()
    return model_from_provider(model, provider)


@pytest.mark.parametrize(
    "provider",
    [
        {"stream_usage": True},
        {"max_tokens": "7"},
        {"betas": "x"},
        {"effort": "heroic"},
        {"prompt_cache": 1},
        {"media": {"sounds": True}},
        {"media": {"images": "no"}},
        {"options": {"x": {1}}},
    ],
)
def test_a_provider_that_cannot_work_is_refused(provider: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        trio.run(make, "m", {"type": "anthropic", **provider})


async def test_equal_providers_share_a_client_and_other_doors_do_not() -> None:
    provider = {"type": "anthropic", "api_key": "k", "media": {"images": False}, "betas": ["a"]}
    one, same = await make("m", provider), await make("m", dict(provider))
    other = await make("m", {"type": "openai", "api_key": "k"})
    assert isinstance(one, AnthropicModel)
    assert one is same
    assert type(other) is not type(one)


async def test_the_models_of_a_provider_are_listed() -> None:
    listed = {
        "data": [{"type": "model", "id": "claude-b"}, {"type": "model", "id": "claude-a"}],
        "has_more": False,
    }
    async with open_http_double(HttpReply(body=json.dumps(listed).encode())) as double:
        provider = {
            "type": "anthropic",
            "base_url": f"http://127.0.0.1:{double.port}",
            "api_key": "k",
            "trust_env": False,
        }
        assert await model_names(provider) == ["claude-b", "claude-a"]
        (request,) = double.requests
    assert (request.method, request.target) == ("GET", "/v1/models?limit=1000")
    assert request.headers["x-api-key"] == "k"
    assert request.headers["anthropic-version"] == "2023-06-01"


async def test_headers_of_a_request_are_sent_besides() -> None:
    async with open_http_double(answer(text("a"))) as double:
        model = claude_at(double, api_key="k")
        await model.complete(ModelRequest(HELLO.messages, headers=(("x-trace", "1"), ("x-api-key", "other"))))
        await model.aclose()
        headers = double.requests[0].headers
    assert (headers["x-trace"], headers["x-api-key"]) == ("1", "k")
