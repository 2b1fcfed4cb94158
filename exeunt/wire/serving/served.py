"""One session, as its clients see it."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import trio

from exeunt.actors.events import (
    Event,
    SessionResume,
)
from exeunt.actors.options import SessionOptions
from exeunt.actors.session import Session
from exeunt.actors.state.account import NO_ACCOUNT
from exeunt.wire.events.clock import iso
from exeunt.wire.events.figures import of_session
from exeunt.wire.events.mapper import EventMapper, Usage, WireEvent
from exeunt.wire.events.outside import OUTSIDE
from exeunt.wire.files.session import SessionFiles
from exeunt.wire.files.workspace import context_of
from exeunt.wire.instructions import Instructions
from exeunt.wire.messages.sessions import ProviderConfig, SessionConfig
from exeunt.wire.rpc import encode, no_session, notification
from exeunt.wire.serving import configuration
from exeunt.wire.serving.abilities import elicits
from exeunt.wire.serving.asking import Asking
from exeunt.wire.serving.client import NOTHING, Client, Peer, called
from exeunt.wire.serving.compacting import LEAST_MESSAGES, Compaction
from exeunt.wire.serving.reading import whole
from exeunt.wire.serving.request_headers import RequestHeaders
from exeunt.wire.serving.sizes import estimate, token_limit
from exeunt.wire.serving.system_message import instructions_told

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


ENDINGS = frozenset({"assistant.idle", "session.idle"})
"""Events that tell clients that nothing is left to wait for."""

REQUESTS = frozenset({"command.execute", "external_tool.requested"})
"""Events that ask one client to do something. The SDKs of all that are told of it, and could do it, do it."""

NOT_FOR_ALL = OUTSIDE | ENDINGS | REQUESTS
"""Events that not each client is told."""


class LastAnswer:
    """The model's last answer, since somebody waits for one."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event: WireEvent | None = None


