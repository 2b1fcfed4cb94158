"""What a host does between turns by means of its own, in order with the queued messages. Handlers of the actor.

While an errand is at work nothing else of the queue begins. It is no turn and no call: the log and the context have
nothing of it, so it is lost with the process, and no idle follows it that is not owed for something else.
"""

import outcome

from exeunt.actors.errors import TurnAborted
from exeunt.actors.events import SessionIdle
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.turn import turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.host_calls import HostCall
from exeunt.actors.turn.live import Waiter


class Errand(HostCall):
    """An errand that waits for its place, and the task that does it.

    The task waits for `waiter`, does what is to be done, gives that up where `over` raises, and puts `finish` in any
    case.
    """

    __slots__ = ("at_work", "errand_id", "over")

    def __init__(self, errand_id: str, text: str) -> None:
        super().__init__(text, "", Waiter())
        self.errand_id = errand_id
        self.at_work = False
        self.over = Waiter()
        """Raises why it is not to go on, once it is at work: an abort, or the end of the session."""

    @property
    def is_begun(self) -> bool:
        """Whether it is at work."""
        return self.at_work

    def begin(self, actor: SessionActor) -> None:
        """Its place has come; nothing else begins before it is finished."""
        if not self.at_work:
            self.at_work = True
            actor.wake(self.waiter, outcome.Value(None))

    @property
    def ended(self) -> Waiter:
        """Who is told that it is dropped."""
        return self.over if self.at_work else self.waiter


def finish(actor: SessionActor, errand: Errand, halt: bool) -> None:
    """It is done, or given up: go on with what waits; with *halt*, only once something new comes in."""
    actor.wake(errand.over, outcome.Value(None))
    calls = actor.host_calls
    if calls is None or errand not in calls:
        return
    calls.remove(errand)
    actor.host_calls = calls or None
    if not halt:
        turns.begin_next(actor)
    elif actor.free and actor.active:
        actor.active = False
        if not actor.state.waiting:
            actor.emit(SessionIdle, actor.last_reason == TurnEndReason.ABORTED)


def give_up(actor: SessionActor) -> bool:
    """End the errand that is at work, because of an abort; return whether there was one."""
    calls = actor.host_calls
    if not calls or not calls[0].is_begun:
        return False
    errand = calls.popleft()
    actor.host_calls = calls or None
    actor.wake(errand.over, outcome.Error(TurnAborted("it was given up by an abort", session_id=actor.id)))
    return True


def withdraw(actor: SessionActor, errand_id: str, done: list[bool]) -> None:
    """Drop an errand that waits; *done* takes whether it still did."""
    for errand in waiting(actor):
        if errand.errand_id == errand_id:
            assert actor.host_calls is not None
            actor.host_calls.remove(errand)
            actor.host_calls = actor.host_calls or None
            text = "it was withdrawn before its place in the queue had come"
            actor.wake(errand.waiter, outcome.Error(TurnAborted(text, session_id=actor.id)))
            done.append(True)
            return
    done.append(False)


def waiting(actor: SessionActor) -> list[Errand]:
    """Return the errands whose place has not come, in order."""
    return [call for call in actor.host_calls or () if isinstance(call, Errand) and not call.at_work]
