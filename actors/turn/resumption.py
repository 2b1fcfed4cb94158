"""Going on with a turn that the end of a process cut off. Handlers of the actor.

The log decides. Calls without an outcome are `interrupted`: what they did is unknown, so they are not run again,
unless their tool says that it is idempotent; then it runs with the same key. Once the batch has all outcomes, the
rules for the end of a turn apply to it as to any other: a terminal success that is in the log ends the turn without
another request.
"""

from exeunt.actors.activities.tool_call import Call
from exeunt.actors.events import ToolExecutionComplete
from exeunt.actors.outcomes import Outcome
from exeunt.actors.state.context import Batch as LoggedBatch
from exeunt.actors.turn import batches, recovery, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Batch, Turn


def revive(actor: SessionActor) -> None:
    """Go on with the open turn of the log, once it has a slot."""
    turn_id = actor.state.turn_id
    assert turn_id is not None
    turn = Turn(actor, turn_id, actor.host.clock.now())
    turn.steps = actor.state.turn_steps
    # Which messages it took in is in the log, and nobody waits for them here; the loop guard errs on the safe side.
    turn.took_message = True
    actor.turn = turn
    actor.active = True
    # Before it waits for a slot: an abort meanwhile must find a turn like any other.
    if actor.context.batch is not None:
        _open_again(actor, turn, actor.context.batch)
        turn.resumes_with = _advance
    else:
        if actor.state.step is not None:
            # A request was on its way, or its answer's batch was just complete: the next step asks again.
            turns.end_step(actor, turn)
        turn.resumes_with = turns.start_step
    if actor.host.turn_slots.request(turn):
        turn.has_slot = True
        turns.slot_granted(actor, turn)
    else:
        turn.slot_wanted = True


def _open_again(actor: SessionActor, turn: Turn, logged: LoggedBatch) -> None:
    now = actor.host.clock.now()
    calls = [Call(actor, turn, call, index, now) for index, call in enumerate(logged.message.tool_calls)]
    turn.answer = logged.message.content
    turn.batch = Batch(calls)
    turn.phase = "tools"
    for call, result in zip(calls, logged.results, strict=True):
        if result is not None:
            _settle_as_logged(turn.batch, call, result)
    for call in calls:
        if call.outcome is None:
            call.start = (actor.state.open_calls or {}).get(call.call.id)
            recovery.withdraw_approval(actor, call.call.id)
            call.again = _may_run_again(call)
            if not call.again:
                batches.record(actor, call, batches.INTERRUPTED)


def _advance(actor: SessionActor, turn: Turn) -> None:
    assert turn.batch is not None
    batches.advance(actor, turn.batch.calls[0])


def _settle_as_logged(batch: Batch, call: Call, result: ToolExecutionComplete) -> None:
    call.started = call.returned = call.done = True
    call.outcome = result.outcome
    if result.guidance is not None:
        call.guidance.append(result.guidance)
    batch.open -= 1
    if call.outcome is Outcome.SUCCESS and result.terminal and batch.terminal is None:
        batch.terminal = call
        batch.terminal_text = result.content


def _may_run_again(call: Call) -> bool:
    """Both must say so: the tool that ran, and the one that would run now."""
    return call.start is not None and call.start.idempotent and call.tool is not None and call.tool.idempotent


def close_host_calls(actor: SessionActor) -> None:
    """End the calls of the host that the log shows as open: nobody waits for them any more."""
    for start in list((actor.state.open_calls or {}).values()):
        if start.turn_id is None:
            recovery.emit_interrupted(actor, start)
