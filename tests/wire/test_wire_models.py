"""Models that are reached by way of a client: its network, its tokens."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel
from exeunt.testing.http_double import HttpReply, open_http_double
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.wire_client import Wire, WireClient, WireFailure, open_wire, tool

ANSWER = {"choices": [{"index": 0, "message": {"content": "carried"}, "finish_reason": "stop"}]}


async def carrying(
    wire: Wire, **config: Any
) -> tuple[WireClient, list[dict[str, Any]], list[dict[str, Any]]]:
    """A client that sends the requests of its session; with the heads and the bodies that it was given."""
    client = await wire.connect()
    heads, bodies = list[dict[str, Any]](), list[dict[str, Any]]()

    def noted(into: list[dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def take(params: dict[str, Any]) -> dict[str, Any]:
            into.append(params)
            return {}

        return take

    client.handlers["llmInference.httpRequestStart"] = noted(heads)
    client.handlers["llmInference.httpRequestChunk"] = noted(bodies)
    assert await client.call("llmInference.setProvider") == {"success": True}
    await client.create(model="m", **config)
    await client.say()
    await wait_all_tasks_blocked()
    if heads[0]["method"] == "GET":
        # The catalogue of models, which this client does not have.
        await start(client, heads.pop(0)["requestId"], 404)
        bodies.clear()
        await wait_all_tasks_blocked()
    return client, heads, bodies


async def start(client: WireClient, request: str, status: int = 200) -> None:
    """Begin an answer; one that is an error has no more than that."""
    taken = await client.call("llmInference.httpResponseStart", requestId=request, status=status, headers={})
    assert taken == {"accepted": True}
    if status >= 300:
        await client.call("llmInference.httpResponseChunk", requestId=request, data="", end=True)


async def give(client: WireClient, request: str, body: bytes, **chunk: Any) -> None:
    started = await client.call(
        "llmInference.httpResponseStart",
        requestId=request,
        status=200,
        headers={"Content-Type": ["application/json"], "content-encoding": ["gzip"]},
    )
    assert started == {"accepted": True}
    half = len(body) // 2
    for data, end in ((body[:half], False), (body[half:], True)):
        taken = await client.call(
            "llmInference.httpResponseChunk",
            requestId=request,
            data=base64.b64encode(data).decode(),
            binary=True,
            end=end,
            **chunk,
        )
        assert taken == {"accepted": True}


async def test_a_client_sends_the_requests_of_its_sessions(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, heads, bodies = await carrying(
            wire, provider={"type": "openai", "baseUrl": "https://models.example/v1", "apiKey": "secret"}
        )
        (head,), (body,) = heads, bodies
        assert (head["method"], head["url"]) == ("POST", "https://models.example/v1/chat/completions")
        assert head["headers"]["authorization"] == ["Bearer secret"]
        assert head["sessionId"] == "s"
        assert json.loads(body["data"])["messages"][-1] == {"role": "user", "content": "go"}
        assert body["end"] is True
        await give(client, head["requestId"], json.dumps(ANSWER).encode())
        await client.event("session.idle")
        assert client.events("assistant.message")[0]["data"]["content"] == "carried"
        assert wire.server.hub.exchanges == {}


async def test_a_client_sends_requests_to_anthropic_too(autojump_clock: MockClock) -> None:
    answer = json.dumps(
        {"content": [{"type": "text", "text": "carried"}], "stop_reason": "end_turn"}
    ).encode()
    async with open_wire(default=DefaultProvider()) as wire:
        client, (head,), (body,) = await carrying(
            wire,
            provider={"type": "anthropic", "baseUrl": "https://models.example/v1", "apiKey": "secret"},
            reasoningEffort="low",
        )
        assert head["url"] == "https://models.example/v1/messages"
        assert head["headers"]["x-api-key"] == ["secret"]
        sent = json.loads(body["data"])
        assert sent["messages"][-1]["content"][0]["text"] == "go"
        assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        await give(client, head["requestId"], answer)
        await client.event("session.idle")
        assert client.events("assistant.message")[0]["data"]["content"] == "carried"


async def test_a_request_that_the_client_breaks_off_is_an_error_of_the_model(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, heads, _ = await carrying(wire)
        await client.call(
            "llmInference.httpResponseChunk",
            requestId=heads[0]["requestId"],
            data="",
            end=True,
            error={"message": "no network"},
        )
        await client.event("session.idle")
        assert "no network" in client.events("session.error")[0]["data"]["message"]


async def test_an_abort_cancels_the_request_of_the_client(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, heads, bodies = await carrying(wire)
        await client.call("session.abort", sessionId="s")
        await wait_all_tasks_blocked()
        assert (bodies[-1]["cancel"], bodies[-1]["requestId"]) == (True, heads[0]["requestId"])
        late = await client.call(
            "llmInference.httpResponseStart", requestId=heads[0]["requestId"], status=200, headers={}
        )
        assert late == {"accepted": False}


async def test_the_requests_of_a_client_that_leaves_fail(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, _, _ = await carrying(wire)
        watcher = await wire.connect()
        await watcher.call(
            "session.resume", sessionId="s", provider={"type": "openai", "baseUrl": "http://127.0.0.1:9"}
        )
        await client.leave()
        await watcher.event("session.idle")
        assert "it has disconnected" in watcher.events("session.error")[0]["data"]["message"]
        assert wire.server.hub.exchanges == {}


async def test_answers_to_requests_of_others_are_not_taken(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, heads, _ = await carrying(wire)
        other = await wire.connect()
        for request in (heads[0]["requestId"], "nothing"):
            start = await other.call(
                "llmInference.httpResponseStart", requestId=request, status=200, headers={}
            )
            chunk = await other.call("llmInference.httpResponseChunk", requestId=request, data="x", end=True)
            assert (start, chunk) == ({"accepted": False}, {"accepted": False})
        await give(client, heads[0]["requestId"], json.dumps(ANSWER).encode())
        await client.event("session.idle")


@pytest.mark.parametrize("gives", [True, False])
async def test_each_request_has_a_fresh_token_of_the_client(gives: bool) -> None:
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        client = await wire.connect()
        asked: list[dict[str, Any]] = []

        def token(params: dict[str, Any]) -> dict[str, Any]:
            asked.append(params)
            return {"token": f"token-{len(asked)}"} if gives else {}

        client.handlers["providerToken.getToken"] = token
        url = f"http://127.0.0.1:{double.port}/v1"
        await client.create(
            model="m", provider={"type": "openai", "baseUrl": url, "hasBearerTokenProvider": True}
        )
        for number in (1, 2):
            await client.say()
            await client.event("session.idle", number)
        sent = [request.headers["authorization"] for request in double.requests]
    assert asked == [{"sessionId": "s", "providerName": "default"}] * 2
    assert sent == (["Bearer token-1", "Bearer token-2"] if gives else [])
    if not gives:
        assert client.events("session.error")[0]["data"]["errorType"] == "authentication"


async def test_a_token_for_anthropic_is_a_bearer_and_an_answer_is_no_longer_than_the_client_says() -> None:
    answer = {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(answer).encode())
        client = await wire.connect()
        client.handlers["providerToken.getToken"] = lambda params: {
            "token": f"token of {params['providerName']}"
        }
        url = f"http://127.0.0.1:{double.port}"
        place = {"type": "anthropic", "baseUrl": url, "maxOutputTokens": 77}
        # Of Anthropic's APIs there is one, whatever is said.
        wanted: tuple[dict[str, Any], ...] = (
            {"bearerToken": "static", "apiKey": "key", "wireApi": "responses"},
            {"hasBearerTokenProvider": True, "name": "mine"},
        )
        for number, more in enumerate(wanted):
            await client.create(f"s{number}", model="m", provider={**place, **more})
            await client.say(session=f"s{number}")
            await client.event("session.idle", number + 1)
        told = await client.call("session.provider.getEndpoint", sessionId="s0")
    assert (told["type"], told["apiKey"], "wireApi" in told) == ("anthropic", "key", False)
    assert [request.headers["authorization"] for request in double.requests] == [
        "Bearer static",
        "Bearer token of mine",
    ]
    assert all("x-api-key" not in request.headers for request in double.requests)
    assert [request.json["max_tokens"] for request in double.requests] == [77, 77]


PDF = base64.b64encode(b"%PDF-1.4 colours").decode()

CITED = {
    "type": "page_location",
    "cited_text": "Grass is green.",
    "document_index": 0,
    "document_title": "colours.pdf",
    "start_page_number": 2,
    "end_page_number": 3,
}


@pytest.mark.parametrize("wanted", [True, False])
async def test_answers_cite_the_documents_that_are_attached(wanted: bool) -> None:
    words = [
        {"type": "text", "text": "😀 It is "},
        {"type": "text", "text": "green 😀", "citations": [CITED]},
    ]
    answer = {"content": words if wanted else words[:1], "stop_reason": "end_turn"}
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(answer).encode())
        client = await wire.connect()
        provider = {"type": "anthropic", "baseUrl": f"http://127.0.0.1:{double.port}"}
        await client.create(model="m", provider=provider, enableCitations=wanted)
        attached = {"type": "blob", "data": PDF, "mimeType": "application/pdf", "displayName": "colours.pdf"}
        await client.say(attachments=[attached])
        data = (await client.event("assistant.message"))["data"]
        await client.event("session.idle")
        (document,) = [
            block
            for block in double.requests[0].json["messages"][-1]["content"]
            if block["type"] == "document"
        ]
    assert document["title"] == "colours.pdf"
    assert document.get("citations") == ({"enabled": True} if wanted else None)
    if not wanted:
        assert "citations" not in data
        return
    # Counted in UTF-16: an emoji is two.
    assert data["citations"]["spans"] == [
        {
            "startIndex": 9,
            "endIndex": 17,
            "references": [
                {
                    "sourceId": "source-1",
                    "citedText": "Grass is green.",
                    "location": {"type": "page", "startPage": 2, "endPage": 2},
                    "providerMetadata": {"type": "page_location", "document_index": 0},
                }
            ],
        }
    ]
    assert data["citations"]["sources"] == [
        {"id": "source-1", "provider": "anthropic", "title": "colours.pdf"}
    ]
    units = data["content"].encode("utf-16-le")
    assert units[2 * 9 : 2 * 17].decode("utf-16-le") == "green 😀"


async def test_answers_cite_what_tools_of_clients_have_found() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
    cited = {"type": "search_result_location", "search_result_index": 0, "cited_text": "Grass is green."}
    answers: tuple[dict[str, Any], ...] = (
        {"content": [call], "stop_reason": "tool_use"},
        {"content": [{"type": "text", "text": "Green.", "citations": [cited]}], "stop_reason": "end_turn"},
    )
    source = {"id": "grass", "content": "Grass is green.", "path": "notes.md"}
    replies = (HttpReply(body=json.dumps(answer).encode()) for answer in answers)
    async with open_http_double(*replies) as double, open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        provider = {"type": "anthropic", "baseUrl": f"http://127.0.0.1:{double.port}"}
        await client.create(model="m", provider=provider, enableCitations=True, tools=[tool("find")])
        await client.say()
        found = {
            "textResultForLlm": "one page",
            "resultType": "success",
            "citableSources": [source, {"id": 7}],
        }
        await client.give(await client.requested(), result=found)
        await client.event("session.idle")
        shown = double.requests[1].json["messages"][-1]["content"][0]["content"][1]
        said = client.events("assistant.message")[-1]["data"]["citations"]
    assert client.events("tool.execution_complete")[0]["data"]["result"]["citableSources"] == [source]
    assert (shown["type"], shown["source"]) == ("search_result", "notes.md")
    assert said["sources"] == [{"id": "grass", "provider": "client", "path": "notes.md"}]
    assert said["spans"][0]["references"][0]["sourceId"] == "grass"


@pytest.mark.parametrize(
    ("azure", "place"),
    [
        ({"apiVersion": "2024-10-21"}, "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        (None, "/openai/v1/chat/completions"),
    ],
)
async def test_azure_has_its_own_paths_and_its_own_header_for_a_key(
    azure: dict[str, str] | None, place: str
) -> None:
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        client = await wire.connect()
        provider: dict[str, Any] = {
            "type": "azure",
            "baseUrl": f"http://127.0.0.1:{double.port}/",
            "apiKey": "key",
        }
        if azure is not None:
            provider["azure"] = azure
        await client.create(model="m", provider=provider)
        await client.say()
        await client.event("session.idle")
        (request,) = double.requests
    assert request.target == place
    assert request.headers["api-key"] == "key"
    assert "authorization" not in request.headers


async def test_providers_are_told_which_client_calls() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        url = f"http://127.0.0.1:{double.port}/v1"
        default = DefaultProvider(provider={"type": "openai", "base_url": url}, model="m")
        async with open_wire(default=default) as wire:
            client = await wire.connect()
            for number, name in enumerate(("shop/2", "two\nlines", None)):
                await client.create(f"s{number}", clientName=name)
                await client.say(session=f"s{number}")
                await client.event("session.idle", number + 1)
        agents = [request.headers["user-agent"] for request in double.requests]
    assert agents == ["exeunt shop/2", "exeunt", "exeunt"]


async def test_an_agent_with_a_model_of_its_own_answers_with_it(autojump_clock: MockClock) -> None:
    provider = {"name": "p", "type": "openai", "baseUrl": "http://127.0.0.1:9"}
    models = [{"id": "small", "provider": "p"}, {"id": "large", "provider": "p"}]
    agents = [{"name": "thinker", "model": "p/large"}]
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        await client.create(providers=[provider], models=models, customAgents=agents)
        (listed,) = (await client.call("session.agent.list", sessionId="s"))["agents"]
        assert listed["model"] == "p/large"
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "p/small"
        await client.call("session.agent.select", sessionId="s", name="thinker")
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "p/large"
        await client.call("session.agent.deselect", sessionId="s")
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "p/small"


async def test_of_an_agents_model_and_a_switch_to_another_the_later_holds(autojump_clock: MockClock) -> None:
    provider = {"name": "p", "type": "openai", "baseUrl": "http://127.0.0.1:9"}
    models = [{"id": name, "provider": "p"} for name in ("small", "large", "other")]
    agents = [{"name": "thinker", "model": "p/large"}, {"name": "plain"}]
    async with open_wire(default=DefaultProvider()) as wire:
        client, second = await wire.connect(), await wire.connect()

        async def model() -> Any:
            return (await client.call("session.model.getCurrent", sessionId="s"))["modelId"]

        await client.create(providers=[provider], models=models, customAgents=agents, agent="thinker")
        assert await model() == "p/large"
        await client.call("session.model.switchTo", sessionId="s", modelId="p/other")
        assert await model() == "p/other"
        # It stays, whatever is configured anew of the rest, and whoever comes.
        await client.call("session.options.update", sessionId="s", streaming=True)
        await second.call("session.resume", sessionId="s")
        assert await model() == "p/other"
        with pytest.raises(WireFailure, match="no agent"):
            await client.call("session.agent.select", sessionId="s", name="nobody")
        assert await model() == "p/other"
        await client.call("session.agent.select", sessionId="s", name="plain")
        assert await model() == "p/other"
        await client.call("session.agent.select", sessionId="s", name="thinker")
        assert await model() == "p/large"
        await second.call("session.resume", sessionId="s", model="p/small")
        assert await model() == "p/small"
        await second.call("session.resume", sessionId="s", model="p/small", agent="thinker")
        assert await model() == "p/large"
        await client.call("session.agent.deselect", sessionId="s")
        assert await model() == "p/small"


async def test_tools_may_be_those_of_custom_agents_only(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["one", "two"])) as wire:
        client = await wire.connect()
        await client.create(
            tools=[tool("open"), tool("secret")],
            defaultAgent={"excludedTools": ["secret"]},
            customAgents=[{"name": "insider"}],
        )

        async def names() -> list[str]:
            listed = await client.call("session.tools.getCurrentMetadata", sessionId="s")
            return [one["name"] for one in listed["tools"]]

        assert await names() == ["open"]
        await client.call("session.agent.select", sessionId="s", name="insider")
        assert await names() == ["open", "secret"]


async def test_an_answer_has_one_head_and_nothing_behind_its_end(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client, heads, _ = await carrying(wire)
        request = heads[0]["requestId"]
        head: dict[str, Any] = {"requestId": request, "status": 200, "headers": {}}
        piece = {"requestId": request, "data": json.dumps(ANSWER), "end": True}
        # In one piece: the model has read none of it yet.
        asked = await client.start_together(
            ("llmInference.httpResponseStart", head),
            ("llmInference.httpResponseStart", {**head, "status": 500}),
            ("llmInference.httpResponseChunk", piece),
            ("llmInference.httpResponseChunk", piece),
        )
        taken = [(await client.answer(one))["result"]["accepted"] for one in asked]
        await client.event("session.idle")
        assert taken == [True, False, True, False]
        assert client.events("assistant.message")[0]["data"]["content"] == "carried"
