"""The calls of one answer: opened together, settled one by one, closed together. Handlers of the actor."""

from typing import Any

from exeunt.actors.activities.call_end import INTERRUPTED_TEXT, CallEnd
from exeunt.actors.activities.tool_call import Call
from exeunt.actors.events import (
    AssistantMessage,
    ToolExecutionComplete,
    ToolExecutionStart,
    ToolResultStale,
    UserMessage,
)
from exeunt.actors.models import ModelResponse, ToolCall
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.state.termination import after_batch, budget_spent, count_failed
from exeunt.actors.text import encodable
from exeunt.actors.turn import clears, endings, host_calls, parking, requests, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Batch, Turn

NOT_STARTED = CallEnd(Outcome.CANCELLED, INTERRUPTED_TEXT, "cancelled before it was started")

UNKNOWN_OUTCOME = "the session's actor or process ended; what the tool did is unknown"

INTERRUPTED = CallEnd(Outcome.INTERRUPTED, INTERRUPTED_TEXT, UNKNOWN_OUTCOME)


def open_batch(
    actor: SessionActor, turn: Turn, message_id: str | None, content: str, answer: ModelResponse
) -> None:
    """Log the answer and its calls, and let them go: all at once, but for sequential ones."""
    calls = _legal_calls(actor, answer.tool_calls)
    reasoning = encodable(answer.reasoning) if answer.reasoning else ""
    blocks = answer.reasoning_blocks
    actor.emit(AssistantMessage, content, turn.turn_id, message_id, calls, reasoning, blocks)
    now = actor.host.clock.now()
    turn.batch = Batch([Call(actor, turn, call, index, now) for index, call in enumerate(calls)])
    turn.phase = "tools"
    for call in turn.batch.calls:
        emit_start(actor, call)
    start_ready(actor, turn.batch)


def emit_start(actor: SessionActor, call: Call) -> None:
    """Log that a call is in flight."""
    tool = call.tool
    turn_id = None if call.turn is None else call.turn.turn_id
    idempotent = tool is not None and tool.idempotent
    call.start = actor.emit(
        ToolExecutionStart,
        call.call.id,
        call.name,
        call.call.arguments_json,
        turn_id,
        call.terminal,
        idempotent,
    )


