"""Calls that the host runs by its own will, between turns. Handlers of the actor.

Through the same pipeline and with the same events as a model's calls; first in, first out with the messages. The
context gets nothing of them, unless one clears it.
"""

from collections import deque

import outcome

from exeunt.actors.activities.tool_call import Call
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.session.replies import AbortReceipt, ToolOutcome
from exeunt.actors.turn import batches, clears, endings, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Batch, Waiter


class HostCall:
    """A call that waits for its place, and the task that waits for it."""

    __slots__ = ("arguments_json", "name", "order", "waiter")

    def __init__(self, name: str, arguments_json: str, waiter: Waiter) -> None:
        self.name = name
        self.arguments_json = arguments_json
        self.waiter = waiter
        self.order = 0

    @property
    def is_begun(self) -> bool:
        """Whether it is at work, and still the first of those that wait."""
        return False

    def begin(self, actor: SessionActor) -> None:
        """Its place has come."""
        assert actor.host_calls is not None
        actor.host_calls.popleft()
        begin(actor, self)

    @property
    def ended(self) -> Waiter:
        """Who is told that it is dropped."""
        return self.waiter


def accept(actor: SessionActor, call: HostCall) -> None:
    """Take a call in, behind the messages that were accepted before it."""
    # Behind every message so far, also the one that may be the last event, and before every later one.
    call.order = actor.state.seq
    if actor.host_calls is None:
        actor.host_calls = deque()
    actor.host_calls.append(call)
    turns.begin_next(actor)


def put_back(actor: SessionActor, call: HostCall) -> None:
    """Let a call wait again whose beginning did not get into the log."""
    if actor.host_calls is None:
        actor.host_calls = deque()
    actor.host_calls.appendleft(call)


def begin(actor: SessionActor, host_call: HostCall) -> None:
    """Run a call now."""
    call_id = f"call_{actor.new_id()}"
    request = ToolCall(call_id, host_call.name, host_call.arguments_json)
    call = Call(actor, None, request, 0, actor.host.clock.now())
    actor.host_batch = Batch([call])
    actor.host_batch.host_call = host_call
    batches.emit_start(actor, call)
    batches.start_ready(actor, actor.host_batch)


def close(actor: SessionActor, batch: Batch) -> None:
    """The call has its outcome: tell the host, and go on with the seed or with what waits."""
    cleared = batches.settle_held(actor, batch)
    actor.host_batch = None
    (call,) = batch.calls
    if batch.host_call is not None:
        actor.wake(batch.host_call.waiter, outcome.Value(_outcome(call, batch)))
    answer_abort(actor, batch)
    if cleared:
        clears.commit(actor, None, TurnEndReason.CONTEXT_CLEARED, None)
    else:
        endings.after_turn(actor)


def answer_abort(actor: SessionActor, batch: Batch) -> None:
    """Tell who asked for an abort of the call what it did."""
    cancelled = tuple(call.call.id for call in batch.calls if call.outcome is Outcome.CANCELLED)
    for waiter, queued in batch.abort_waiters or ():
        actor.wake(waiter, outcome.Value(AbortReceipt(None, cancelled, queued)))


def fail_waiting(actor: SessionActor, error: Exception) -> None:
    """End the calls that have not begun, and an errand, whether it has or not."""
    for host_call in actor.host_calls or ():
        actor.wake(host_call.ended, outcome.Error(error))
    actor.host_calls = None


def _outcome(call: Call, batch: Batch) -> ToolOutcome:
    assert call.outcome is not None
    return ToolOutcome(call.call.id, call.name, call.outcome, batch.text, batch.media)
