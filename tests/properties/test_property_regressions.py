"""Programs that once broke a promise, as small as they could be made, and what was broken."""

import pytest

from tests.properties.programs import (
    Abort,
    Answer,
    Callback,
    Clear,
    Command,
    Crash,
    Leave,
    Program,
    RunTool,
    Send,
    SessionPlan,
    Sleep,
    TakeUp,
    Work,
)
from tests.properties.stage import play

CLEARS = Answer((Work(steps=(Clear(),)),))
WORKS = Answer((Work(),))

REGRESSIONS = {
    "a failed session could not be taken up with the options that it had": Program(
        commands=(Command(Crash()),), restarts=0
    ),
    "a clear lost the slot of its turn": Program((SessionPlan((CLEARS,)),), (Command(Send()),)),
    "who disconnected a session that failed at that moment got its error": Program(
        commands=(Command(Sleep()), Command(Leave())), restarts=0, lost_writes=(2,)
    ),
    "who ended a session that waited for a restart and failed got its error": Program(
        commands=(Command(Crash(times=9)), Command(Abort()), Command(Leave())), restarts=1
    ),
    "the second wait for a slot never ended": Program(
        (SessionPlan((Answer((Work(steps=(Sleep(),)), Work(), Work())),)),), (Command(Send()),), tool_slots=1
    ),
    "a session that was left with a queue said that it was idle": Program(
        commands=(Command(Send()), Command(Send()), Command(Send()), Command(Leave()))
    ),
    "a full mailbox of a session that nobody went on with stayed full": Program(
        (SessionPlan((WORKS,), mailbox=1),),
        (Command(Send()), Command(Send()), Command(Leave()), Command(TakeUp(goes_on=False), 2.0)),
    ),
    "a full mailbox, with a message in the hand of a hook": Program(
        (SessionPlan((WORKS,), (("on_session_start", Callback((Leave(),))),), mailbox=1),),
        (Command(Send()), Command(TakeUp(goes_on=False), 2.0)),
    ),
    "a session failed between a clear and its seed, and said that it was idle": Program(
        (SessionPlan((CLEARS,), (("on_session_end", Callback((Crash(),))),)),), (Command(Send()),), restarts=0
    ),
    "two aborts at once were told of each other's messages": Program(
        (SessionPlan((WORKS,)),),
        (*[Command(Send())] * 3, Command(Abort(queued="keep")), Command(Abort()), Command(Abort())),
    ),
    "a session that failed without a log knew what was never logged": Program(
        (SessionPlan((WORKS, Answer((Work(), Work(steps=(Crash(),)), Work())))),),
        (Command(Send()), Command(Send()), Command(RunTool()), Command(Sleep(), 1.0)),
        restarts=0,
        lost_writes=tuple(range(9, 20)),
    ),
}


@pytest.mark.parametrize("program", REGRESSIONS.values(), ids=REGRESSIONS)
def test_what_was_broken_stays_mended(program: Program) -> None:
    play(program)
