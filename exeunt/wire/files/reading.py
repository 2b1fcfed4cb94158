"""From the lines of a transcript back to the events of a log."""

import math
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from exeunt.actors import events as core
from exeunt.actors.errors import ContextError
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.state import SessionState
from exeunt.actors.state.context import may_be_cut
from exeunt.actors.text import encodable
from exeunt.wire.events.mapping import EVENT_FORMAT, SEED_SOURCE, SHOWN
from exeunt.wire.serving.compacting import composed

LOST = "The session was cut off before this call had an outcome; what it did is unknown."
"""What the model reads as the result of a call whose outcome the transcript does not have."""


_FAILURES = {outcome.value: outcome for outcome in Outcome if outcome is not Outcome.SUCCESS}


class _Line(msgspec.Struct, frozen=True):
    type: str
    data: dict[str, Any]
    id: str
    timestamp: str
    ephemeral: bool = False
    agentId: str | None = None  # noqa: N815 - the protocol's name
    """A sub-agent, whose conversation is its own."""


_lines = msgspec.json.Decoder(_Line)


class Malformed(ValueError):
    """A line is not what it should be."""


class Reader:
    """Makes the log of one session. What cannot follow raises `ContextError` or `ValueError`."""

    def __init__(self, session_id: str, tenant: str, terminal: Collection[str]) -> None:
        self.events: list[core.Event] = []
        self._session_id = session_id
        self._tenant = tenant
        self._terminal = terminal
        self._origin = core.Origin.fresh()
        self._state = SessionState()
        self._time = 0.0
        self._turn_id = ""
        self._began = 0.0
        self._steps = 0
        self._reason: TurnEndReason | None = None
        """How the turn ended, where an event says so."""
        self._clear: core.ContextCleared | None = None
        """A clear that stands before the results of its batch, as other servers write it."""
        self._answered = False
        """Whether the last answer of the turn had no calls."""

    def take(self, line: str) -> None:
        """Take one line."""
        try:
            event = _lines.decode(line)
        except msgspec.MsgspecError as error:
            raise Malformed(f"it is no event: {error}") from error
        if event.ephemeral or event.agentId is not None:
            return
        self._time = _seconds(event.timestamp)
        if not self.events and event.type != "session.start":
            raise Malformed(f"a session begins with session.start, not with {event.type:.80}")
        read = _READERS.get(event.type)
        if read is not None:
            read(self, event.data)

    def end(self) -> None:
        """Close what is over. What is still open at the end is left so: whoever resumes says what becomes of it."""
        if self._state.turn_id is not None and self._batch is None and self._clear is None:
            last = self.events[-1]
            if self._ending() is not TurnEndReason.INTERRUPTED or isinstance(last, core.SessionShutdown):
                self._end_turn()
        elif self._clear is not None or (self._state.turn_id is None and self._batch is not None):
            self._end_turn()

    # --- Bookkeeping -----------------------------------------------------------------------------------------

    @property
    def _batch(self) -> Any:
        return self._state.context.batch

    def emit(self, kind: type[core.Event], *payload: Any, **more: Any) -> None:
        """Add an event to the log."""
        make: Callable[..., core.Event] = kind
        event = make(self._origin, self._state.seq + 1, self._time, *payload, **more)
        self._state.apply(event)
        self.events.append(event)

    def _ending(self) -> TurnEndReason:
        """Say how the turn ended, by what it has come to."""
        if self._reason is not None:
            return self._reason
        if self._answered:
            return TurnEndReason.COMPLETED
        # The results of the last batch stand at the end of the context.
        for message in reversed(self._state.context.messages):
            if not isinstance(message, core.ToolExecutionComplete):
                break
            if message.terminal and message.success:
                return TurnEndReason.TERMINAL_TOOL
        return TurnEndReason.INTERRUPTED

    def _end_turn(self) -> None:
        """End what is open, as far as there is something."""
        self._close_calls(Outcome.INTERRUPTED)
        if self._state.step is not None:
            self.emit(core.AssistantTurnEnd, self._state.step.turn_id, self._state.step.step)
        clear, self._clear = self._clear, None
        if self._state.turn_id is not None:
            reason = self._ending()
            if clear is not None and reason is not TurnEndReason.TERMINAL_TOOL:
                reason = TurnEndReason.CONTEXT_CLEARED
            self.emit(
                core.TurnEnd,
                self._turn_id,
                reason,
                self._state.context.generation,
                self._steps,
                max(0.0, self._time - self._began),
                clear is not None,
            )
        if clear is not None:
            self.emit(
                core.ContextCleared,
                clear.messages_cleared,
                clear.initial_message,
                self._state.context.generation + 1,
            )
        self._reason, self._answered = None, False

    def _close_calls(self, outcome: Outcome) -> None:
        batch = self._batch
        if batch is None:
            return
        for call, result in zip(batch.message.tool_calls, batch.results, strict=True):
            if result is None:
                self._start_call(call)
                self._end_call(call, outcome, LOST, LOST)

    def _open_call(self, data: Mapping[str, Any]) -> ToolCall | None:
        """Return the call that *data* is about, if it has no result; `None` for one that no answer asked for."""
        wanted, batch = data.get("toolCallId"), self._batch
        if batch is not None:
            for call, result in zip(batch.message.tool_calls, batch.results, strict=True):
                if call.id == wanted and result is None:
                    return cast("ToolCall", call)
        return None

    def _start_call(self, call: ToolCall) -> None:
        if call.id not in (self._state.open_calls or {}):
            terminal = call.name in self._terminal
            # As all tools of clients: see `serving.tools`.
            self.emit(
                core.ToolExecutionStart,
                call.id,
                call.name,
                call.arguments_json,
                self._turn_id,
                terminal,
                True,
            )

    def _end_call(self, call: ToolCall, outcome: Outcome, content: str, error: str | None) -> None:
        terminal = call.name in self._terminal
        self.emit(
            core.ToolExecutionComplete,
            call.id,
            call.name,
            outcome,
            content,
            self._turn_id,
            0.0,
            terminal,
            error,
        )

    # --- One kind of event each ------------------------------------------------------------------------------

    def session_start(self, data: Mapping[str, Any]) -> None:
        """The first one."""
        if self.events:
            raise Malformed("a session begins only once")
        if data.get("sessionId") != self._session_id:
            raise Malformed(f"it is the transcript of session {data.get('sessionId')!r:.80}")
        if data.get("version") != EVENT_FORMAT:
            raise Malformed(f"its format is {data.get('version')!r:.20}; {EVENT_FORMAT} is read")
        self.emit(core.SessionStart, self._session_id, self._tenant, _text(data, "selectedModel", ""))

    def session_resume(self, data: Mapping[str, Any]) -> None:
        """Somebody took it up."""
        active = data.get("sessionWasActive") is True
        self.emit(core.SessionResume, self._state.seq, data.get("continuePendingWork") is True, active)

    def session_shutdown(self, data: Mapping[str, Any]) -> None:
        """It left memory."""
        self.emit(core.SessionShutdown, _text(data, "shutdownType", "routine"))

    def session_error(self, data: Mapping[str, Any]) -> None:
        """A turn got no answer."""
        status = data.get("statusCode")
        self.emit(
            core.SessionError,
            _text(data, "errorType", "unknown"),
            _text(data, "message", ""),
            status if isinstance(status, int) else None,
            self._turn_id,
        )
        if self._state.turn_id is not None:
            self._reason = TurnEndReason.ERROR

    def session_info(self, data: Mapping[str, Any]) -> None:
        """Somebody noted something."""
        for level in ("info", "warning"):
            if f"{level}Type" in data:
                kind, message = _text(data, f"{level}Type", "notification"), _text(data, "message", "")
                self.emit(core.SessionInfo, kind, message, level, _text(data, "url", "") or None)

    def model_change(self, data: Mapping[str, Any]) -> None:
        """Another model."""
        self.emit(
            core.SessionModelChange,
            _text(data, "newModel"),
            _text(data, "previousModel", ""),
            _text(data, "reasoningEffort", ""),
        )

    def mode_changed(self, data: Mapping[str, Any]) -> None:
        """Another mode."""
        self.emit(core.SessionModeChanged, _text(data, "previousMode", ""), _text(data, "newMode"))

    def system_message(self, data: Mapping[str, Any]) -> None:
        """A system or developer message: those that follow each other belong together."""
        role = data.get("role")
        first = not isinstance(self.events[-1], core.SystemMessage)
        self.emit(
            core.SystemMessage,
            _text(data, "content"),
            "developer" if role == "developer" else "system",
            first,
        )

    def user_message(self, data: Mapping[str, Any]) -> None:
        """A message of the user, of a hook, or the seed of a clear."""
        prompt = _text(data, "content", "")
        content = _text(data, "transformedContent", "") or prompt
        shown = prompt if prompt and prompt != content else None
        source, delivery = data.get("source"), data.get("delivery")
        if source == "hook":
            self.emit(core.UserMessage, content, self._turn_id, None, "hook", shown)
            return
        steers = delivery == "steering" and self._state.turn_id is not None
        if not steers:
            self._end_turn()
            seeded = source == SEED_SOURCE and self._state.context.unanswered_seed is not None
            self._begin_turn()
            if seeded:
                self.emit(core.UserMessage, content, self._turn_id, None, "seed", shown)
                return
        message_id = _text(data, "messageId", "") or self._origin.object_id(self._state.seq + 1)
        note = {name: data[name] for name in sorted(SHOWN - {"content"}) if name in data}
        mode = "immediate" if steers else "enqueue"
        self.emit(core.MessageAccepted, message_id, mode, prompt or content, steers, note=note or None)
        kind = "steering" if steers else "queued" if delivery == "queued" else "idle"
        self.emit(core.UserMessage, content, self._turn_id, message_id, kind, shown)

    def _begin_turn(self) -> None:
        self._turn_id = self._origin.object_id(self._state.seq + 1)
        self._began, self._steps = self._time, 0

    def turn_start(self, data: Mapping[str, Any]) -> None:
        """A request went to the model."""
        self._close_calls(Outcome.INTERRUPTED)
        self.emit(core.AssistantTurnStart, self._turn_id, self._steps)
        self._steps += 1
        self._answered = False

    def assistant_message(self, data: Mapping[str, Any]) -> None:
        """The model answered."""
        if not self._turn_id:
            raise ContextError("an answer stands before any message")
        self._close_calls(Outcome.INTERRUPTED)
        requests: Any = data.get("toolRequests") or []
        if not isinstance(requests, list):
            raise Malformed("its toolRequests are no list")
        calls = tuple(_call(request) for request in requests)
        if len({call.id for call in calls}) < len(calls):
            raise ContextError("two calls of an answer have the same id")
        self.emit(
            core.AssistantMessage,
            _text(data, "content", ""),
            self._turn_id,
            _text(data, "messageId", "") or None,
            calls,
            _text(data, "reasoningText", ""),
        )
        self._answered = not calls

    def turn_end(self, data: Mapping[str, Any]) -> None:
        """A step ended: what has no result by then was given up."""
        self._close_calls(Outcome.CANCELLED)
        if self._state.step is not None:
            self.emit(core.AssistantTurnEnd, self._turn_id, self._state.step.step)
        if self._clear is not None:
            self._end_turn()

    def abort(self, data: Mapping[str, Any]) -> None:
        """Somebody aborted the turn."""
        self.emit(core.Abort, _text(data, "reason", "user_initiated"), self._state.turn_id)
        if self._state.turn_id is not None:
            self._reason = TurnEndReason.ABORTED

    def tool_start(self, data: Mapping[str, Any]) -> None:
        """A call began. Calls that no answer asked for are no part of the conversation."""
        call = self._open_call(data)
        if call is not None:
            self._start_call(call)

    def tool_requested(self, data: Mapping[str, Any]) -> None:
        """A call was handed to its client."""
        call = self._open_call(data)
        if call is not None:
            self._start_call(call)
            request_id = _text(data, "requestId")
            self.emit(core.ExternalToolRequested, request_id, call.id, call.name, call.arguments_json)

    def tool_complete(self, data: Mapping[str, Any]) -> None:
        """A call ended."""
        call = self._open_call(data)
        if call is None:
            return
        self._start_call(call)
        if data.get("success") is True:
            self._end_call(call, Outcome.SUCCESS, _text(_object(data, "result"), "content", ""), None)
            return
        error = _object(data, "error")
        outcome = _FAILURES.get(str(error.get("code")), Outcome.FAILURE)
        message = _text(error, "message", "")
        self._end_call(call, outcome, message, message)

    def context_cleared(self, data: Mapping[str, Any]) -> None:
        """The conversation was replaced by a seed."""
        cleared = data.get("messagesCleared")
        count = cleared if isinstance(cleared, int) else self._state.context.conversation_length
        seed = _text(data, "initialMessage")
        self._clear = core.ContextCleared(self._origin, 0, self._time, count, seed, 0)
        if self._batch is None:
            self._end_turn()

    def compacted(self, data: Mapping[str, Any]) -> None:
        """The conversation was summed up."""
        if data.get("success") is not True:
            return
        self._end_turn()
        context = self._state.context
        removed = data.get("messagesRemoved")
        count = removed if isinstance(removed, int) and may_be_cut(context, removed) else context.length
        content = composed(
            tuple(context.request())[: len(context.preamble) + count], _text(data, "summaryContent", "")
        )
        note = {
            name: value
            for name, value in data.items()
            if name not in ("success", "messagesRemoved", "trigger")
        }
        self.emit(
            core.SessionCompacted,
            content,
            count,
            context.generation + 1,
            _text(data, "trigger", ""),
            note or None,
        )


