"""The Responses API by way of a client: what its catalogue says, and web sockets that it opens."""

import json
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.actors.models import ModelError
from exeunt.testing.http_double import HttpReply, open_http_double
from exeunt.wire.serving.carrying import Exchange
from exeunt.wire.serving.catalogue import api_of, read
from exeunt.wire.serving.models import DefaultProvider, speaking
from tests.models.responses_support import message, recovered, response, told
from tests.wire.wire_client import Wire, WireClient, WireFailure, open_wire

SOCKETS = ["/responses", "ws:/responses"]


class Sender:
    """A client that sends the requests of its sessions: it has a catalogue, and answers nothing else by itself."""

    def __init__(self, client: WireClient, endpoints: list[str] | None) -> None:
        self.client = client
        self.heads: list[dict[str, Any]] = []
        """Of requests to a model."""
        self.asked = 0
        """Times that the catalogue was asked for."""
        self.said: list[dict[str, Any]] = []
        """Pieces of what is sent to a model."""
        self._entry: dict[str, Any] = {"id": "m"}
        if endpoints is not None:
            self._entry["supported_endpoints"] = endpoints
        self.lists: list[dict[str, Any]] = []
        """Requests for the catalogue."""
        client.handlers["llmInference.httpRequestStart"] = self._begin
        client.handlers["llmInference.httpRequestChunk"] = self._piece

    def _begin(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["transport"] == "http" and params["method"] == "GET":
            self.asked += 1
            assert params["url"].endswith("/models")
            self.lists.append(params)
        else:
            self.heads.append(params)
        return {}

    def _piece(self, params: dict[str, Any]) -> dict[str, Any]:
        if all(params["requestId"] != one["requestId"] for one in self.lists):
            self.said.append(params)
        return {}

    async def give_catalogue(self) -> None:
        """Answer what asks for the catalogue."""
        await wait_all_tasks_blocked()
        for request in [one["requestId"] for one in self.lists]:
            await self.begin(request, 200)
            await self.piece(request, {"data": [self._entry]}, end=True)
        await wait_all_tasks_blocked()

    async def begin(self, request: str, status: int = 101) -> None:
        """Begin an answer."""
        await self.client.call("llmInference.httpResponseStart", requestId=request, status=status, headers={})

    async def piece(self, request: str, data: Any, **more: Any) -> bool:
        """Send a piece of an answer; return whether it was taken."""
        text = data if isinstance(data, str) else json.dumps(data)
        taken = await self.client.call("llmInference.httpResponseChunk", requestId=request, data=text, **more)
        return bool(taken["accepted"])

    async def answer(self, request: str, *items: Any, response_id: str = "r1") -> None:
        """Answer a request on a web socket."""
        for event in told(*items, id=response_id):
            assert await self.piece(request, event)
        await wait_all_tasks_blocked()


async def sending(
    wire: Wire, endpoints: list[str] | None, *, gives_catalogue: bool = True, **config: Any
) -> Sender:
    """A client with a session whose first message waits for its model."""
    client = await wire.connect()
    sender = Sender(client, endpoints)
    assert await client.call("llmInference.setProvider") == {"success": True}
    await client.create(model="m", **config)
    await client.say()
    if gives_catalogue:
        await sender.give_catalogue()
    await wait_all_tasks_blocked()
    return sender


@pytest.mark.parametrize(
    ("endpoints", "config", "place"),
    [
        (None, {}, "https://api.githubcopilot.com/chat/completions"),
        (["/chat/completions", "/responses"], {}, "https://api.githubcopilot.com/chat/completions"),
        (["/responses"], {}, "https://api.githubcopilot.com/responses"),
        (["/v1/messages"], {"reasoningEffort": "low"}, "https://api.githubcopilot.com/v1/messages"),
        (["/v1/messages", "/chat/completions"], {}, "https://api.githubcopilot.com/chat/completions"),
        (SOCKETS, {}, "wss://api.githubcopilot.com/responses"),
        (SOCKETS, {"capi": {"enableWebSocketResponses": False}}, "https://api.githubcopilot.com/responses"),
        (SOCKETS, {"capi": {"enableWebSocketResponses": True}}, "wss://api.githubcopilot.com/responses"),
    ],
)
async def test_a_model_is_called_as_its_catalogue_says(
    endpoints: list[str] | None, config: dict[str, Any], place: str, autojump_clock: MockClock
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, endpoints, **config)
        (head,) = sender.heads
        assert head["url"] == place
        socket = place.startswith("wss")
        assert (head["transport"], head["method"]) == (("websocket", "GET") if socket else ("http", "POST"))
        assert (head["sessionId"], head["agentId"]) == ("s", "s")
        assert head["interactionType"]
        # A web socket is opened before anything is said on it.
        assert bool(sender.said) is not socket


async def test_a_turn_goes_over_one_web_socket_which_is_closed_when_nothing_is_left_to_do(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS)
        client, (head,) = sender.client, sender.heads
        request = head["requestId"]
        await client.say("and more")
        await sender.begin(request)
        await wait_all_tasks_blocked()
        (said,) = sender.said
        assert "end" not in said
        first = json.loads(said["data"])
        assert (first["type"], first["input"][0]["content"]) == ("response.create", "go")
        await sender.answer(request, message("One."))
        # The message that waited takes the same connection, and holds only what is new.
        second = json.loads(sender.said[1]["data"])
        assert (second["previous_response_id"], len(second["input"])) == ("r1", 1)
        assert len(sender.heads) == 1
        await sender.answer(request, message("Two."), response_id="r2")
        await client.event("session.idle")
        await wait_all_tasks_blocked()
        assert [event["data"]["content"] for event in client.events("assistant.message")] == ["One.", "Two."]
        assert (sender.said[2]["requestId"], sender.said[2]["end"]) == (request, True)
        assert (wire.server.hub.exchanges, wire.server.hub.sockets) == ({}, {})
        # The next one opens another, and the catalogue is known.
        await client.say("again")
        await wait_all_tasks_blocked()
        assert (len(sender.heads), sender.asked) == (2, 1)


async def test_a_web_socket_that_a_client_cannot_open_is_an_error_of_the_model(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS)
        request = sender.heads[0]["requestId"]
        await sender.begin(request, 403)
        await sender.piece(request, {"error": {"message": "not for you"}}, end=True)
        await sender.client.event("session.idle")
        (failed,) = sender.client.events("session.error")
        assert failed["data"]["errorType"] == "authentication"
        assert "not for you" in failed["data"]["message"]
        assert (wire.server.hub.exchanges, wire.server.hub.sockets) == ({}, {})


@pytest.mark.parametrize("how", ["end", "error"])
async def test_a_web_socket_that_ends_inside_an_answer_is_an_error(
    how: str, autojump_clock: MockClock
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS)
        request = sender.heads[0]["requestId"]
        await sender.begin(request)
        await wait_all_tasks_blocked()
        more: dict[str, Any] = {"end": True} if how == "end" else {"error": {"message": "no network"}}
        await sender.piece(request, "", **more)
        # What is lost is tried again, what the client refuses is not.
        await wait_all_tasks_blocked()
        if how == "error":
            await sender.client.event("session.idle")
            assert "no network" in sender.client.events("session.error")[0]["data"]["message"]
        else:
            await sender.client.event("assistant.turn_retry")
            await sender.client.call("session.abort", sessionId="s")
        assert request not in wire.server.hub.exchanges


async def test_an_abort_cancels_what_is_under_way_on_a_web_socket(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS)
        request = sender.heads[0]["requestId"]
        await sender.begin(request)
        await wait_all_tasks_blocked()
        await sender.client.call("session.abort", sessionId="s")
        await wait_all_tasks_blocked()
        assert sender.said[-1]["cancel"] is True
        assert not await sender.piece(request, "late")
        assert (wire.server.hub.exchanges, wire.server.hub.sockets) == ({}, {})


async def test_a_client_that_leaves_takes_its_catalogue_and_its_sockets_along(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS)
        await sender.begin(sender.heads[0]["requestId"])
        await wait_all_tasks_blocked()
        watcher = await wire.connect()
        await watcher.call(
            "session.resume", sessionId="s", provider={"type": "openai", "baseUrl": "http://127.0.0.1:9"}
        )
        await sender.client.leave()
        await watcher.event("session.idle")
        assert "it has disconnected" in watcher.events("session.error")[0]["data"]["message"]
        hub = wire.server.hub
        assert (hub.exchanges, hub.sockets, hub.catalogues) == ({}, {}, {})


async def test_what_a_client_was_to_send_goes_nowhere_else_when_it_leaves(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, SOCKETS, gives_catalogue=False)
        assert sender.asked == 1
        watcher = await wire.connect()
        await watcher.call("session.resume", sessionId="s", suppressResumeEvent=True)
        await sender.client.leave()
        await watcher.event("session.idle")
        (failed,) = watcher.events("session.error")
        assert failed["data"]["errorType"] == "connection_lost"
        assert "disconnected" in failed["data"]["message"]


# --- Providers of clients ----------------------------------------------------------------------------------------


async def test_a_provider_of_a_client_may_speak_the_responses_api() -> None:
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = recovered
        client = await wire.connect()
        url = f"http://127.0.0.1:{double.port}/v1"
        provider = {
            "type": "openai", "wireApi": "responses", "baseUrl": url, "apiKey": "key", "maxOutputTokens": 99
        }  # fmt: skip
        await client.create(
            model="m", provider=provider, reasoningEffort="low", reasoningSummary="concise", streaming=True
        )
        endpoint = await client.call("session.provider.getEndpoint", sessionId="s")
        assert (endpoint["wireApi"], endpoint["type"]) == ("responses", "openai")
        await client.say()
        await client.event("session.idle")
        (request,) = double.requests
    assert request.target == "/v1/responses"
    assert request.json["reasoning"] == {"effort": "low", "summary": "concise"}
    assert request.json["max_output_tokens"] == 99
    usage = client.events("assistant.usage")[0]["data"]
    assert (usage["inputTokens"], usage["cacheReadTokens"], usage["reasoningTokens"]) == (12, 4, 5)
    assert client.events("assistant.message_delta")


async def test_the_request_of_such_a_provider_goes_by_way_of_the_client(autojump_clock: MockClock) -> None:
    provider = {"type": "openai", "wireApi": "responses", "baseUrl": "https://byok.example/v1", "apiKey": "k"}
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, None, provider=provider)
        (head,) = sender.heads
        assert (head["url"], sender.asked) == ("https://byok.example/v1/responses", 0)
        assert (head["sessionId"], head["agentId"], head["headers"]["authorization"]) == (
            "s",
            "s",
            ["Bearer k"],
        )
        await sender.begin(head["requestId"], 200)
        await sender.piece(head["requestId"], response(message("carried")), end=True)
        await sender.client.event("session.idle")
        assert sender.client.events("assistant.message")[0]["data"]["content"] == "carried"


