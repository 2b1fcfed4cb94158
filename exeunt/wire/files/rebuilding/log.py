"""A log that is made up again, event by event, under the rules of every log."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from exeunt.actors import events as core
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.state import SessionState

LOST = "The session was cut off before this call had an outcome; what it did is unknown."
"""What the model reads as the result of a call whose outcome the transcript does not have."""


class GrowingLog:
    """The log of one session so far. An event that cannot follow raises `ContextError`, and is not added."""

    def __init__(self, session_id: str, tenant: str, terminal: Collection[str]) -> None:
        self.events: list[core.Event] = []
        self.session_id = session_id
        self.tenant = tenant
        self.terminal = terminal
        self.origin = core.Origin.fresh()
        self.state = SessionState()
        self.time = 0.0
        self.turn_id = ""
        self.began = 0.0
        self.steps = 0
        self.reason: TurnEndReason | None = None
        """How the turn ended, where an event says so."""
        self.clear: core.ContextCleared | None = None
        """A clear that stands before the results of its batch, as other servers write it."""
        self.answered = False
        """Whether the last answer of the turn had no calls."""
        self.renamed: dict[str, str] = {}
        """Other ids of calls of the last answer, by those that the transcript has."""

    def end(self) -> None:
        """Close what is over. What is still open at the end is left so: whoever resumes says what becomes of it."""
        if self.state.turn_id is not None and self.batch is None and self.clear is None:
            last = self.events[-1]
            if self.ending() is not TurnEndReason.INTERRUPTED or isinstance(last, core.SessionShutdown):
                self.end_turn()
        elif self.clear is not None or (self.state.turn_id is None and self.batch is not None):
            self.end_turn()

    @property
    def batch(self) -> Any:
        """The calls of the last answer, while some have no outcome."""
        return self.state.context.batch

    def emit(self, kind: type[core.Event], *payload: Any, **more: Any) -> None:
        """Add an event to the log."""
        make: Callable[..., core.Event] = kind
        event = make(self.origin, self.state.seq + 1, self.time, *payload, **more)
        self.state.apply(event)
        self.events.append(event)

    def ending(self) -> TurnEndReason:
        """Say how the turn ended, by what it has come to."""
        if self.reason is not None:
            return self.reason
        if self.answered:
            return TurnEndReason.COMPLETED
        # The results of the last batch stand at the end of the context.
        for message in reversed(self.state.context.messages):
            if not isinstance(message, core.ToolExecutionComplete):
                break
            if message.terminal and message.success:
                return TurnEndReason.TERMINAL_TOOL
        return TurnEndReason.INTERRUPTED

    def end_turn(self) -> None:
        """End what is open, as far as there is something."""
        self.close_calls(Outcome.INTERRUPTED)
        if self.state.step is not None:
            self.emit(core.AssistantTurnEnd, self.state.step.turn_id, self.state.step.step)
        clear, self.clear = self.clear, None
        if self.state.turn_id is not None:
            reason = self.ending()
            if clear is not None and reason is not TurnEndReason.TERMINAL_TOOL:
                reason = TurnEndReason.CONTEXT_CLEARED
            self.emit(
                core.TurnEnd,
                self.turn_id,
                reason,
                self.state.context.generation,
                self.steps,
                max(0.0, self.time - self.began),
                clear is not None,
            )
        if clear is not None:
            self.emit(
                core.ContextCleared,
                clear.messages_cleared,
                clear.initial_message,
                self.state.context.generation + 1,
            )
        self.reason, self.answered = None, False

    def close_calls(self, outcome: Outcome) -> None:
        """Give the calls that are open this outcome."""
        batch = self.batch
        if batch is None:
            return
        for call, result in zip(batch.message.tool_calls, batch.results, strict=True):
            if result is None:
                self.start_call(call)
                self.end_call(call, outcome, LOST, LOST)

    def named_anew(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """Return the calls of an answer, those with another id whose own was used before: some models count anew."""
        used = set(self.state.call_ids or ())
        self.renamed = {}
        for call in calls:
            number = self.state.seq
            while call.id in used and f"{call.id}-{number}" in used:
                number += 1
            if call.id in used:
                self.renamed[call.id] = f"{call.id}-{number}"
            used.add(self.renamed.get(call.id, call.id))
        return tuple(
            ToolCall(self.renamed.get(call.id, call.id), call.name, call.arguments_json) for call in calls
        )

    def open_call(self, data: Mapping[str, Any]) -> ToolCall | None:
        """Return the call that *data* is about, if it has no result; `None` for one that no answer asked for."""
        named, batch = data.get("toolCallId"), self.batch
        if batch is not None and isinstance(named, str):
            wanted = self.renamed.get(named, named)
            for call, result in zip(batch.message.tool_calls, batch.results, strict=True):
                if call.id == wanted and result is None:
                    return cast("ToolCall", call)
        return None

    def start_call(self, call: ToolCall) -> None:
        """Note that a call of the open batch has begun, unless that is known."""
        if call.id not in (self.state.open_calls or {}):
            terminal = call.name in self.terminal
            # As all tools of clients: see `serving.tools`.
            self.emit(
                core.ToolExecutionStart,
                call.id,
                call.name,
                call.arguments_json,
                self.turn_id,
                terminal,
                True,
            )

    def end_call(self, call: ToolCall, outcome: Outcome, content: str, error: str | None) -> None:
        """Give a call that has begun its outcome."""
        terminal = call.name in self.terminal
        self.emit(
            core.ToolExecutionComplete,
            call.id,
            call.name,
            outcome,
            content,
            self.turn_id,
            0.0,
            terminal,
            error,
        )

    def begin_turn(self) -> None:
        """Number the turn of the message that is about to be added."""
        self.turn_id = self.origin.object_id(self.state.seq + 1)
        self.began, self.steps = self.time, 0
