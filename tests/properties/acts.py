"""Plays the steps of a `Program`: what people and handlers do to sessions. What it is told goes to the witness."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
import trio

from exeunt import (
    ClearAlreadyStaged,
    ClearLoop,
    ClearRolledBack,
    EmptySeedPrompt,
    ExeuntError,
    InvalidAnswer,
    InvalidConfiguration,
    MailboxFull,
    NotInToolCall,
    NoToolCallInFlight,
    Overloaded,
    PromptBlocked,
    ReplyTimeout,
    RequestNotPending,
    Session,
    SessionClosed,
    SessionFailed,
    SessionHost,
    TurnAborted,
    TurnFailed,
    TurnInterrupted,
    UserInputTimeout,
    WouldDeadlock,
)
from exeunt.actors.turn.actor import SessionActor
from tests.properties.cast import APPROVALS, Broken, arguments_of
from tests.properties.programs import (
    Abort,
    Ask,
    Clear,
    Command,
    Crash,
    Leave,
    Question,
    RunTool,
    Send,
    Settle,
    Sleep,
    Step,
    TakeUp,
    Work,
)
from tests.properties.witness import Witness

MOST_STEPS = 30
"""Steps that callbacks may play in one test: a hook that sends a message to its own session must end."""

_SENDING = (MailboxFull, Overloaded, SessionClosed, SessionFailed)

EXPECTED: dict[type[Step], tuple[type[ExeuntError], ...]] = {
    Send: _SENDING,
    Ask: (*_SENDING, TurnAborted, TurnInterrupted, TurnFailed, PromptBlocked, ReplyTimeout),
    RunTool: (*_SENDING, TurnAborted, TurnInterrupted),
    Question: (NotInToolCall, UserInputTimeout, InvalidConfiguration),
    Settle: (RequestNotPending, InvalidAnswer, SessionClosed, SessionFailed),
    Clear: (EmptySeedPrompt, NoToolCallInFlight, ClearAlreadyStaged, ClearLoop, ClearRolledBack),
}
"""What the documentation of each method lets it raise. In a handler, `WouldDeadlock` comes to it."""


class Acts:
    """Does what a program says, for people and for callbacks."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.host: SessionHost
        self.closing = False
        """Whether the host ends: then it takes no session up."""
        self.sessions: list[Session] = []
        self.works: list[Work] = []
        """What calls are to do; a call's argument is the place in it."""
        self._texts = 0
        self._steps_left = MOST_STEPS

    async def obey(self, command: Command) -> None:
        """Do what a person does, until they lose patience."""
        with trio.CancelScope() as patience:
            if command.patience is not None:
                patience.deadline = trio.current_time() + command.patience
            await self._play(command.step, 0, in_handler=False)

    async def play_all(self, me: int, steps: Sequence[Step]) -> None:
        """Do what a callback of session *me* does."""
        for step in steps:
            if self._steps_left > 0:
                self._steps_left -= 1
                await self._play(step, me, in_handler=True)

    async def _play(self, step: Step, me: int, *, in_handler: bool) -> None:
        expected = EXPECTED.get(type(step), ())
        if in_handler:
            expected = (*expected, WouldDeadlock)
        try:
            with suppress(*expected):
                await self._do(step, me, in_handler=in_handler)
        except SessionClosed:
            # The host may have begun to end in the middle of the step.
            if not self.closing:
                raise

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
            case Question():
                await session.ask_user(step.text, ["red", "blue"], timeout=step.timeout)
            case Settle():
                await self._settle(session, step)
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
        seen = self.witness.sessions[session.session_id]
        result = await session.history.clear_context(prompt, siblings=step.siblings)
        seen.staged += 1
        if step.settled_after is not None:
            await trio.sleep(step.settled_after)
            await result.settled()
            if prompt not in seen.committed:
                self.witness.faults.append(f"{prompt!r} is said to be settled, and was not committed")

    async def _settle(self, session: Session, step: Settle) -> None:
        pending = session.pending_requests()
        if not pending:
            return
        request = pending[step.place % len(pending)]
        await session.answer(request.request_id, APPROVALS[step.answer])
        if step.twice:
            with pytest.raises((RequestNotPending, SessionClosed, SessionFailed)):
                await session.answer(request.request_id, "once more")

    def _crash(self, session_id: str, times: int) -> None:
        for actor in self.host.actors():
            if actor.id == session_id:
                actor.put(_stumble, iter(range(times)))


async def _sleep(step: Sleep) -> None:
    match step.how:
        case "plain":
            await trio.sleep(step.seconds)
        case "shielded":
            with trio.CancelScope(shield=True):
                await trio.sleep(step.seconds)
        case "swallowed":
            with suppress(trio.Cancelled):
                await trio.sleep(step.seconds)


def _stumble(actor: SessionActor, stones: Iterator[int]) -> None:
    """A handler that raises as often as there are stones."""
    for stone in stones:
        raise Broken(f"{actor.id} stumbled over stone {stone}")
