"""A client written from the protocol's description: it sends what a test tells it to, also what no client would."""

import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from exeunt import SessionHost
from exeunt.testing import ScriptedModel, checked_host
from exeunt.wire.framing import FrameReader, frame
from exeunt.wire.options import Tokens, WireOptions
from exeunt.wire.server import WireServer
from exeunt.wire.serving.models import DefaultProvider


class WireFailure(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class Silence(Exception):
    """Raised by a handler of a client that does not answer."""


class WireClient:
    """One connection. Requests of the server are answered by `handlers`, by method."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.handlers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.notifications: list[dict[str, Any]] = []
        """All of them, in order."""
        self.answers: dict[Any, dict[str, Any]] = {}
        """Whole answers by id; those without one under `None`."""
        self.closed = trio.Event()
        """Set when the server has ended the connection."""
        self._sending = trio.Lock()
        self._ids = itertools.count(1_000_000)  # ids of small numbers are for what tests send by hand
        self._arrived = trio.Event()

    async def run(self) -> None:
        """Take what comes until the connection ends."""
        reader = FrameReader(64 * 1024 * 1024)
        try:
            while data := await self.stream.receive_some(65536):
                for body in reader.feed(data):
                    await self._take(msgspec.json.decode(body))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self.closed.set()
        self._arrived.set()

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.answers[message.get("id")] = message
        elif "id" not in message:
            self.notifications.append(message)
        elif message["method"] in self.handlers:
            try:
                result = self.handlers[message["method"]](message["params"])
            except Silence:
                return
            await self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self._arrived.set()
        self._arrived = trio.Event()

    async def send(self, message: Any) -> None:
        """Send anything as one frame."""
        async with self._sending:
            await self.stream.send_all(frame(msgspec.json.encode(message)))

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self.stream.send_all(data)

    async def answer(self, key: Any) -> dict[str, Any]:
        """Wait for the answer to a request, and return it whole."""
        while key not in self.answers:
            if self.closed.is_set():
                raise AssertionError(f"the connection ended before request {key!r} was answered")
            await self._arrived.wait()
        return self.answers.pop(key)

    async def start(self, method: str, **params: Any) -> int:
        """Send a request; return its id."""
        key = next(self._ids)
        await self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return key

    async def start_together(self, *requests: tuple[str, dict[str, Any]]) -> list[int]:
        """Send requests, as methods and parameters, in one piece: nothing happens between them. Return their ids."""
        keys = [next(self._ids) for _ in requests]
        frames = [
            frame(msgspec.json.encode({"jsonrpc": "2.0", "id": key, "method": method, "params": params}))
            for key, (method, params) in zip(keys, requests, strict=True)
        ]
        await self.send_bytes(b"".join(frames))
        return keys

    async def call(self, method: str, /, **params: Any) -> Any:
        """Send a request, and return its result. Raises `WireFailure`."""
        answer = await self.answer(await self.start(method, **params))
        if "error" in answer:
            raise WireFailure(answer["error"])
        return answer["result"]

    # --- Events ----------------------------------------------------------------------------------------------

    def events(self, *kinds: str, session: str | None = None) -> list[dict[str, Any]]:
        """The events so far: of these kinds, of one session."""
        return [
            params["event"]
            for notification in self.notifications
            if notification["method"] == "session.event"
            for params in [notification["params"]]
            if (not kinds or params["event"]["type"] in kinds) and session in (None, params["sessionId"])
        ]

    def kinds(self) -> list[str]:
        """The kinds of all events so far."""
        return [event["type"] for event in self.events()]

    async def event(self, kind: str, number: int = 1) -> dict[str, Any]:
        """Wait for the event of this kind with this number, from 1, and return it."""
        while len(found := self.events(kind)) < number:
            if self.closed.is_set():
                raise AssertionError(f"the connection ended before {kind} number {number}")
            await self._arrived.wait()
        return found[number - 1]

    # --- What most tests do ----------------------------------------------------------------------------------

    async def create(self, session: str = "s", /, **config: Any) -> dict[str, Any]:
        """Make a session in which every call is asked for."""
        config.setdefault("requestPermission", True)
        made: dict[str, Any] = await self.call("session.create", sessionId=session, **config)
        return made

    async def say(self, prompt: str = "go", session: str = "s", **params: Any) -> str:
        """Send a message; return its id."""
        sent = await self.call("session.send", sessionId=session, prompt=prompt, **params)
        return str(sent["messageId"])

    async def turn(self, prompt: str = "go", session: str = "s", **params: Any) -> None:
        """Send a message, and wait for the next time that nothing is left to do."""
        idle = len(self.events("session.idle"))
        await self.say(prompt, session, **params)
        await self.event("session.idle", idle + 1)

    async def calling(self, *tools: dict[str, Any], **config: Any) -> str:
        """Make a session whose model calls a tool, and wait for the call; return the id of its request."""
        await self.create(tools=list(tools), **config)
        await self.say()
        return await self.requested()

    async def history(self, session: str = "s") -> list[dict[str, Any]]:
        """Return the events that the log has."""
        events: list[dict[str, Any]] = (await self.call("session.getMessages", sessionId=session))["events"]
        return events

    async def approve(self, number: int = 1, session: str = "s", kind: str = "approve-once") -> None:
        """Approve the call that asks for it as number *number*."""
        asked = await self.event("permission.requested", number)
        await self.call(
            "session.permissions.handlePendingPermissionRequest",
            sessionId=session,
            requestId=asked["data"]["requestId"],
            result={"kind": kind},
        )

    async def requested(self, number: int = 1) -> str:
        """Wait for the call of a tool with this number; return the id of the request."""
        return str((await self.event("external_tool.requested", number))["data"]["requestId"])

    async def give(self, request_id: str, session: str = "s", **answer: Any) -> bool:
        """Answer a call of a tool; return whether that counted."""
        done = await self.call(
            "session.tools.handlePendingToolCall", sessionId=session, requestId=request_id, **answer
        )
        return bool(done["success"])

    async def leave(self) -> None:
        """End the connection without a word."""
        await self.stream.aclose()
        await wait_all_tasks_blocked()


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool that needs no approval, as a client declares it."""
    more.setdefault("skipPermission", True)
    return {"name": name, "description": f"Does {name}.", "parameters": {"type": "object"}, **more}


CLEAR = tool(
    "clear_context",
    isTerminal=True,
    parameters={"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
)
"""The tool of the documentation."""


class Wire:
    """A server in virtual time, and the way to it."""

    def __init__(self, server: WireServer, host: SessionHost, nursery: trio.Nursery) -> None:
        self.server = server
        self.host = host
        self.nursery = nursery

    async def connect(self, **handshake: Any) -> WireClient:
        """Connect a client, and shake hands."""
        client = self.raw()
        await client.call("connect", **handshake)
        return client

    def raw(self) -> WireClient:
        """Connect a client that has said nothing yet."""
        here, there = memory_stream_pair()
        client = WireClient(here)
        self.nursery.start_soon(self.server.serve_stream, there, f"client {len(self.server.connections) + 1}")
        self.nursery.start_soon(client.run)
        return client


@asynccontextmanager
async def open_wire(
    model: ScriptedModel | None = None,
    *,
    options: WireOptions | None = None,
    tokens: dict[str, str] | None = None,
    default: DefaultProvider | None = None,
    settled: bool = True,
    **host: Any,
) -> AsyncGenerator[Wire]:
    """Serve a host that checks its own promises; its sessions answer from *model*."""
    provider = default or DefaultProvider(client=model, model="scripted")
    async with checked_host(settled=settled, **host) as made, trio.open_nursery() as nursery:
        server = WireServer(made, options=options, tokens=Tokens(tokens or {}), default=provider)
        yield Wire(server, made, nursery)
        nursery.cancel_scope.cancel()
