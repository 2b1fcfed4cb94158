"""Going on with a turn that a crash, or the end of a process, cut off. Handlers of the actor.

The log decides. A call that waits for an approval has not run: it waits on, under the same request. Other calls without
an outcome are `interrupted`: what they did is unknown, so they are not run again, unless their tool says that it is
idempotent; then it runs with the same key, and asks the user nothing that it had asked before. Once the batch has all
outcomes, the rules for the end of a turn apply to it as to any other: a terminal success that is in the log ends the
turn without another request.
"""

from collections.abc import Iterator

from exeunt.actors.activities.tool_call import Call
from exeunt.actors.activities.waiting_call import WaitingCall
from exeunt.actors.events import PermissionRequested, ToolExecutionComplete, UserInputRequested
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome
from exeunt.actors.state.context import Batch as LoggedBatch
from exeunt.actors.state.session_state import Asked
from exeunt.actors.turn import batches, recovery, turn_questions, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Batch, Turn


def waits_for_people(actor: SessionActor) -> bool:
    """Say whether the log's open turn has asked somebody, and can go on, whatever became of its task.

    It has asked itself. Or a call of it waits for an approval; or may run again and has asked the user, whose answer
    must not be in vain.
    """
    open_calls = actor.state.open_calls or {}
    question = actor.state.question
    if question is not None and question.turn_id == actor.state.turn_id:
        return True
    for asked in (actor.state.requests or {}).values():
        start = open_calls.get(asked.request.tool_call_id)
        if start is None or start.turn_id is None or start.turn_id != actor.state.turn_id:
            continue
        if isinstance(asked.request, PermissionRequested):
            return True
        tool = actor.options.tools.find(start.tool_name)
        if start.idempotent and tool is not None and tool.idempotent:
            return True
    return False


def revive(actor: SessionActor, before: Turn | None = None) -> None:
    """Go on with the open turn of the log. It needs a slot, unless all that it does is to wait for people.

    *before* is the turn as it was when the actor crashed, with those who wait for it.
    """
    turn_id = actor.state.turn_id
    assert turn_id is not None
    turn = Turn(actor, turn_id, actor.host.clock.now())
    turn.steps = actor.state.turn_steps
    # Which messages it took in is in the log, and nobody waits for them here; the loop guard errs on the safe side.
    turn.took_message = True
    if before is not None:
        _take_over(actor, turn, before)
    actor.turn = turn
    actor.active = True
    if turn_questions.is_moot(actor):
        turn_questions.close(actor, "cancelled")
    elif actor.state.question is not None:
        turn_questions.begin(actor, turn, actor.state.question)
        return
    # Before it waits for a slot: an abort meanwhile must find a turn like any other.
    if actor.context.batch is not None:
        _open_again(actor, turn, actor.context.batch)
        assert turn.batch is not None
        open_calls = [call for call in turn.batch.calls if call.outcome is None]
        if open_calls and all(call.parks for call in open_calls):
            return
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


def _take_over(actor: SessionActor, turn: Turn, before: Turn) -> None:
    """What the handler that raised had begun with the turn does not count: the log has nothing of it."""
    pending = {item.message_id for item in actor.state.pending()}
    turn.message_ids = [message_id for message_id in before.message_ids if message_id not in pending]
    turn.records = [record for record in before.records if record.turn_id != turn.turn_id]
    turn.started = before.started
    turn.tokens, turn.failed_batches = before.tokens, before.failed_batches


def _open_again(actor: SessionActor, turn: Turn, logged: LoggedBatch) -> None:
    now = actor.host.clock.now()
    calls = [_call(actor, turn, call, index, now) for index, call in enumerate(logged.message.tool_calls)]
    turn.answer = logged.message.content
    turn.batch = Batch(calls)
    turn.phase = "tools"
    for call, result in zip(calls, logged.results, strict=True):
        if result is not None:
            _settle_as_logged(turn.batch, call, result)
    for call in calls:
        if call.outcome is not None:
            continue
        if isinstance(call, WaitingCall):
            call.started = True
            call.parks = 1
            actor.start(call)
            continue
        call.start = (actor.state.open_calls or {}).get(call.call.id)
        call.again = _may_run_again(call)
        if call.again:
            call.asked_before = [
                asked.request.request_id
                for asked in _asked(actor, call.call.id)
                if isinstance(asked.request, UserInputRequested)
            ]
        else:
            batches.record(actor, call, batches.INTERRUPTED)


def _call(actor: SessionActor, turn: Turn, call: ToolCall, index: int, now: float) -> Call:
    start = (actor.state.open_calls or {}).get(call.id)
    for asked in _asked(actor, call.id):
        if start is not None and isinstance(asked.request, PermissionRequested):
            return WaitingCall(actor, turn, call, index, now, start, asked.request)
    return Call(actor, turn, call, index, now)


def _asked(actor: SessionActor, call_id: str) -> Iterator[Asked]:
    for asked in (actor.state.requests or {}).values():
        if asked.request.tool_call_id == call_id:
            yield asked


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