class Served:
    """A session and its clients. Made and kept by the hub."""

    __slots__ = (
        "_head",
        "answers",
        "approves_all",
        "asking",
        "clients",
        "compaction",
        "compacts_from",
        "config",
        "files",
        "first_model",
        "headers",
        "hub",
        "instructions",
        "is_lost",
        "mapper",
        "overruled",
        "ready",
        "rewritten",
        "session",
        "tenant",
        "used",
    )

    def __init__(self, hub: "Hub", session_id: str, tenant: str, config: SessionConfig) -> None:
        self.hub = hub
        self.tenant = tenant
        self.config = config
        """What holds of all that its clients wanted."""
        self.session: Session | None = None
        self.ready: trio.Event | None = trio.Event()
        """While the session comes or leaves; set, and gone, when it is there, or is not."""
        self.clients: dict[Peer, Client] = {}
        """In the order in which they came."""
        self.asking = Asking(self)
        """What waits for its clients."""
        self.approves_all = False
        """Whether its clients have said that every call is approved."""
        self.first_model = ""
        """The name of the model that it was made with, where it was made here."""
        self.overruled: str | None = None
        """The custom agent whose own model does not hold any more: another was chosen while the session was it."""
        self.instructions: Instructions | None = None
        """What was read from the folders that its clients name."""
        self.rewritten: Mapping[str, str] = NOTHING
        """Sections of its system message as a client has rewritten them."""
        self.headers: RequestHeaders | None = None
        """The headers that its messages came with, once any did."""
        self.compaction: Compaction | None = None
        """The one that is under way."""
        self.compacts_from = LEAST_MESSAGES
        """Messages from which on the context may be compacted by itself."""
        self.files: SessionFiles | None = None
        """Its transcript and its workspace, where somebody keeps them."""
        self.is_lost = False
        """Whether another server has its log now, or nobody can write it: what was attached here is no more."""
        self.used = False
        """Whether anything was done with it: a message, a name, a note, a call."""
        self.answers: list[LastAnswer] | None = None
        """Of those who wait for one."""
        self.mapper = EventMapper(session_id, config.workingDirectory or hub.working_directory)
        self.mapper.figures = self._figures
        if hub.host.tracing is not None:
            self.mapper.trace_of_call = partial(hub.host.tracing.carrier, session_id)
        self._head = b'{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%b,"event":' % encode(
            session_id
        )

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.mapper.session_id

    @property
    def working_directory(self) -> str:
        """What the session's clients call its folder. Nothing here reads or writes it."""
        return self.mapper.working_directory

    def move(self, path: str) -> None:
        """Let the session's folder be another one; tell its clients, and its workspace."""
        if path == self.working_directory:
            return
        self.config = attrs.evolve(self.config, workingDirectory=path)
        self.mapper.working_directory = path
        self.lies_in({})
        self.notify("session.context_changed", {"cwd": path})

    def lies_in(self, report: Mapping[str, Any]) -> None:
        """Let the workspace say where the session is, and what a client has reported of that folder."""
        files = self.files
        if files is not None and files.workspace is not None:
            files.workspace.cwd = self.working_directory
            files.workspace.context = context_of(report)
            files.touch()

    @property
    def usage(self) -> Mapping[str, Usage]:
        """What its calls of each model have taken since it came into memory."""
        return self.mapper.usage or {}

    @property
    def last_id(self) -> str | None:
        """Id of the last event of the log that clients see."""
        return self.mapper.last_id

    @property
    def carrier(self) -> Peer | None:
        """The client that sends the session's requests to models, where one does."""
        return next((peer for peer in self.clients if peer.carries_requests), None)

    def token_source(self, provider: ProviderConfig) -> Client | None:
        """Return the client that gets the tokens of a provider: who gave it, or else the last with one of its name."""
        last_first = list(reversed(self.clients.values()))
        for client in last_first:
            if any(one is provider for one in client.token_providers()):
                return client
        name = called(provider)
        return next(
            (one for one in last_first if name in {called(own) for own in one.token_providers()}), None
        )

    @property
    def model(self) -> str:
        """The name of the session's model."""
        return self.mapper.model

    @model.setter
    def model(self, name: str) -> None:
        self.mapper.model = name

    @property
    def first_effort(self) -> str | None:
        """How much its model was to think where it was made."""
        return self.mapper.effort

    @property
    def mode(self) -> str:
        """What clients have chosen: `interactive`, `plan` or `autopilot`."""
        return self.mapper.mode

    @property
    def title(self) -> str:
        """The session's name, if it has one."""
        actor = self.hub.host.find(self.session_id)
        return "" if actor is None else (actor.state.labels or {}).get("title", "")

    @property
    def started(self) -> float:
        """When the session began; seconds since the epoch."""
        return self.mapper.started

    def began_with(self, model: str) -> None:
        """Note with which model the session is made here."""
        self.first_model = self.mapper.model = model
        self.mapper.effort = self.config.reasoningEffort

    @property
    def handle(self) -> Session:
        """The session."""
        assert self.session is not None
        return self.session

    @property
    def is_gone(self) -> bool:
        """Whether it has left memory for good."""
        return self.session is not None and self.session.statistics().status == "closed"

    def options(self) -> tuple[str, SessionOptions]:
        """Return the name of the model, and the options that follow from what the clients want."""
        return configuration.options_for(self, self.hub.handlers)

    def instructions_told(self) -> str:
        """Return what the model is told of instructions."""
        return instructions_told(self.config, self.instructions)

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
            raise no_session(self.session_id)
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
                "ui": {"elicitation": elicits(self), "mcpApps": False, "canvases": False},
                "extensions": False,
            },
            "modelState": {"modelId": self.model},
            **({} if self.workspace_path is None else {"workspacePath": self.workspace_path}),
        }

    @property
    def workspace_path(self) -> str | None:
        """Where the session's files are, if it has a workspace among them."""
        files = self.files
        return None if files is None or files.workspace is None else files.store.place("")

    def _figures(self) -> dict[str, Any]:
        """Return what the session has taken, and how large its context is. For its end, while it is still there."""
        actor = self.hub.host.find(self.session_id)
        if actor is None:
            return of_session(self.usage, NO_ACCOUNT)
        sizes = estimate(actor.context.visible(), actor.options.tools.definitions, cited=self.cites)
        return {
            **of_session(self.usage, actor.state.account),
            "currentTokens": sizes.total,
            "systemTokens": sizes.system,
            "conversationTokens": sizes.conversation,
            "toolDefinitionsTokens": sizes.tools,
        }

    # --- Events --------------------------------------------------------------------------------------------

    def prime(self, events: Sequence[Event], model: str, started: float) -> None:
        """Take note of the last events of a log, so that what follows them can be told."""
        mapper = self.mapper
        for event in events:
            if not event.ephemeral:
                self.asking.note(event)
                for _ in mapper.map(event):
                    pass
        mapper.model, mapper.started = model, started

    def take_labels(self) -> None:
        """Take over what was chosen earlier, and may stand far back in the log."""
        actor = self.hub.host.find(self.session_id)
        if actor is not None:
            self.mapper.mode = (actor.state.labels or {}).get("mode", self.mapper.mode)

    @property
    def cites(self) -> bool:
        """Whether its model is to say where its words come from."""
        return bool(self.config.enableCitations)

    @property
    def token_limit(self) -> int:
        """Tokens that a request may have: as the client says of the model, or as the server takes for granted."""
        return token_limit(self.config, self.model) or self.hub.options.context_tokens

    def tell(self, wire: WireEvent) -> None:
        """Send an event to each client that wants it."""
        kind = wire.type
        if kind == "assistant.message":
            for answer in self.answers or ():
                answer.event = wire
        clients = self.clients
        if not clients:
            return
        body = self._head + encode(wire) + b"}}"
        droppable = kind in DROPPABLE
        if kind in NOT_FOR_ALL:
            for client in clients.values():
                if self._is_for(client, wire):
                    client.show(body, droppable)
            return
        for client in clients.values():
            client.show(body, droppable)

    def _is_for(self, client: Client, wire: WireEvent) -> bool:
        """Whether *client* is told of an event that not each is told."""
        if wire.type in ENDINGS:
            return client.waits_for_idle
        if wire.type in REQUESTS:
            return not self.asking.would_do_too(client, wire)
        return client.wants(wire.type)

    @contextmanager
    def watching_answers(self) -> Generator[LastAnswer]:
        """Keep the model's last answer in the body, for one who waits: others that wait have their own."""
        answer = LastAnswer()
        if self.answers is None:
            self.answers = []
        self.answers.append(answer)
        try:
            yield answer
        finally:
            self.answers.remove(answer)
            self.answers = self.answers or None

    def notify(self, kind: str, data: dict[str, Any]) -> str:
        """Send an event that the log does not have; return its id."""
        wire = self.mapper.made(kind, data, self.hub.wall())
        self.tell(wire)
        return wire.id

    def notify_one(self, client: Client, kind: str, data: dict[str, Any]) -> None:
        """Send an event that the log does not have to one client."""
        wire = self.mapper.made(kind, data, self.hub.wall())
        client.show(self._head + encode(wire) + b"}}", False)

    def tell_others(self, client: Client, kind: str, data: dict[str, Any]) -> None:
        """Send an event that the log does not have to all clients but one."""
        wire = self.mapper.made(kind, data, self.hub.wall())
        body = self._head + encode(wire) + b"}}"
        for other in list(self.clients.values()):
            if other is not client:
                other.show(body, False)

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
        self.mapper.wants_own = any(client.interests for client in self.clients.values())

    def history(self, events: Sequence[Event]) -> list[WireEvent]:
        """Return a whole log as clients see it."""
        return whole(self, events)

    @contextmanager
    def going_back(self, event_id: str, last_id: str | None) -> Generator[None]:
        """Know, while it is being done in the body, which event a client wants to be away, and what is last then."""
        self.mapper.away = (event_id, last_id)
        try:
            yield
        finally:
            self.mapper.away = None

    def taken_up(self, continue_pending_work: bool, *, was_active: bool) -> None:
        """Log that a client has taken the session up, which was in memory; and whether others had it then."""
        actor = self.hub.host.find(self.session_id)
        if actor is not None:
            actor.record(SessionResume, actor.state.seq, continue_pending_work, was_active)

    def tell_problems(self) -> None:
        """Tell the clients which instructions the model does not have."""
        for problem in () if self.instructions is None else self.instructions.problems:
            self.notify("session.warning", {"warningType": "instructions", "message": problem})
