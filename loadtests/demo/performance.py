"""The run: all guests at once, and two crashes."""

import random
from collections import deque
from collections.abc import Sequence
from functools import partial

import attrs
import trio

from exeunt import Overloaded, Session, SessionHost
from exeunt.demo.director import Director
from exeunt.demo.guests import ACTS_EACH, Guest, plan
from exeunt.demo.refusals import Refusals
from exeunt.demo.tally import Tally, Timings
from exeunt.demo.tools import make_approver, make_tools
from exeunt.testing import EventInvariants, ScriptedModel, crash_session
from exeunt.testing.checked_host import Ledger

LONGEST_RUN = 300.0
"""Seconds. Ten times the usual run: a machine on which it takes longer cannot show anything."""
LONGEST_EACH = 0.06
"""Seconds for each session, where that comes to more: four times what one takes when there are so many that two cores
are never idle."""
CRASH_AT = 0.3, 0.6
"""Shares of all acts that are done when a session crashes: in the thick of it."""
STEPS = 6
"""Requests of one turn at most: the guest who wants it looked up for ever reaches it in 4 s."""


@attrs.define(eq=False)
class Performance:
    """One run of the demo in *host*. Its fields may be read at any time."""

    host: SessionHost
    sessions: int
    seed: int
    tally: Tally = attrs.field(factory=Tally, init=False)
    timings: Timings = attrs.field(factory=Timings, init=False)
    invariants: EventInvariants = attrs.field(factory=EventInvariants, init=False)
    ledger: Ledger = attrs.field(factory=Ledger, init=False)
    model: ScriptedModel = attrs.field(init=False)
    refusals: Refusals = attrs.field(init=False)
    refused: Overloaded | None = attrs.field(default=None, init=False)
    """The refusal that outlasted a guest's patience, and so ended the run."""
    guests: list[Guest] = attrs.field(factory=list[Guest], init=False)
    acts_done: int = attrs.field(default=0, init=False)
    """Acts that are over."""
    injected: int = attrs.field(default=0, init=False)
    """Crashes so far."""
    news: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=3), init=False)
    """What is worth a line: the latest, oldest first."""
    began: float = attrs.field(factory=trio.current_time, init=False)
    ended: float | None = attrs.field(default=None, init=False)
    complete: bool = attrs.field(default=False, init=False)
    """Whether every guest has played every act."""

    _chance: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        director = Director(self._chance, self.timings)
        self.model = ScriptedModel((), default=director, record=False)
        self.refusals = Refusals(random.Random(self.seed))
        self.host.observe(self.tally)
        self.host.observe(self.ledger)
        self.host.observe(self.invariants.observe)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, or that it took."""
        return (trio.current_time() if self.ended is None else self.ended) - self.began

    @property
    def acts(self) -> int:
        """Acts that are planned."""
        return self.sessions * (ACTS_EACH + 1)

    @property
    def longest(self) -> float:
        """Seconds after which the run is ended."""
        return max(LONGEST_RUN, LONGEST_EACH * self.sessions)

    async def run(self) -> None:
        """Create all sessions and play, until every guest has left. Cancelled: the sessions stay as they are."""
        try:
            await self._play()
        except* Overloaded as refusals:
            self.refused = _first(refusals)
        finally:
            self.ended = trio.current_time()

    async def _play(self) -> None:
        await self._invite()
        with trio.move_on_after(self.longest) as scope:
            async with trio.open_nursery() as nursery:
                for guest in self.guests:
                    nursery.start_soon(guest.visit)
        self.complete = not scope.cancelled_caught

    async def _invite(self) -> None:
        tools = make_tools(self._chance, self.timings)
        approver = make_approver(self._chance)
        for number in range(self.sessions):
            create = partial(
                self.host.create_session,
                session_id=f"guest-{number:05}",
                model=self.model,
                tools=tools,
                system_message="You are at the information desk of a theatre. Be brief.",
                on_permission_request=approver,
                limits={"steps": STEPS},
            )
            session = await self.refusals.insist(create)
            own = random.Random(f"{self.seed}/{number}")
            guest = Guest(session, plan(number, own), own, self.timings, self.refusals, self._act_ended)
            self.guests.append(guest)

    def _act_ended(self) -> None:
        """Count, and crash a session when it is time to."""
        self.acts_done += 1
        if self.injected == len(CRASH_AT) or self.acts_done < CRASH_AT[self.injected] * self.acts:
            return
        session = self._chance.choice(self._busy() or [guest.session for guest in self.guests])
        phase = session.statistics().phase
        self.injected += 1
        self.news.append(f"{self.seconds:.1f} s: {session.session_id} crashed in phase {phase!r} (injected)")
        crash_session(session, RuntimeError("injected by the demo"))

    def _busy(self) -> Sequence[Session]:
        sessions = (guest.session for guest in self.guests)
        return [session for session in sessions if session.statistics().phase in ("model", "tools")]


def _first(group: BaseExceptionGroup[Overloaded]) -> Overloaded:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
