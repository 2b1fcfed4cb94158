"""Leaving behind what runs: at a crash, and where an activation ends with its turn open in the log."""

from typing import Any

from exeunt.actors.turn import parking
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Batch, Turn


def fence_all(actor: SessionActor, at_work: set[Turn | None], batches: set[Batch | None]) -> None:
    """Cancel what runs, and decide that nothing of it counts any more. For the end of an activation."""
    activities: list[Any] = [actor.aftermath]
    for turn in at_work:
        if turn is not None:
            activities.append(turn.activity)
            batches.add(turn.batch)
            parking.leave_slot(actor, turn)
    for batch in batches:
        activities.extend(call for call in (() if batch is None else batch.calls) if call.started)
    for activity in activities:
        if activity is not None and not activity.done:
            activity.cause = activity.cause or "interrupted"
            activity.finish()
            if activity.scope is not None:
                actor.host.fenced.add(activity)
                activity.scope.cancel()
