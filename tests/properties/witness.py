"""What generated tests hold against a host, beyond what every test checks by itself (`exeunt.testing.checked_host`).

It knows only events, requests and what callers were told.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs

from exeunt.actors.events import (
    AssistantTurnStart,
    ClearRolledBackEvent,
    ContextCleared,
    Event,
    MessageAccepted,
    MessageDropped,
    ToolExecutionComplete,
    TurnEnd,
    UserMessage,
)
from exeunt.actors.models import ModelRequest
from exeunt.actors.session.replies import AbortReceipt, Reply, ToolOutcome
from exeunt.actors.state import SessionState
from exeunt.actors.state.session_state import BEGINS_A_TURN
from exeunt.actors.turn.turns import WITHHELD


@attrs.define(eq=False)
class Witnessed:
    """What was seen of one session."""

    accepted: dict[str, tuple[bool, int]] = attrs.Factory(dict[str, "tuple[bool, int]"])
    """Whether each message steered, and its place among all."""
    entered: dict[bool, int] = attrs.Factory(lambda: {True: -1, False: -1})
    """The place of the last steering and of the last queued message that came into the context."""
    leftover: set[str] = attrs.Factory(set[str])
    """Steering messages that came too late for their turn: the next turns are theirs, before all that queued."""
    turn_of: dict[str, str] = attrs.Factory(dict[str, str])
    dropped: dict[str, str] = attrs.Factory(dict[str, str])
    outcomes: dict[str, str] = attrs.Factory(dict[str, str])
    ends: dict[str, str] = attrs.Factory(dict[str, str])
    terminated: set[str] = attrs.Factory(set[str])
    """Turns in which a terminal tool succeeded."""
    seed: str | None = None
    committed: list[str] = attrs.Factory(list[str])
    rolled_back: int = 0
    staged: int = 0


class Witness:
    """An observer of all sessions. What it finds wrong stands in `faults`."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.sessions: defaultdict[str, Witnessed] = defaultdict(Witnessed)

    def __call__(self, session_id: str, events: Sequence[Event]) -> None:
        """Take the events of one handler run."""
        seen = self.sessions[session_id]
        for event in events:
            handler = self._HANDLERS.get(type(event))
            if handler is not None:
                handler(self, seen, event)

    # --- Events ----------------------------------------------------------------------------------------------

    def _accepted(self, seen: Witnessed, event: MessageAccepted) -> None:
        seen.accepted[event.message_id] = (event.steers, len(seen.accepted))

    def _dropped(self, seen: Witnessed, event: MessageDropped) -> None:
        seen.dropped[event.message_id] = event.cause
        seen.leftover.discard(event.message_id)

    def _entered(self, seen: Witnessed, event: UserMessage) -> None:
        if event.message_id is None:
            if event.delivery == "seed" and event.content == WITHHELD:
                seen.seed = WITHHELD  # a hook kept it out
            return
        steers, place = seen.accepted[event.message_id]
        if place < seen.entered[steers]:
            self._fault(
                f"message {event.message_id} was overtaken by one of its kind that was sent later", event
            )
        seen.entered[steers] = place
        seen.leftover.discard(event.message_id)
        if not steers and seen.leftover:
            self._fault(
                f"message {event.message_id} overtook steering that was left over: {seen.leftover}", event
            )
        seen.turn_of[event.message_id] = event.turn_id
        if event.delivery in BEGINS_A_TURN and event.turn_id in seen.ends:
            self._fault("a turn that has ended began again", event)

    def _step(self, seen: Witnessed, event: AssistantTurnStart) -> None:
        if event.turn_id in seen.terminated:
            self._fault("a request was made after a terminal tool of the turn had succeeded", event)

    def _settled(self, seen: Witnessed, event: ToolExecutionComplete) -> None:
        seen.outcomes[event.tool_call_id] = event.outcome
        if event.terminal and event.success and event.turn_id is not None:
            seen.terminated.add(event.turn_id)

    def _ended(self, seen: Witnessed, event: TurnEnd) -> None:
        seen.ends[event.turn_id] = event.reason
        if not event.cleared:
            steering = (message_id for message_id, (steers, _) in seen.accepted.items() if steers)
            seen.leftover.update(m for m in steering if m not in seen.turn_of and m not in seen.dropped)
        if (event.turn_id in seen.terminated) != (event.reason == "terminal_tool") and event.reason not in (
            "aborted",
            "interrupted",
        ):
            self._fault("only the success of a terminal tool ends a turn like this", event)

    def _cleared(self, seen: Witnessed, event: ContextCleared) -> None:
        seen.seed = event.initial_message
        seen.committed.append(event.initial_message)

    def _rolled_back(self, seen: Witnessed, event: ClearRolledBackEvent) -> None:
        seen.rolled_back += 1

    _HANDLERS: ClassVar[dict[type[Event], Callable[["Witness", Witnessed, Any], None]]] = {
        MessageAccepted: _accepted,
        MessageDropped: _dropped,
        UserMessage: _entered,
        AssistantTurnStart: _step,
        ToolExecutionComplete: _settled,
        TurnEnd: _ended,
        ContextCleared: _cleared,
        ClearRolledBackEvent: _rolled_back,
    }

    # --- What others were told -------------------------------------------------------------------------------

    def request(self, request: ModelRequest) -> None:
        """A model was asked: in a cleared context the seed comes first."""
        seed = self.sessions[request.session_id].seed
        first = next(m for m in request.messages if m.role not in ("system", "developer"))
        # A hook may have written something behind it.
        if seed is not None and not (first.role == "user" and first.content.startswith(seed)):
            self._fault(f"a cleared context begins with {first.content!r} and not with {seed!r}", request)

    def reply(self, session_id: str, reply: Reply) -> None:
        """Somebody got a reply."""
        seen = self.sessions[session_id]
        last = reply.turns[-1]
        if (reply.content, reply.reason) != (last.content, last.reason):
            self._fault("a reply is not that of its last turn", reply)
        for turn in reply.turns:
            if seen.ends.get(turn.turn_id) != turn.reason:
                self._fault("a reply tells another end of its turn than the log", reply)
        if reply.turns[0].turn_id not in seen.turn_of.values():
            self._fault("a reply tells of a turn that took in no message", reply)

    def receipt(self, session_id: str, receipt: AbortReceipt, dropped_before: int, *, kept: bool) -> None:
        """Somebody aborted, and waited for the end."""
        seen = self.sessions[session_id]
        if receipt.turn is not None and seen.ends.get(receipt.turn) not in ("aborted", "interrupted"):
            self._fault("an abort says that it ended a turn, and the log does not", receipt)
        for call_id in receipt.tools_cancelled:
            if seen.outcomes.get(call_id) != "cancelled":
                self._fault(f"an abort says that it cancelled call {call_id}, and the log does not", receipt)
        if not kept and self.dropped(session_id) - dropped_before < receipt.queued:
            self._fault("an abort says that it dropped more messages than it did", receipt)

    def dropped(self, session_id: str) -> int:
        """Return how many messages were dropped by aborts, or with their session."""
        return len(self.sessions[session_id].dropped)

    def tool_outcome(self, session_id: str, result: ToolOutcome) -> None:
        """A call of the host returned."""
        if self.sessions[session_id].outcomes.get(result.tool_call_id) != result.outcome:
            self._fault("a call of the host returned another outcome than the log has", result)

    # --- The end ---------------------------------------------------------------------------------------------

    def finish(self, session_id: str, log: Sequence[Event]) -> None:
        """Look at a whole log."""
        seen = self.sessions[session_id]
        ended = len(seen.committed) + seen.rolled_back
        if seen.staged != ended:
            self._fault(f"{seen.staged} clears were staged, {ended} ended", seen)
        if len(set(seen.committed)) < len(seen.committed):
            self._fault("a clear was committed twice", seen.committed)
        state = SessionState()
        before: Event | None = None
        for event in log:
            if isinstance(event, ContextCleared):
                self._count_cleared(state, event, in_turn=isinstance(before, TurnEnd) and before.cleared)
            state.apply(event)
            before = event

    def _count_cleared(self, state: SessionState, event: ContextCleared, *, in_turn: bool) -> None:
        # At the staging the results of the turn's last batch were not in the context; now they are.
        roles = [
            message.role for message in state.context.messages if message.role not in ("system", "developer")
        ]
        results = 0
        while in_turn and roles[-1 - results] == "tool":
            results += 1
        if event.messages_cleared != len(roles) - results:
            self._fault(
                f"{len(roles) - results} messages left the context, not {event.messages_cleared}", event
            )

    def _fault(self, text: str, about: object) -> None:
        self.faults.append(f"{text}\n    {about!r}")