async def test_azure_has_one_path_for_all_its_responses() -> None:
    async with open_http_double() as double, open_wire(default=DefaultProvider()) as wire:
        double.otherwise = HttpReply(body=json.dumps(response(message("Hi."))).encode())
        client = await wire.connect()
        provider = {
            "type": "azure", "wireApi": "responses", "baseUrl": f"http://127.0.0.1:{double.port}", "apiKey": "key"
        }  # fmt: skip
        for number, azure in enumerate(({"apiVersion": "2025-04-01-preview"}, None)):
            await client.create(f"s{number}", model="m", provider={**provider, "azure": azure})
            await client.say(session=f"s{number}")
            await client.event("session.idle", number + 1)
        targets = [request.target for request in double.requests]
    assert targets == ["/openai/responses?api-version=2025-04-01-preview", "/openai/v1/responses"]


@pytest.mark.parametrize(
    "provider",
    [
        {"wireApi": "messages"},
        {"wireApi": "responses", "transport": "carrier pigeon"},
        {"wireApi": "completions", "transport": "websockets"},
        {"transport": "websockets"},
    ],
)
async def test_an_api_that_there_is_not_is_refused(
    provider: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        with pytest.raises(WireFailure):
            await client.create(model="m", provider={"type": "openai", "baseUrl": "http://x/v1", **provider})


# --- Bounds ------------------------------------------------------------------------------------------------------


async def test_what_waits_of_a_web_socket_is_bounded_not_what_it_ever_brings() -> None:
    carrier: Any = None
    socket = Exchange(carrier, "r", 10, of_messages=True)
    for _ in range(3):
        socket.add(b"12345678", False, None)
        assert await socket.receive(deadline=0) == b"12345678"
    socket.add(b"12345678", False, None)
    socket.add(b"123", False, None)
    assert await socket.receive(deadline=0) == b"12345678"
    with pytest.raises(ModelError, match="longer than it may be"):
        await socket.receive(deadline=0)


async def test_a_client_that_sends_requests_is_told_the_models_of_its_catalogue(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        sender = await sending(wire, ["/responses"])
        client = sender.client
        assert [one["id"] for one in (await client.call("models.list"))["models"]] == ["m"]
        assert (await client.call("session.model.list", sessionId="s"))["list"] == [{"id": "m", "name": "m"}]
        assert sender.asked == 1
        # Nobody else is told, nor asked for it.
        other = await wire.connect()
        with pytest.raises(WireFailure, match="Not authenticated"):
            await other.call("models.list")


async def test_before_there_is_a_session_the_catalogue_is_asked_for_without_one(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        sender = Sender(client, None)
        await client.call("llmInference.setProvider")
        asked = await client.start("models.list")
        await sender.give_catalogue()
        assert [one["id"] for one in (await client.answer(asked))["result"]["models"]] == ["m"]
        assert sender.lists[0].keys() == {"requestId", "method", "url", "headers", "transport"}


async def test_a_client_without_a_catalogue_is_told_that(autojump_clock: MockClock) -> None:
    async with open_wire(default=DefaultProvider()) as wire:
        client = await wire.connect()
        sender = Sender(client, None)
        await client.call("llmInference.setProvider")
        asked = await client.start("models.list")
        await wait_all_tasks_blocked()
        request = sender.lists[0]["requestId"]
        await sender.begin(request, 404)
        await sender.piece(request, "", end=True)
        assert "names no model" in (await client.answer(asked))["error"]["message"]


# --- Catalogues --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"[]",
        b'{"data": 7}',
        b'{"data": [7, {"id": 7}]}',
    ],
)
def test_what_is_no_catalogue_says_nothing(body: bytes) -> None:
    assert read(body) == {}


def test_a_catalogue_says_what_it_knows() -> None:
    known = {"id": "a", "supported_endpoints": ["/responses", 7]}
    body = {"data": [known, {"id": "b"}, {"id": "c", "supported_endpoints": "all"}]}
    nothing: frozenset[str] = frozenset()
    assert read(json.dumps(body).encode()) == {"a": {"/responses"}, "b": nothing, "c": nothing}
    assert api_of(frozenset(), sockets=True) == {}


def test_a_key_is_a_bearer_token_also_for_messages_at_the_same_place() -> None:
    provider = {"type": "openai", "base_url": "https://x", "api_key": "k", "stream_usage": False}
    messages = {"type": "anthropic", "base_url": "https://x", "auth_token": "k"}
    assert speaking(provider, {"type": "anthropic"}) == messages
    assert speaking(provider, {"wire_api": "responses"}) == {**provider, "wire_api": "responses"}
