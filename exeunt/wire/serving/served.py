"""One session, as its clients see it."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import outcome
import trio

from exeunt.actors.errors import ClientGone, InvalidAnswer
from exeunt.actors.events import Event, ExternalToolRequested, SessionIdle, SessionShutdown
from exeunt.actors.options import SessionOptions
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.permissions import LeavePending, UserNotAvailable
from exeunt.actors.session import PendingRequest, Session
from exeunt.actors.tools import ToolInvocation
from exeunt.actors.turn import requests
from exeunt.actors.turn.live import Waiter
from exeunt.actors.user_input import UserInputRequest
from exeunt.wire.events.clock import iso
from exeunt.wire.events.mapper import EventMapper, Usage, WireEvent
from exeunt.wire.events.mapping import OUTSIDE
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.rpc import FAILED, RpcError, encode, notification
from exeunt.wire.serving import configuration
from exeunt.wire.serving.client import Client, Peer
from exeunt.wire.serving.pending import Pending
from exeunt.wire.serving.results import gone

if TYPE_CHECKING:
    from exeunt.wire.serving.hub import Hub

DROPPABLE = frozenset(
    {
        "assistant.message_delta",
        "assistant.reasoning_delta",
        "assistant.streaming_delta",
        "assistant.turn_retry",
        "assistant.usage",
        "model.call_failure",
        "pending_messages.modified",
        "session.usage_info",
    }
)
"""Events that a slow client does without: what they show is shown again, or is of the moment. Others that are not
kept, `session.idle` before all, tell clients to go on."""


class Served:
    """A session and its clients. Made and kept by the hub."""

    __slots__ = (
        "_head",
        "_mapper",
        "approves_all",
        "asked",
        "calls",
        "clients",
        "config",
        "first_model",
        "hub",
        "last_answer",
        "questions",
        "ready",
        "session",
        "tenant",
        "waiting_hooks",
    )

    def __init__(self, hub: "Hub", session_id: str, tenant: str, config: SessionConfig) -> None:
        self.hub = hub
        self.tenant = tenant
        self.config = config
        """What holds of all that its clients wanted."""
        self.session: Session | None = None
        self.ready: trio.Event | None = trio.Event()
        """Set, and gone, when the session is there, or will not be."""
        self.clients: dict[Peer, Client] = {}
        """In the order in which they came."""
        self.calls: dict[str, Pending] | None = None
        self.questions: dict[str, Pending] | None = None
        """Forms and commands that wait for a client."""
        self.approves_all = False
        """Whether its clients have said that every call is approved."""
        self.waiting_hooks: list[tuple[str, Client]] | None = None
        """Calls that wait for a hook, and who runs it."""
        self.asked: dict[str, str] | None = None
        """Requests of an earlier process that were not answered, by the id of the call."""
        self.first_model = ""
        """The name of the model that it was made with, where it was made here."""
        self.last_answer: WireEvent | None = None
        """The model's last answer, for who waits for one."""
        self._mapper = EventMapper(session_id, config.workingDirectory or hub.working_directory)
        self._head = b'{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%b,"event":' % encode(
            session_id
        )

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._mapper.session_id

    @property
    def working_directory(self) -> str:
        """What the session's clients call its folder. Nothing here reads or writes it."""
        return self._mapper.working_directory

    @working_directory.setter
    def working_directory(self, path: str) -> None:
        self._mapper.working_directory = path

    @property
    def usage(self) -> Usage:
        """What its model calls have taken since it came into memory."""
        return self._mapper.usage

    @property
    def last_id(self) -> str | None:
        """Id of the last event of the log that clients see."""
        return self._mapper.last_id

    @property
    def elicits(self) -> bool:
        """Whether any client can show a form to a person."""
        return any(client.config.requestElicitation for client in self.clients.values())

    @property
    def model(self) -> str:
        """The name of the session's model."""
        return self._mapper.model

    @model.setter
    def model(self, name: str) -> None:
        self._mapper.model = name

    @property
    def mode(self) -> str:
        """What clients have chosen: `interactive`, `plan` or `autopilot`."""
        return self._mapper.mode

    @property
    def title(self) -> str:
        """The session's name, if it has one."""
        actor = self.hub.host.find(self.session_id)
        return "" if actor is None else (actor.state.labels or {}).get("title", "")

    @property
    def started(self) -> float:
        """When the session began; seconds since the epoch."""
        return self._mapper.started

    @property
    def handle(self) -> Session:
        """The session."""
        assert self.session is not None
        return self.session

    def options(self) -> tuple[str, SessionOptions]:
        """Return the name of the model, and the options that follow from what the clients want."""
        return configuration.options_for(self, self.hub.handlers)

    def commands(self) -> list[dict[str, str]]:
        """Return the slash commands of its clients; of two with one name, that of the client that came last."""
        found: dict[str, dict[str, str]] = {}
        for client in self.clients.values():
            for command in client.config.commands or ():
                found[command.name] = {"name": command.name}
                if command.description:
                    found[command.name]["description"] = command.description
        return list(found.values())

    def new_id(self) -> str:
        """Return an id that nothing else in the session has."""
        actor = self.hub.host.find(self.session_id)
        return str(uuid4()) if actor is None else actor.new_id()

    def steering_ids(self) -> set[str]:
        """Return the messages that join the running turn."""
        actor = self.hub.host.find(self.session_id)
        return set() if actor is None else {item.message_id for item in actor.state.steering or ()}

    def record(self, event: type[Event], *payload: Any) -> str:
        """Write an event into the log; return its id. Raises `RpcError` when the session is not in memory."""
        actor = self.hub.host.find(self.session_id)
        if actor is None or actor.status != "live":
            raise RpcError(FAILED, f"Session not found for sessionId: {self.session_id}")
        actor.record(event, *payload)
        return actor.origin.event_id(actor.state.seq)

    def description(self) -> dict[str, Any]:
        """Return what a client is told that has attached."""
        return {
            "sessionId": self.session_id,
            "nativeSessionId": self.session_id,
            "startTime": iso(self.started),
            "isRemote": False,
            "mode": self.mode,
            "capabilities": {
                "ui": {"elicitation": self.elicits, "mcpApps": False, "canvases": False},
                "extensions": False,
            },
            "modelState": {"modelId": self.model},
        }

    # --- Events --------------------------------------------------------------------------------------------

    def prime(self, events: Sequence[Event], model: str, started: float) -> None:
        """Take note of the last events of a log, so that what follows them can be told."""
        mapper = self._mapper
        for event in events:
            if not event.ephemeral:
                self._note(event)
                for _ in mapper.map(event):
                    pass
        mapper.model, mapper.started = model, started

    def take_labels(self) -> None:
        """Take over what was chosen earlier, and may stand far back in the log."""
        actor = self.hub.host.find(self.session_id)
        if actor is not None:
            self._mapper.mode = (actor.state.labels or {}).get("mode", self._mapper.mode)

    def _note(self, event: Event) -> None:
        if type(event) is ExternalToolRequested:
            if self.asked is None:
                self.asked = {}
            self.asked[event.tool_call_id] = event.request_id

    def show(self, events: Sequence[Event]) -> None:
        """Tell the clients what has happened. Never waits."""
        mapper = self._mapper
        for event in events:
            for wire in mapper.map(event):
                self.tell(wire)
            kind = type(event)
            if kind is SessionIdle:
                self._idle()
            elif kind is SessionShutdown:
                self.hub.left(self)

    def tell(self, wire: WireEvent) -> None:
        """Send an event to each client that wants it."""
        kind = wire.type
        if kind == "assistant.message":
            self.last_answer = wire
        clients = self.clients
        if not clients:
            return
        body = self._head + encode(wire) + b"}}"
        droppable = kind in DROPPABLE
        if kind in OUTSIDE:
            for client in clients.values():
                if client.wants(kind):
                    client.show(body, droppable)
            return
        for client in clients.values():
            client.show(body, droppable)

    def notify(self, kind: str, data: dict[str, Any]) -> str:
        """Send an event that the log does not have; return its id."""
        wire = self._mapper.made(kind, data, self.hub.wall())
        self.tell(wire)
        return wire.id

    def lifecycle(self, kind: str) -> None:
        """Tell the clients what became of the session as a whole."""
        clients = self.clients
        if clients:
            body = notification("session.lifecycle", self.lifecycle_params(kind))
            for client in clients.values():
                client.show(body, True)

    def lifecycle_params(self, kind: str) -> dict[str, Any]:
        """Return what is told of the session as a whole."""
        return {"type": kind, "sessionId": self.session_id, "metadata": self.hub.times(self)}

    def want_own(self) -> None:
        """Note whether any client has asked for events that the protocol does not have."""
        self._mapper.wants_own = any(client.interests for client in self.clients.values())

    def history(self, events: Sequence[Event]) -> list[WireEvent]:
        """Return a whole log as clients see it."""
        mapper = EventMapper(self.session_id, self.working_directory)
        mapper.model = self.first_model
        return [wire for event in events for wire in mapper.map(event) if not wire.ephemeral]

    def _idle(self) -> None:
        if self.clients:
            self.lifecycle("session.updated")
        else:
            self.hub.unload(self)

    # --- Calls of tools ------------------------------------------------------------------------------------

    def owner(self, tool_name: str) -> Client | None:
        """Return the client that serves a tool: of several, the one that came last."""
        for client in reversed(self.clients.values()):
            if tool_name in client.served_tools:
                return client
        return None

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Hand a call to its client, and wait for the answer. The tool's time-out bounds that."""
        client = self.owner(invocation.tool_name)
        if client is None and not self.hub.options.wait_for_clients:
            return gone()
        actor = self.hub.host.find(self.session_id)
        assert actor is not None
        known = None if self.asked is None else self.asked.pop(invocation.tool_call_id, None)
        # A process that has ended has asked already, and its client may be at work: only that answer is awaited.
        request_id = known or actor.new_id()
        pending = Pending(request_id, invocation.tool_call_id, None if known else client)
        if self.calls is None:
            self.calls = {}
        self.calls[request_id] = pending
        try:
            if known is None:
                actor.record(
                    ExternalToolRequested,
                    request_id,
                    invocation.tool_call_id,
                    invocation.tool_name,
                    invocation.arguments_json,
                )
            result: ToolResult = await pending.waiter.wait()
            return result
        finally:
            del self.calls[request_id]
            self.notify("external_tool.completed", {"requestId": request_id})

    def called(self, pending: Pending) -> tuple[str, str]:
        """Return the tool and the arguments of a call that waits."""
        actor = self.hub.host.find(self.session_id)
        batch = None if actor is None else actor.batch
        for call in () if batch is None else batch.calls:
            if call.call.id == pending.tool_call_id:
                return call.name, call.arguments_json
        return "", ""

    def is_asked(self) -> bool:
        """Whether any client is asked for approvals, or may come back to be."""
        asked = any(client.config.requestPermission for client in self.clients.values())
        return asked or self.hub.options.wait_for_clients

    def open_requests(self, kind: str) -> list[PendingRequest]:
        """Return what calls have asked people: `permission` or `user_input`."""
        return [request for request in self.handle.pending_requests() if request.kind == kind]

    def answer(self, request_id: str, answer: Any) -> bool:
        """Answer what a call has asked; return whether it was open. Raises `InvalidAnswer`; then it still is."""
        actor = self.hub.host.find(self.session_id)
        if actor is None or actor.status != "live":
            return False
        waiter = _Answered()
        actor.put(requests.answer, request_id, answer, waiter)
        return waiter.taken()

    async def ask_user(self, request: UserInputRequest) -> Any:
        """Let the client that serves questions ask its user; without one the question stays open, or has no answer."""
        client = next((one for one in self.clients.values() if one.config.requestUserInput), None)
        if client is None:
            if self.hub.options.wait_for_clients:
                return LeavePending()
            raise ClientGone("the client that asks the user has disconnected")
        params: dict[str, Any] = {
            "sessionId": self.session_id,
            "question": request.question,
            "choices": list(request.choices),
            "allowFreeform": request.allow_freeform,
        }
        return await client.peer.ask("userInput.request", params, math.inf)

    @contextmanager
    def serving_hook(self, tool_call_id: str | None) -> Generator[Client]:
        """Choose who runs a hook; meanwhile it may clear the context for the call that the hook belongs to."""
        client = next((one for one in self.clients.values() if one.config.hooks), None)
        if client is None:
            raise ClientGone("the client that runs the hooks has disconnected")
        if tool_call_id is None:
            yield client
            return
        entry = (tool_call_id, client)
        if self.waiting_hooks is None:
            self.waiting_hooks = []
        self.waiting_hooks.append(entry)
        try:
            yield client
        finally:
            self.waiting_hooks.remove(entry)

    def calls_of(self, client: Client) -> set[str]:
        """Return the calls that wait for an answer of *client*: its results, its decisions, its hooks."""
        found: set[str] = set()
        for pending in (self.calls or {}).values():
            if pending.may_answer(client):
                found.add(pending.tool_call_id)
        if client.config.requestPermission:
            found.update(request.tool_call_id for request in self.open_requests("permission"))
        found.update(call for call, runs in self.waiting_hooks or () if runs is client)
        return found

    @property
    def waits_for_clients(self) -> bool:
        """Whether a call waits for an answer of a client."""
        return bool(self.calls or self.handle.pending_requests())

    def replaced(self, former: Client, client: Client) -> None:
        """The same connection has attached anew: it answers what it was asked before."""
        for pending in (self.calls or {}).values():
            if pending.client is former:
                pending.client = client

    def tell_what_came(self, client: Client) -> None:
        """Tell the other clients what this one can do."""
        if (
            client.config.requestElicitation
            and sum(bool(c.config.requestElicitation) for c in self._all) == 1
        ):
            self._tell_others(client, "capabilities.changed", {"ui": {"elicitation": True}})
        if client.config.commands:
            self._tell_others(client, "commands.changed", {"commands": self.commands()})

    def tell_what_left(self, client: Client) -> None:
        """Tell the other clients what nobody can do any more."""
        if client.config.requestElicitation and not self.elicits:
            self.notify("capabilities.changed", {"ui": {"elicitation": False}})
        if client.config.commands:
            self.notify("commands.changed", {"commands": self.commands()})

    @property
    def _all(self) -> list[Client]:
        return list(self.clients.values())

    def _tell_others(self, client: Client, kind: str, data: dict[str, Any]) -> None:
        wire = self._mapper.made(kind, data, self.hub.wall())
        body = self._head + encode(wire) + b"}}"
        for other in self._all:
            if other is not client:
                other.show(body, False)

    def client_left(self, client: Client) -> None:
        """End, or leave to others, what waited for a client that is not attached any more."""
        waits = self.hub.options.wait_for_clients
        for question in list((self.questions or {}).values()):
            if question.client is client:
                question.answer("client disconnected")
            elif question.client is None and not self.elicits:
                question.answer({"action": "cancel"})
        for pending in list((self.calls or {}).values()):
            if pending.client is client:
                pending.client = None
                if not waits:
                    pending.answer(gone())
        if not waits and not any(one.config.requestPermission for one in self.clients.values()):
            for request in self.open_requests("permission"):
                self.answer(request.request_id, UserNotAvailable())


class _Answered(Waiter):
    """Takes what becomes of an answer, at once."""

    __slots__ = ()

    def taken(self) -> bool:
        """Say whether the request was open. Raises `InvalidAnswer`."""
        result = self._result
        if isinstance(result, outcome.Error) and isinstance(result.error, InvalidAnswer):
            raise result.error
        return isinstance(result, outcome.Value)
