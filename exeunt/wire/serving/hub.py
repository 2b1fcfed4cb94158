"""All sessions that clients have in memory, and what those sessions call."""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import trio

from exeunt.actors.errors import ClientGone, ClientRefused, ExeuntError, SessionNotFound
from exeunt.actors.events import Event, SessionIdle, SessionLost, SessionShutdown
from exeunt.actors.hooks import HookInvocation
from exeunt.actors.options import SessionOptions
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.permissions import LeavePending, PermissionRequest, UserNotAvailable
from exeunt.actors.tools import ToolInvocation, ask_user_tool
from exeunt.actors.turn_requests import AutoModeSwitchRequest, SessionLimitsExhaustedRequest
from exeunt.actors.user_input import UserInputRequest
from exeunt.host import SessionHost
from exeunt.wire.events.clock import iso
from exeunt.wire.files.counts import FileCounts
from exeunt.wire.files.folder import Disk
from exeunt.wire.files.session import SessionFiles
from exeunt.wire.instructions import Reader
from exeunt.wire.messages.sessions import ProviderConfig
from exeunt.wire.options import WireOptions
from exeunt.wire.rpc import no_session
from exeunt.wire.serving import turn_questions
from exeunt.wire.serving.attached_files import AttachedFiles
from exeunt.wire.serving.carrying import CarriedSocket, Exchange
from exeunt.wire.serving.catalogue import Catalogue
from exeunt.wire.serving.client import Peer, called
from exeunt.wire.serving.configuration import Handlers
from exeunt.wire.serving.hooks import hooks_of
from exeunt.wire.serving.models import DefaultProvider, Models
from exeunt.wire.serving.reading import Readings
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.showing import show
from exeunt.wire.serving.tools import ToolFactory

logger = logging.getLogger("exeunt.wire")

HISTORIES_AT_ONCE = 4
"""Whole logs that are made into answers at the same time: 100,000 events are some 30 MB."""


_RESTS = (SessionIdle, SessionLost, SessionShutdown)
"""Events after which a session makes no request for some time."""


