"""Giving slots back while a call does nothing but wait for somebody. Handlers of the actor.

A turn all of whose open calls wait for an approval or for another session's reply needs no slot; it comes back
at the front of its tenant's queue.
"""

from typing import TYPE_CHECKING

from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call


def park(actor: SessionActor, call: "Call") -> None:
    """*call* begins to wait for somebody."""
    call.parks += 1
    if call.turn is not None:
        leave_slot_if_all_wait(actor, call.turn)


def unpark(actor: SessionActor, call: "Call") -> None:
    """*call* has what it waited for."""
    call.parks -= 1
    turn = call.turn
    if turn is None or actor.turn is not turn or call.parks or turn.has_slot or turn.slot_wanted:
        return
    if actor.host.turn_slots.requeue_front(turn):
        turn.has_slot = True
    else:
        turn.slot_wanted = True


def leave_slot_if_all_wait(actor: SessionActor, turn: Turn) -> None:
    """Give the slot back when no open call of the turn is at work."""
    batch = turn.batch
    if batch is None or turn.cause is not None or not (turn.has_slot or turn.slot_wanted):
        return
    open_calls = [call for call in batch.calls if call.outcome is None and call.held is None]
    if open_calls and all(call.parks for call in open_calls):
        leave_slot(actor, turn)


def leave_slot(actor: SessionActor, turn: Turn) -> None:
    """Give the turn's slot back, or leave the queue for one."""
    if turn.has_slot:
        turn.has_slot = False
        actor.host.turn_slots.release(turn)
    elif turn.slot_wanted:
        turn.slot_wanted = False
        actor.host.turn_slots.withdraw(turn)
