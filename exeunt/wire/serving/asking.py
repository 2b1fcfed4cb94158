"""What waits for the clients of one session: calls of their tools, decisions, questions, hooks, forms, commands."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import outcome

from exeunt.actors.errors import ClientGone, InvalidAnswer
from exeunt.actors.events import Event, ExternalToolRequested
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.permissions import LeavePending, UserNotAvailable
from exeunt.actors.session import PendingRequest
from exeunt.actors.tools import ToolInvocation
from exeunt.actors.turn import turn_questions
from exeunt.actors.turn.live import Waiter
from exeunt.actors.user_input import UserInputRequest
from exeunt.wire.events.mapper import WireEvent
from exeunt.wire.messages.ui import QueuedCommandResult
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import abilities
from exeunt.wire.serving import turn_questions as turns
from exeunt.wire.serving.client import Client
from exeunt.wire.serving.pending import COMMAND, ELICITATION, QUEUED_COMMAND, Pending
from exeunt.wire.serving.results import gone

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served


ANSWER_WAIT = 3600.0
"""Seconds that a person may take, as for an approval."""

MOST_QUESTIONS = 100
"""Open questions and commands of one session."""

_EVENTS = {
    ELICITATION: ("elicitation.requested", "elicitation.completed"),
    COMMAND: ("command.execute", "command.completed"),
    QUEUED_COMMAND: ("command.queued", "command.completed"),
}
"""What clients see of each kind of question, when it is asked and when it is over."""


async def asked(served: "Served", about: str, data: dict[str, Any], client: Client | None) -> Any:
    """Ask clients by an event, and return the answer. Raises `RpcError` where too many questions wait.

    Cancelled: whoever answers is told that nobody waits.
    """
    if served.asking.questions is None:
        served.asking.questions = {}
    if len(served.asking.questions) >= MOST_QUESTIONS:
        raise RpcError(FAILED, f"{MOST_QUESTIONS} questions of the session wait for an answer already")
    request_id = served.new_id()
    pending = served.asking.questions[request_id] = Pending(request_id, "", client, about)
    done: dict[str, Any] = {"requestId": request_id}
    requested, completed = _EVENTS[about]
    try:
        served.notify(requested, {"requestId": request_id, **data})
        answer = await pending.waiter.wait()
        if about == ELICITATION:
            done |= {key: answer[key] for key in ("action", "content") if key in answer}
        return answer
    finally:
        del served.asking.questions[request_id]
        served.notify(completed, done)


class Asking:
    """Who is asked what, for one session."""

    __slots__ = ("_before", "_hooks", "_served", "calls", "direct", "questions", "shown", "switching")

    def __init__(self, served: "Served") -> None:
        self._served = served
        self.calls: dict[str, Pending] | None = None
        """Calls of tools that wait for an answer, by the id of the request."""
        self.questions: dict[str, Pending] | None = None
        """Forms and commands that wait for a client."""
        self.direct: dict[str, Client] | None = None
        """Clients that answer for themselves whether to go on with another model, by the handle of each."""
        self.shown = ""
        """The last request of a turn of which the clients have been told."""
        self.switching: Client | None = None
        """Who is being asked that now."""
        self._hooks: list[tuple[str, Client]] | None = None
        """Calls that wait for a hook, and who runs it."""
        self._before: dict[str, str] | None = None
        """Requests of an earlier process that were not answered, by the id of the call."""

    def note(self, event: Event) -> None:
        """Take note of what an earlier process has asked."""
        if type(event) is ExternalToolRequested:
            if self._before is None:
                self._before = {}
            self._before[event.tool_call_id] = event.request_id

    def owner(self, tool_name: str) -> Client | None:
        """Return the client that serves a tool: of several, the one that came last."""
        for client in reversed(self._served.clients.values()):
            if client.offers(tool_name):
                return client
        return None

    def would_do_too(self, client: Client, wire: WireEvent) -> bool:
        """Whether *client* would do what another is asked to do, were it told of the request."""
        data = wire.data
        if wire.type == "external_tool.requested":
            pending, does = self.calls, data["toolName"] in client.served_tools
        else:
            pending, does = self.questions, client.has_command(data["commandName"])
        asked = None if pending is None else pending.get(data["requestId"])
        return does and asked is not None and not asked.may_answer(client)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Hand a call to its client, and wait for the answer. The tool's time-out bounds that."""
        client = self.owner(invocation.tool_name)
        if client is None and not self._served.hub.options.wait_for_clients:
            return gone()
        actor = self._served.hub.host.find(self._served.session_id)
        assert actor is not None
        known = None if self._before is None else self._before.pop(invocation.tool_call_id, None)
        # A process that has ended has asked already, and its client may be at work: only that answer is awaited.
        request_id = known or actor.new_id()
        pending = Pending(request_id, invocation.tool_call_id, None if known else client)
        if len(self._served.clients) > 1:
            pending.bystanders = tuple(one for one in self._served.clients.values() if one is not client)
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
            self._served.notify("external_tool.completed", {"requestId": request_id})

    def called(self, pending: Pending) -> tuple[str, str]:
        """Return the tool and the arguments of a call that waits."""
        actor = self._served.hub.host.find(self._served.session_id)
        batch = None if actor is None else actor.batch
        for call in () if batch is None else batch.calls:
            if call.call.id == pending.tool_call_id:
                return call.name, call.arguments_json
        return "", ""

    def is_asked(self) -> bool:
        """Whether any client is asked for approvals, or may come back to be."""
        asked = any(client.config.requestPermission for client in self._served.clients.values())
        return asked or self._served.hub.options.wait_for_clients

    def open_requests(self, kind: str) -> list[PendingRequest]:
        """Return what people have been asked: `permission` or `user_input` for a call, others for the turn."""
        return [request for request in self._served.handle.pending_requests() if request.kind == kind]

    def answer(self, request_id: str, answer: Any) -> bool:
        """Answer what a call has asked; return whether it was open. Raises `InvalidAnswer`; then it still is."""
        actor = self._served.hub.host.find(self._served.session_id)
        if actor is None or actor.status != "live":
            return False
        waiter = _Answered()
        actor.put(turn_questions.answer, request_id, answer, waiter)
        return waiter.taken()

    async def ask_user(self, request: UserInputRequest) -> Any:
        """Let the client that serves questions ask its user; without one the question stays open, or has no answer."""
        client = next((one for one in self._served.clients.values() if one.config.requestUserInput), None)
        if client is None:
            if self._served.hub.options.wait_for_clients:
                return LeavePending()
            raise ClientGone("the client that asks the user has disconnected")
        params: dict[str, Any] = {
            "sessionId": self._served.session_id,
            "question": request.question,
            "choices": list(request.choices),
            "allowFreeform": request.allow_freeform,
        }
        return await client.peer.ask("userInput.request", params, math.inf)

    @contextmanager
    def serving_hook(self, tool_call_id: str | None) -> Generator[Client]:
        """Choose who runs a hook; meanwhile it may clear the context for the call that the hook belongs to."""
        client = next((one for one in self._served.clients.values() if one.config.hooks), None)
        if client is None:
            raise ClientGone("the client that runs the hooks has disconnected")
        if tool_call_id is None:
            yield client
            return
        entry = (tool_call_id, client)
        if self._hooks is None:
            self._hooks = []
        self._hooks.append(entry)
        try:
            yield client
        finally:
            self._hooks.remove(entry)

    def calls_of(self, client: Client) -> set[str]:
        """Return the calls that wait for an answer of *client*: its results, its decisions, its hooks."""
        found: set[str] = set()
        for pending in (self.calls or {}).values():
            if pending.may_answer(client):
                found.add(pending.tool_call_id)
        if client.config.requestPermission:
            found.update(request.tool_call_id for request in self.open_requests("permission"))
        found.update(call for call, runs in self._hooks or () if runs is client)
        return found

    @property
    def waits_for_clients(self) -> bool:
        """Whether a call waits for an answer of a client."""
        return bool(self.calls or self._served.handle.pending_requests())

    def replaced(self, former: Client, client: Client) -> None:
        """The same connection has attached anew: it answers what it was asked before."""
        for pending in (self.calls or {}).values():
            if pending.client is former:
                pending.client = client
        for handle, one in (self.direct or {}).items():
            if one is former and self.direct is not None:
                self.direct[handle] = client

    def client_left(self, client: Client) -> None:
        """End, or leave to others, what waited for a client that is not attached any more."""
        waits = self._served.hub.options.wait_for_clients
        if self.direct is not None:
            self.direct = {handle: one for handle, one in self.direct.items() if one is not client} or None
        for question in list((self.questions or {}).values()):
            if question.client is client:
                question.answer("client disconnected")
            elif question.about == ELICITATION and not abilities.elicits(self._served):
                question.answer({"action": "cancel"})
            elif question.about == QUEUED_COMMAND and not abilities.delegates_commands(self._served):
                question.answer(QueuedCommandResult(handled=False))
        for pending in list((self.calls or {}).values()):
            if pending.client is client:
                pending.client = None
                if not waits:
                    pending.answer(gone())
        self._nobody_decides(waits)
        if not waits and not any(one.config.requestPermission for one in self._served.clients.values()):
            for request in self.open_requests("permission"):
                self.answer(request.request_id, UserNotAvailable())

    def _nobody_decides(self, waits: bool) -> None:
        """End what the turn has asked, where nobody is left to answer it."""
        asked = None if waits else turns.open_question(self._served)
        if asked is None:
            return
        if asked.kind == "auto_mode_switch" and not turns.can_be_asked_to_switch(self._served):
            self.answer(asked.request_id, "no")
        elif asked.kind == "session_limits" and not turns.interested(self._served, turns.LIMITS):
            self.answer(asked.request_id, "cancel")


class _Answered(Waiter):
    """Takes what becomes of an answer, at once."""

    __slots__ = ()

    def taken(self) -> bool:
        """Say whether the request was open. Raises `InvalidAnswer`."""
        result = self._result
        if isinstance(result, outcome.Error) and isinstance(result.error, InvalidAnswer):
            raise result.error
        return isinstance(result, outcome.Value)
