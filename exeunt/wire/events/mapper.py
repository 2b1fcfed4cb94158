"""One session's events, one after the other, as the protocol's."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from exeunt.actors.events import AssistantUsage, Event, UsageCheckpoint
from exeunt.actors.media import Media
from exeunt.actors.state.account import NO_ACCOUNT, Account, Spent
from exeunt.wire.events.clock import iso


class WireEvent(msgspec.Struct, gc=False, omit_defaults=True):
    """An event as clients see it. The order of the fields is that of the wire."""

    type: str
    data: Any
    id: str
    timestamp: str
    parentId: str | None  # noqa: N815 - the protocol's name
    ephemeral: bool = False


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What a session's calls of one model have taken, while somebody looked."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0

    def with_call(self, event: AssistantUsage) -> "Usage":
        """Return the sum with one more call."""
        return Usage(
            self.calls + 1,
            self.input_tokens + event.input_tokens,
            self.output_tokens + event.output_tokens,
            self.cache_read_tokens + event.cache_read_tokens,
            self.cache_write_tokens + event.cache_write_tokens,
            self.reasoning_tokens + event.reasoning_tokens,
            self.seconds + event.duration,
        )


NO_CALLS = Usage()

MOST_MODELS = 100
"""Of one session whose calls are summed up apart: a client may give a model any name. Those of others are one sum."""


class EventMapper:
    """Translates the events of one session, in order. Some say things that an earlier event knew.

    The log has events that the protocol does not; those that it does have form an unbroken chain: the `parentId` of
    each is the id of the last persisted one before it that clients see.
    """

    __slots__ = (
        "account",
        "approvals",
        "away",
        "calls",
        "data_from",
        "effort",
        "extra",
        "figures",
        "last_call",
        "last_id",
        "media",
        "message_id",
        "mode",
        "model",
        "notes",
        "pieces",
        "session_id",
        "started",
        "step",
        "trace_of_call",
        "turn_began",
        "usage",
        "wants_own",
        "working_directory",
    )

    def __init__(self, session_id: str, working_directory: str = "") -> None:
        self.session_id = session_id
        self.working_directory = working_directory
        self.model = ""
        self.mode = "interactive"
        self.last_id: str | None = None
        self.turn_began = 0.0
        """When the turn under way, or the last one, began; seconds since the epoch."""
        self.calls: dict[str, str] | None = None
        """Names of the tools whose calls have no outcome yet, by the id of the call."""
        self.message_id: str | None = None
        """The message that the turn answers; a seeded turn answers the one that its predecessor did."""
        self.step = 0
        self.started = 0.0
        """When the session began; seconds since the epoch."""
        self.pieces: tuple[str, int] | None = None
        """The streamed answer: its id, and the bytes so far."""
        self.approvals: dict[str, str] | None = None
        """Names of tools by the open requests for approval."""
        self.usage: dict[str, Usage] | None = None
        """What calls have taken, by the name of the model."""
        self.last_call: AssistantUsage | None = None
        self.account: Account = NO_ACCOUNT
        """What the log says of calls of models with a price, where nobody else is asked for that."""
        self.figures: Callable[[], dict[str, Any]] | None = None
        """Sums up what a session has taken that ends, where it is in memory."""
        self.wants_own = False
        """Whether anybody has asked for events that the protocol does not have."""
        self.effort: str | None = None
        """How much the model is to think, where the session was made with that."""
        self.away: tuple[str, str | None] | None = None
        """The event before which the session goes back, as a client has named it, and what is last then."""
        self.notes: dict[str, dict[str, Any]] | None = None
        """What senders wanted to be shown with their messages that are not in the context yet, by message."""
        self.media: dict[str, tuple[tuple[Media, ...], bool]] | None = None
        """What is attached to messages that are not in the context yet, by message; and whether its data are shown."""
        self.data_from = 0
        """Number of the first event whose media are shown with their data."""
        self.trace_of_call: Callable[[str], dict[str, str]] | None = None
        """Names the span of a call that is in flight, where there are traces."""
        self.extra = 0
        """Events that stand for no event of the log."""

    def sum_up(self, event: AssistantUsage) -> None:
        """Add what one more call has taken."""
        if self.usage is None:
            self.usage = {}
        name = event.model if event.model in self.usage or len(self.usage) < MOST_MODELS else "other"
        self.usage[name] = self.usage.get(name, NO_CALLS).with_call(event)
        self.last_call = event

    def pay(self, event: UsageCheckpoint) -> None:
        """Add what the log says that one more call has cost."""
        call = Spent(
            1,
            event.input_tokens,
            event.output_tokens,
            event.cache_read_tokens,
            event.cache_write_tokens,
            event.nano_aiu,
        )
        self.account = self.account.charged(event.model, call)

    def map(self, event: Event) -> Iterable["WireEvent"]:
        """Return what clients see of *event*: nothing, one event, or several."""
        from exeunt.wire.events.mapping import MAPPINGS

        mapping = MAPPINGS.get(type(event))
        return () if mapping is None else mapping(self, event)

    def persisted(self, event: Event, data: Any, kind: str | None = None) -> tuple["WireEvent"]:
        """Return *event* as the next one of the chain."""
        event_id = event.id
        wire = WireEvent(kind or event.type, data, event_id, iso(event.time), self.last_id)
        self.last_id = event_id
        return (wire,)

    def ephemeral(self, event: Event, data: Any, kind: str | None = None) -> "WireEvent":
        """Return *event* as one that is not kept."""
        return WireEvent(kind or event.type, data, event.id, iso(event.time), self.last_id, True)

    def beside(self, event: Event, kind: str, data: Any) -> "WireEvent":
        """Return an event that is not kept and that no event of the log stands for, at the time of *event*."""
        return self.made(kind, data, event.time)

    def made(self, kind: str, data: Any, moment: float) -> "WireEvent":
        """Return an event that is not kept and that no event of the log stands for."""
        self.extra += 1
        return WireEvent(kind, data, _extra_id(self.last_id, self.extra), iso(moment), self.last_id, True)


def _extra_id(last_id: str | None, number: int) -> str:
    """An id in the shape of a UUID that no event of the log has; unique in its session."""
    prefix = "00000000-0000-4000" if last_id is None else last_id[:18]
    return f"{prefix}-b000-{number:012x}"
