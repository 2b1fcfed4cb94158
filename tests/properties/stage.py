"""Plays a `Program` in virtual time, and checks that everything promised holds."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio

from exeunt import (
    ClearAlreadyStaged,
    ClearLoop,
    ClearRolledBack,
    EmptySeedPrompt,
    ExeuntError,
    MailboxFull,
    NoToolCallInFlight,
    Overloaded,
    PromptBlocked,
    ReplyTimeout,
    Session,
    SessionClosed,
    SessionFailed,
    SessionHost,
    TurnAborted,
    TurnFailed,
    TurnInterrupted,
    WouldDeadlock,
)
from exeunt.actors.state import SessionState
from exeunt.actors.turn.actor import SessionActor
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.restarts import RestartIntensity
from exeunt.testing import checked_host, run_virtual
from tests.properties.cast import Broken, Cast, arguments_of
from tests.properties.losing_journal import LosingJournal
from tests.properties.programs import (
    Abort,
    Ask,
    Clear,
    Command,
    Crash,
    Leave,
    Program,
    RunTool,
    Send,
    Sleep,
    Step,
    TakeUp,
    Work,
)
from tests.properties.witness import Witness

MOST_STEPS = 30
"""Steps that callbacks may play in one test: a hook that sends a message to its own session must end."""

LONG = 3600.0
"""Seconds of virtual time after which something is stuck. All that happens in a test takes some minutes."""

_SENDING = (MailboxFull, Overloaded, SessionClosed, SessionFailed)

EXPECTED: dict[type[Step], tuple[type[ExeuntError], ...]] = {
    Send: _SENDING,
    Ask: (*_SENDING, TurnAborted, TurnInterrupted, TurnFailed, PromptBlocked, ReplyTimeout),
    RunTool: (*_SENDING, TurnAborted, TurnInterrupted),
    Clear: (EmptySeedPrompt, NoToolCallInFlight, ClearAlreadyStaged, ClearLoop, ClearRolledBack),
}
"""What the documentation of each method lets it raise. In a handler, `WouldDeadlock` comes to it."""


def play(program: Program) -> None:
    """Play *program*. Raises what is wrong."""
    run_virtual(Stage(program).run)


class Stage:
    """One run of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.witness = Witness()
        self.journal = LosingJournal(program.lost_writes)
        self.host: SessionHost
        self.sessions: list[Session] = []
        self.works: list[Work] = []
        self.cast = [
            Cast(plan, self.works, partial(self._play_all, number), self.witness.request)
            for number, plan in enumerate(program.sessions)
        ]
        self._texts = 0
        self._steps_left = MOST_STEPS

    async def run(self) -> None:
        """Play the program to its end, and then see whether everybody is well."""
        program = self.program
        options = HostOptions(
            running_turns=program.running_turns,
            waiting_turns=program.waiting_turns,
            tool_slots=program.tool_slots,
            intensity=RestartIntensity(program.restarts),
        )
        async with checked_host(options=options, journal=self.journal) as self.host:
            self.host.observe(self.witness)
            for number, cast in enumerate(self.cast):
                self.sessions.append(
                    await self.host.create_session(session_id=f"session {number}", **cast.options())
                )
            async with trio.open_nursery() as people:
                for command in program.commands:
                    await trio.sleep(command.gap)
                    self._check_states()
                    people.start_soon(self._obey, command)
            await self._rest()
            self._calm_down()
            for number in range(len(self.sessions)):
                await self._visit(number)
            await self._rest()
            self._check_leftovers()
            for session in self.sessions:
                self.witness.finish(session.session_id, await session.get_events())
        for cast in self.cast:
            cast.model.verify()
        assert not self.witness.faults, "\n".join(self.witness.faults)

    # --- Steps -----------------------------------------------------------------------------------------------

    async def _obey(self, command: Command) -> None:
        with trio.CancelScope() as patience:
            if command.patience is not None:
                patience.deadline = trio.current_time() + command.patience
            await self._play(command.step, 0, in_handler=False)

    async def _play_all(self, me: int, steps: Sequence[Step]) -> None:
        """Play what a callback of session *me* does."""
        for step in steps:
            if self._steps_left > 0:
                self._steps_left -= 1
                await self._play(step, me, in_handler=True)

    async def _play(self, step: Step, me: int, *, in_handler: bool) -> None:
        expected = EXPECTED.get(type(step), ())
        if in_handler:
            expected = (*expected, WouldDeadlock)
        try:
            await self._do(step, me, in_handler=in_handler)
        except expected:
            pass

    async def _do(self, step: Step, me: int, *, in_handler: bool) -> None:
        if isinstance(step, Sleep):
            await _sleep(step)
            return
        number = (me + step.to) % len(self.sessions)
        session = self.sessions[number]
        match step:
            case Send():
                await session.send(self._text("message"), step.mode)
            case Ask():
                reply = await session.send_and_wait(self._text("question"), step.timeout, mode=step.mode)
                self.witness.reply(session.session_id, reply)
            case RunTool():
                self.works.append(step.work)
                arguments = arguments_of(step.work, len(self.works) - 1)
                result = await session.call_tool(step.work.tool, arguments)
                self.witness.tool_outcome(session.session_id, result)
            case Clear():
                await self._clear(session, step)
            case Abort():
                dropped = self.witness.dropped(session.session_id)
                receipt = await session.abort(step.queued)
                if not in_handler:  # where it may be no more than a request
                    self.witness.receipt(session.session_id, receipt, dropped, kept=step.queued == "keep")
            case Leave():
                await session.disconnect()
            case TakeUp():
                self.sessions[number] = await self.host.resume_session(
                    session.session_id, continue_pending_work=step.goes_on
                )
            case Crash():
                self._crash(session.session_id, step.times)

    def _text(self, what: str) -> str:
        self._texts += 1
        return f"{what} {self._texts}"

    async def _clear(self, session: Session, step: Clear) -> None:
        prompt = " " if step.blank else self._text("seed")
        staged = self.witness.sessions[session.session_id].staged
        staged[False] += 1  # until it is known whether it was staged
        try:
            result = await session.history.clear_context(prompt, siblings=step.siblings)
        except ExeuntError:
            staged[False] -= 1
            raise
        staged[False] -= 1
        staged[True] += 1
        if step.settled_after is not None:
            await trio.sleep(step.settled_after)
            await result.settled()
            if prompt not in self.witness.sessions[session.session_id].committed:
                self.witness.faults.append(f"{prompt!r} is said to be settled, and was not committed")

    def _crash(self, session_id: str, times: int) -> None:
        actor = next((actor for actor in self.host.actors() if actor.id == session_id), None)
        if actor is not None:
            actor.put(_stumble, iter(range(times)))

    # --- How everybody is ------------------------------------------------------------------------------------

    def _check_states(self) -> None:
        """What an actor knows is what its log tells, at any time but between a crash and the restart."""
        for actor in self.host.actors():
            if actor.status != "restarting":
                told, known = SessionState.replay(actor.log.read()).summary(), actor.state.summary()
                assert told == known, f"{actor.id}: the log tells\n  {told}\nand the actor knows\n  {known}"

    async def _rest(self) -> None:
        """Wait until nothing is at work any more."""
        with trio.fail_after(LONG):
            while not all(map(_at_rest, self.host.actors())) or self.host.fenced:
                await trio.sleep(1.0)

    def _calm_down(self) -> None:
        self.journal.calm = True
        for cast in self.cast:
            cast.calm = True

    async def _visit(self, number: int) -> None:
        """See that a session answers, whatever has happened to it."""
        session = self.sessions[number]
        status = session.statistics().status
        if status in ("failed", "closed"):
            with pytest.raises(SessionFailed if status == "failed" else SessionClosed):
                await session.send("are you there?")
            session = self.sessions[number] = await self.host.resume_session(
                session.session_id, continue_pending_work=True
            )
        with trio.fail_after(LONG):
            while True:
                try:
                    reply = await session.send_and_wait("are you there?", timeout=None)
                    break
                except (MailboxFull, Overloaded):
                    # There are messages from before, which are taken in first.
                    await trio.sleep(1.0)
        assert (reply.content, reply.reason) == ("fine", "completed")

    def _check_leftovers(self) -> None:
        """Nothing that belongs to the past is still held."""
        statistics = self.host.statistics()
        for slots in (statistics.turns, statistics.tools):
            assert (slots.running, slots.waiting) == (0, 0), slots
            assert slots.callback_errors == 0, slots
        assert statistics.mailbox_depth == 0
        assert statistics.tool_calls_in_flight == 0
        assert statistics.subscriber_errors == 0
        assert len(self.host.timers) == 0
        for actor in self.host.actors():
            assert not actor.waiters, actor.waiters
            assert actor.clear is None
        self._check_states()


def _at_rest(actor: SessionActor) -> bool:
    if actor.status in ("closed", "failed"):
        return True
    return actor.status == "live" and actor.free


async def _sleep(step: Sleep) -> None:
    match step.how:
        case "plain":
            await trio.sleep(step.seconds)
        case "shielded":
            with trio.CancelScope(shield=True):
                await trio.sleep(step.seconds)
        case "swallowed":
            try:
                await trio.sleep(step.seconds)
            except trio.Cancelled:  # noqa: ASYNC103 - this is the fault
                pass


def _stumble(actor: SessionActor, stones: "Any") -> None:
    """A handler that raises as often as there are stones."""
    for _ in stones:
        raise Broken("a faulty handler of the actor")
