"""The end of a host while a turn only waits for people: it stays open in the log, and somebody else waits on.

As after a `kill -9`, but in order. Whoever takes the session up without its pending work ends the turn instead.
"""

from exeunt.actors.activities.turn_question import TurnQuestion
from exeunt.actors.events import PermissionRequested
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.fencing import fence_all


def only_waits_for_people(actor: SessionActor) -> bool:
    """Say whether the turn can be left as it stands: its log is kept, and nothing of it is lost with its tasks."""
    turn, requests = actor.turn, actor.state.requests
    if turn is None or turn.cause is not None or actor.clear is not None or not actor.log.outlives_process:
        return False
    if isinstance(turn.activity, TurnQuestion):
        return True
    if turn.batch is None or requests is None:
        return False
    asking = {one.request.tool_call_id: one.request for one in requests.values() if one.answer is None}
    for call in turn.batch.calls:
        if call.outcome is not None:
            continue
        request = asking.get(call.call.id)
        runs_again = call.tool is not None and call.tool.idempotent
        if request is None or call.cause is not None:
            return False
        if not isinstance(request, PermissionRequested) and not runs_again:
            return False
    return True


def leave_open(actor: SessionActor) -> None:
    """End the tasks of the turn, and none of its calls."""
    fence_all(actor, {actor.turn}, {None})
    actor.turn = None
    # The turn owes the idle, and is not over.
    actor.active = False