def _legal_calls(actor: SessionActor, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Give each call an id that no other call of the context has, and texts that can be encoded.

    Models send no id, the same one twice, or the one of an earlier batch; a context with such ids is refused by
    strict providers for ever.
    """
    known = actor.state.call_ids or ()
    fresh: list[str] = []
    legal: list[ToolCall] = []
    for call in calls:
        name, arguments = encodable(call.name), encodable(call.arguments_json)
        call_id = encodable(call.id)
        if not call_id or call_id in known or call_id in fresh:
            call_id = f"call_{actor.new_id()}"
        fresh.append(call_id)
        if call_id is not call.id or name is not call.name or arguments is not call.arguments_json:
            call = ToolCall(call_id, name, arguments)
        legal.append(call)
    return tuple(legal)


def start_ready(actor: SessionActor, batch: Batch) -> None:
    """Let go what may run: a sequential call runs alone, after those before it and before those behind it."""
    waiting_before = False
    for call in batch.calls:
        sequential = call.tool is not None and call.tool.sequential
        if not call.started and not call.returned:
            if sequential and waiting_before:
                return
            call.started = True
            actor.start(call)
        if not call.returned:
            if sequential:
                return
            waiting_before = True


def call_settled(actor: SessionActor, call: Call, end: CallEnd) -> None:
    """A call has come to its end, or was fenced."""
    if call.done:
        turn_id = None if call.turn is None else call.turn.turn_id
        actor.emit(ToolResultStale, call.call.id, call.name, turn_id)
        return
    call.finish()
    call.returned = True
    if end.outcome is Outcome.SUCCESS and clears.owns(actor, call):
        clears.hold(actor, call, end)
    else:
        record(actor, call, end)
    advance(actor, call)


def record(actor: SessionActor, call: Call, end: CallEnd) -> None:
    """Write a call's outcome, once."""
    call.done = call.returned = True
    call.outcome = end.outcome
    turn = call.turn
    turn_id = None if turn is None else turn.turn_id
    if actor.state.requests is not None:
        requests.end_all(actor, call.call.id, "timeout" if call.cause == "timeout" else "cancelled")
        # Each holds the call that holds it.
        call.requests = call.open_request = None
    actor.emit(
        ToolExecutionComplete,
        call.call.id,
        call.name,
        end.outcome,
        encodable(end.text),
        turn_id,
        actor.host.clock.now() - call.started_at,
        call.terminal,
        None if end.error is None else encodable(end.error),
        call.modified_arguments,
        "\n\n".join(call.guidance) if call.guidance else None,
        end.session_log,
    )
    batch = actor.batch
    assert batch is not None
    batch.open -= 1
    batch.text = end.text
    if end.outcome is Outcome.SUCCESS:
        if call.terminal and (batch.terminal is None or call.index < batch.terminal.index):
            batch.terminal = call
            batch.terminal_text = end.text
    else:
        if turn is not None and end.outcome is Outcome.CANCELLED and turn.cause is not None:
            turn.cancelled_calls.append(call.call.id)
        clears.owner_failed(actor, call, end.outcome)
    # A clear that was rolled back or refused is no work either: it must not end a loop of clears.
    if turn is not None and not call.was_owner and not call.clear_refused:
        turn.plain_calls += 1


def advance(actor: SessionActor, call: Call) -> None:
    """Close the batch when nothing of it is open, or only what waits for the close; else let others go."""
    batch = actor.batch
    assert batch is not None
    if batch.open == 0 or all(other.outcome is not None or other.held is not None for other in batch.calls):
        if call.turn is None:
            host_calls.close(actor, batch)
        else:
            _close(actor, call.turn, batch)
    else:
        start_ready(actor, batch)
        if call.turn is not None:
            parking.leave_slot_if_all_wait(actor, call.turn)


def settle_held(actor: SessionActor, batch: Batch) -> bool:
    """Write the successes that were held for a clear; return whether there were any."""
    held = [(call, call.held) for call in batch.calls if call.held is not None and call.outcome is None]
    for call, end in held:
        assert end is not None
        record(actor, call, end)
    return bool(held)


def _close(actor: SessionActor, turn: Turn, batch: Batch) -> None:
    """Every call has its outcome: end the step, and the turn if the rules say so."""
    cleared = settle_held(actor, batch)
    if not cleared:
        for call in batch.calls:
            for text in call.guidance:
                actor.emit(UserMessage, encodable(text), turn.turn_id, None, "hook")
    turns.end_step(actor, turn)
    turn.batch = None
    outcomes = [call.outcome for call in batch.calls if call.outcome is not None]
    turn.failed_batches = count_failed(turn.failed_batches, outcomes)
    reason = after_batch(
        stopping=turn.cause is not None,
        clear_committed=cleared,
        terminal_success=batch.terminal is not None,
        budget_is_spent=budget_spent(
            actor.options.limits, steps=turn.steps, failed_batches=turn.failed_batches, tokens=turn.tokens
        ),
    )
    content = batch.terminal_text if reason is TurnEndReason.TERMINAL_TOOL else None
    if cleared:
        assert reason is not None
        clears.commit(actor, turn, reason, content)
    elif reason is not None:
        endings.end_turn(actor, turn, reason, content=content)
    else:
        turns.go_on(actor, turn)


def cancel_open(actor: SessionActor, batch: Batch, cause: str, spare: Any = ()) -> None:
    """Cancel the calls without an outcome; those that were not let go yet end at once."""
    for call in batch.calls:
        if call.outcome is not None or call.held is not None or call in spare:
            continue
        if call.started:
            call.cancel(cause)
        else:
            record(actor, call, INTERRUPTED if call.again else NOT_STARTED)


Call.settle = call_settled
