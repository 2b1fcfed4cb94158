"""Plays a `Program` in virtual time, and checks that everything promised holds."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio

from exeunt import (
    MailboxFull,
    ModelRequest,
    Overloaded,
    Reply,
    Session,
    SessionClosed,
    SessionFailed,
    SessionHost,
)
from exeunt.actors.state import SessionState
from exeunt.actors.turn.actor import SessionActor
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.restarts import RestartIntensity
from exeunt.testing import checked_host, run_virtual
from tests.properties.acts import Acts
from tests.properties.cast import Cast
from tests.properties.losing_journal import LosingJournal
from tests.properties.programs import Program
from tests.properties.witness import Witness

LONG = 3600.0
"""Seconds of virtual time after which something is stuck. All that happens in a test takes some minutes."""


def play(program: Program) -> None:
    """Play *program* to its end, and see whether everybody is well. Raises what is wrong."""
    run_virtual(Stage(program).play)


def play_in_two_hosts(program: Program) -> None:
    """Play *program*, end the host in the middle, and see whether another host can take everything up."""
    run_virtual(Stage(program).play_in_two_hosts)


class Stage:
    """One run of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.witness = Witness()
        self.acts = Acts(self.witness)
        self.journal = LosingJournal(program.lost_writes)
        self.cast = [
            Cast(plan, self.acts.works, partial(self.acts.play_all, number), self._asked)
            for number, plan in enumerate(program.sessions)
        ]

    async def play(self) -> None:
        """See `play`."""
        async with self.open_host() as host:
            await self._enter(host)
            async with trio.open_nursery() as people:
                await self._command(host, people)
            await _rest(host)
            self._calm_down()
            await self._visit_all(host, known=True)
            for session in self.acts.sessions:
                self.witness.finish(session.session_id, await session.get_events())
        self._hear_the_witness()

    async def play_in_two_hosts(self) -> None:
        """See `play_in_two_hosts`."""
        async with trio.open_nursery() as people:
            with trio.fail_after(LONG):
                async with self.open_host(settled=False) as host:
                    await self._enter(host)
                    await self._command(host, people)
                    self.acts.closing = True
        for session in self.acts.sessions:
            # A failed session has no more to say, all others left in order.
            assert session.statistics().status in ("closed", "failed")
        self._calm_down()
        async with self.open_host() as host:
            await self._visit_all(host, known=False)
        self._hear_the_witness()

    def _asked(self, request: ModelRequest) -> None:
        """A model got a request: only a turn that holds a slot makes one."""
        self.witness.request(request)
        asking = sum(
            actor.turn is not None and actor.turn.phase == "model" for actor in self.acts.host.actors()
        )
        running = self.acts.host.statistics().turns.running
        if not asking <= running <= self.program.running_turns:
            self.witness.faults.append(f"{asking} turns ask their model, and {running} hold a slot")

    # --- The parts of a run ----------------------------------------------------------------------------------

    def open_host(self, *, settled: bool = True, **keywords: Any) -> AbstractAsyncContextManager[SessionHost]:
        """Open a host of the program."""
        program = self.program
        options = HostOptions(
            running_turns=program.running_turns,
            waiting_turns=program.waiting_turns,
            tool_slots=program.tool_slots,
            intensity=RestartIntensity(program.restarts),
        )
        return checked_host(settled=settled, options=options, journal=self.journal, **keywords)

    async def _enter(self, host: SessionHost) -> None:
        self.acts.host = host
        host.observe(self.witness)
        for number, cast in enumerate(self.cast):
            session = await host.create_session(session_id=f"session {number}", **cast.options())
            self.acts.sessions.append(session)

    async def _command(self, host: SessionHost, people: trio.Nursery) -> None:
        for command in self.program.commands:
            await trio.sleep(command.gap)
            _check_states(host)
            people.start_soon(self.acts.obey, command)

    def _calm_down(self) -> None:
        self.journal.calm = True
        for cast in self.cast:
            cast.calm = True

    async def _visit_all(self, host: SessionHost, *, known: bool) -> None:
        """See that every session answers, whatever has happened to it, and that nothing of it is left.

        *known* says whether the host has had them before.
        """
        self.acts.host = host
        for number in range(len(self.cast)):
            await self._visit(host, number, {} if known else self.cast[number].options())
        await _rest(host)
        _check_leftovers(host)

    async def _visit(self, host: SessionHost, number: int, options: dict[str, Any]) -> None:
        session = self.acts.sessions[number]
        status = session.statistics().status
        if status in ("failed", "closed"):
            with pytest.raises(SessionFailed if status == "failed" else SessionClosed):
                await session.send("are you there?")
            session = self.acts.sessions[number] = await host.resume_session(
                session.session_id, continue_pending_work=True, **options
            )
        with trio.fail_after(LONG):
            reply = await _ask_until_taken(session)
        assert (reply.content, reply.reason) == ("fine", "completed")

    def _hear_the_witness(self) -> None:
        for cast in self.cast:
            cast.model.verify()
        assert not self.witness.faults, "\n".join(self.witness.faults)


async def _ask_until_taken(session: Session) -> Reply:
    while True:
        try:
            return await session.send_and_wait("are you there?", timeout=None)
        except (MailboxFull, Overloaded):
            # There are messages from before, which are taken in first.
            await trio.sleep(1.0)


async def _rest(host: SessionHost) -> None:
    """Wait until nothing is at work any more."""
    with trio.fail_after(LONG):
        await trio.lowlevel.checkpoint()
        while host.fenced or not all(map(_at_rest, host.actors())):  # noqa: ASYNC110 - nobody tells
            await trio.sleep(1.0)


def _at_rest(actor: SessionActor) -> bool:
    return actor.status in ("closed", "failed") or actor.free


def _check_states(host: SessionHost) -> None:
    """What an actor knows is what its log tells, at any time but between a crash and the restart."""
    for actor in host.actors():
        if actor.status != "restarting":
            told, known = SessionState.replay(actor.log.read_now() or ()).summary(), actor.state.summary()
            assert told == known, f"{actor.id}: the log tells\n  {told}\nand the actor knows\n  {known}"


def _check_leftovers(host: SessionHost) -> None:
    """Nothing that belongs to the past is still held."""
    _check_states(host)
    statistics = host.statistics()
    for slots in (statistics.turns, statistics.tools):
        assert (slots.running, slots.waiting) == (0, 0), slots
        assert slots.callback_errors == 0, slots
    assert statistics.mailbox_depth == 0
    assert statistics.tool_calls_in_flight == 0
    assert statistics.subscriber_errors == 0
    assert len(host.timers) == 0
    for actor in host.actors():
        assert not actor.waiters, actor.waiters
        assert actor.clear is None