_READERS: dict[str, Callable[[Reader, Mapping[str, Any]], None]] = {
    "session.start": Reader.session_start,
    "session.resume": Reader.session_resume,
    "session.shutdown": Reader.session_shutdown,
    "session.error": Reader.session_error,
    "session.info": Reader.session_info,
    "session.warning": Reader.session_info,
    "session.model_change": Reader.model_change,
    "session.mode_changed": Reader.mode_changed,
    "session.context_cleared": Reader.context_cleared,
    "session.compaction_complete": Reader.compacted,
    "system.message": Reader.system_message,
    "user.message": Reader.user_message,
    "assistant.turn_start": Reader.turn_start,
    "assistant.message": Reader.assistant_message,
    "assistant.turn_end": Reader.turn_end,
    "tool.execution_start": Reader.tool_start,
    "external_tool.requested": Reader.tool_requested,
    "tool.execution_complete": Reader.tool_complete,
    "abort": Reader.abort,
}
"""What is read of each kind of event. Others change nothing of what a session is: hooks, approvals, notices."""


def _call(request: Any) -> ToolCall:
    if not isinstance(request, Mapping):
        raise Malformed("a call is no object")
    about = cast("Mapping[str, Any]", request)
    arguments = about.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return ToolCall(_text(about, "toolCallId"), _text(about, "name"), encodable(text))


def _text(data: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = data.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise Malformed(f"its {name} is no text")
    return encodable(value)


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _seconds(timestamp: str) -> float:
    moment = datetime.fromisoformat(timestamp)
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise Malformed("its time is none")
    return seconds