class Hub:
    """The sessions of one server."""

    def __init__(self, host: SessionHost, options: WireOptions, default: DefaultProvider) -> None:
        self.host = host
        self.options = options
        self.working_directory = str(Path.cwd())
        self.tools = ToolFactory(self._call_tool, options.tool_timeout)
        self.sessions: dict[str, Served] = {}
        self.exchanges: dict[str, tuple[Peer, Exchange]] = {}
        """Requests to models that clients send."""
        self.sockets: dict[str, list[CarriedSocket]] = {}
        """Web sockets to models that clients have opened, by the sessions that they serve."""
        self.catalogues: dict[Peer, Catalogue] = {}
        """What clients that send requests have brought of the models that there are."""
        self.disk = (
            None if options.session_files is None else Disk(options.session_files, options.files_timeout)
        )
        """Where the server keeps files of sessions, if it does."""
        self.file_counts = FileCounts()
        self.closing: dict[str, SessionFiles] = {}
        """Files of sessions that have left memory, while they are still written."""
        self.removing: dict[str, trio.Event] = {}
        """Set when nothing is left of a session that is deleted, also no file."""
        self.histories = trio.CapacityLimiter(HISTORIES_AT_ONCE)
        """For who reads a whole log: it is long, and long in many answers at once is too much."""
        self.readings = Readings()
        self.instructions = Reader(options.instruction_roots)
        root = options.attachments_root
        self.attached_files = None if root is None else AttachedFiles(root, options.media_limits)
        """Reads what clients attach by its path, if the server was told where it may."""
        self.handlers = Handlers(
            models=Models(default),
            on_permission_request=self._ask_permission,
            on_user_input_request=self._ask_user,
            on_session_limits_exhausted=self._ask_for_credits,
            on_auto_mode_switch_request=self._ask_to_switch,
            ask_user=ask_user_tool(),
            hooks=hooks_of(self),
            base_message=options.system_message,
            current_datetime=options.current_datetime,
        )
        host.observe(self._observe)
        host.serving.append(self._options)

    # --- What the sessions call ------------------------------------------------------------------------------

    def _observe(self, session_id: str, events: Sequence[Event], /) -> None:
        served = self.sessions.get(session_id)
        if served is not None:
            show(served, events)
        if session_id in self.sockets and any(isinstance(event, _RESTS) for event in events):
            self._hang_up(session_id)

    def _options(self, session_id: str) -> SessionOptions | None:
        """Return what a session of our clients runs with, which comes back into memory."""
        served = self.sessions.get(session_id)
        return None if served is None or served.session is None else served.options()[1]

    def _hang_up(self, session_id: str) -> None:
        """The session has nothing left to do: its web sockets are closed that serve no request."""
        for socket in list(self.sockets.get(session_id, ())):
            if socket.resting:
                socket.close()

    async def _call_tool(self, arguments: dict[str, Any], invocation: ToolInvocation) -> ToolResult:
        served = self.served(invocation.session_id)
        result = await served.asking.call(invocation)
        files = served.files
        return result if files is None else await files.shorten(result, served.config.largeOutput)

    def _ask_permission(self, request: PermissionRequest, invocation: HookInvocation) -> Any:
        """Leave the decision to the clients, who are told of the request by its event."""
        return LeavePending() if self.served(invocation.session_id).asking.is_asked() else UserNotAvailable()

    async def _ask_user(self, request: UserInputRequest, invocation: HookInvocation) -> Any:
        return await self.served(invocation.session_id).asking.ask_user(request)

    async def _ask_for_credits(self, request: SessionLimitsExhaustedRequest, place: HookInvocation) -> Any:
        return await turn_questions.ask_for_credits(self.served(place.session_id), request)

    async def _ask_to_switch(self, request: AutoModeSwitchRequest, place: HookInvocation) -> Any:
        return await turn_questions.ask_to_switch(self.served(place.session_id), request)

    async def token(self, provider: ProviderConfig, session_id: str) -> str:
        """Ask the client that gave a provider for its token. Raises `ClientGone`, `ClientRefused`."""
        client = self.served(session_id).token_source(provider)
        if client is None:
            raise ClientGone(f"the client that gets the tokens of {called(provider)!r} has disconnected")
        params = {"sessionId": session_id, "providerName": called(provider)}
        answer: Any = await client.peer.ask("providerToken.getToken", params)
        token = cast("dict[str, Any]", answer).get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise ClientRefused("the client answered without a token")
        return token

    def break_off(self, peer: Peer) -> None:
        """End the requests to models that a client was sending, which has disconnected."""
        for sender, exchange in list(self.exchanges.values()):
            if sender is peer:
                exchange.add(b"", True, "it has disconnected")
        self.catalogues.pop(peer, None)
        for socket in [one for sockets in self.sockets.values() for one in sockets]:
            # Nobody may come to see that one is dead which serves no request.
            if socket.resting and socket.exchange.is_done:
                self.exchanges.pop(socket.exchange.request_id, None)
                socket.close()

    def served(self, session_id: str) -> Served:
        """Return a session that calls us. Raises `SessionNotFound`."""
        served = self.sessions.get(session_id)
        if served is None:
            raise SessionNotFound("no client has this session any more", session_id=session_id)
        return served

    def wall(self) -> float:
        """Return the time; seconds since the epoch."""
        return self.host.clock.wall()

    def times(self, served: Served) -> dict[str, Any]:
        """Return when a session began and when it last changed."""
        return {"startTime": iso(served.started), "modifiedTime": iso(self.wall())}

    # --- Who is there ------------------------------------------------------------------------------------------

    def find(self, tenant: str, session_id: str) -> Served:
        """Return a session of *tenant* that is in memory. Raises `RpcError`."""
        served = self.sessions.get(session_id)
        if served is None or served.tenant != tenant or served.session is None:
            raise no_session(session_id)
        return served

    async def settled(self, session_id: str) -> Served | None:
        """Return a session once it is known whether it is there: not before it has come, or left."""
        while True:
            served = self.sessions.get(session_id)
            if served is not None and served.ready is None and served.is_gone:
                # Lost in the moment in which it had been taken up.
                self.lost(served)
            news = self._unsettled(session_id)
            if news is None:
                return self.sessions.get(session_id)
            await news.wait()

    def _unsettled(self, session_id: str) -> trio.Event | None:
        """Return what to wait for: a session that comes or leaves, the last words of its files, or their end."""
        served = self.sessions.get(session_id)
        if served is not None:
            return served.ready
        files = self.closing.get(session_id)
        return self.removing.get(session_id) if files is None else files.closed

    @contextmanager
    def removal(self, session_id: str) -> Generator[None]:
        """Delete a session and its files in the body. Who asks for it meanwhile waits: the next one has other files.

        To be entered at once when the session is `settled`.
        """
        over = self.removing[session_id] = trio.Event()
        try:
            yield
        finally:
            over.set()
            if self.removing.get(session_id) is over:
                del self.removing[session_id]

    def opened(self, served: Served) -> None:
        """It is known now: a session is there, or will not be."""
        assert served.ready is not None
        served.ready.set()
        served.ready = None
        if served.session is None and self.sessions.get(served.session_id) is served:
            self._remove(served)

    def left(self, served: Served) -> None:
        """The session has left memory in order: nobody is attached to it any more."""
        self.readings.forget(served)
        departing = served.session is not None and served.ready is not None
        # Its last event is not yet the end of that: a log may be still to be deleted.
        if not departing and self.sessions.get(served.session_id) is served:
            self._remove(served)

    def lost(self, served: Served) -> None:
        """The session has left memory, because its log is not ours any more: nothing of it holds, for nobody."""
        served.clients.clear()
        served.is_lost = True
        self.left(served)

    def _remove(self, served: Served) -> None:
        del self.sessions[served.session_id]
        files, served.files = served.files, None
        if files is not None:
            self.closing[served.session_id] = files
            if served.session is None or served.is_lost:
                # What they would say was not to be, or is for another server to say.
                files.abandon()
            else:
                files.close()

    @contextmanager
    def departure(self, served: Served) -> Generator[None]:
        """Let a session leave memory in the body. Who asks for it meanwhile waits, and takes it up again then.

        It stays where the body raises an `ExeuntError`; cancelled, it leaves all the same.
        """
        first = served.ready is None
        if first:
            served.ready = trio.Event()
        leaves = True
        try:
            yield
        except ExeuntError:
            leaves = False
            raise
        finally:
            if first:
                self.opened(served)
            if leaves:
                self.left(served)

    def unload(self, served: Served) -> None:
        """Let a session leave memory that is idle and has no clients; its log stays."""
        self.host.spawn(partial(self._unload, served))

    async def _unload(self, served: Served) -> None:
        if served.clients or self.sessions.get(served.session_id) is not served:
            return
        actor = self.host.find(served.session_id)
        if actor is not None and actor.active:
            return
        try:
            with self.departure(served):
                await served.handle.disconnect(reason="detached")
        except ExeuntError:
            logger.exception("session %s could not leave memory", served.session_id)
            self.left(served)
        await trio.lowlevel.checkpoint()
