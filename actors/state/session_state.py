"""Everything about a session that follows from its log.

A running actor folds its events with the same rules as one that is built anew from the log after a crash, so
both know the same: the context, the messages that wait, the turn and the calls that are open.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from exeunt.actors.errors import ContextError
from exeunt.actors.events import (
    AssistantMessage,
    AssistantTurnEnd,
    AssistantTurnStart,
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    ContextCleared,
    Event,
    MediaRemoved,
    MessageAccepted,
    MessageDropped,
    PermissionCompleted,
    PermissionRequested,
    SessionCompacted,
    SessionLimitsChanged,
    SessionLimitsExhaustedCompleted,
    SessionLimitsExhaustedRequested,
    SessionModeChanged,
    SessionModelChange,
    SessionTitleChanged,
    SessionTruncated,
    SystemMessage,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
    UsageCheckpoint,
    UserInputCompleted,
    UserInputRequested,
    UserMessage,
)
from exeunt.actors.media import Media
from exeunt.actors.prices import to_nano
from exeunt.actors.state.account import NO_ACCOUNT, Account, Spent
from exeunt.actors.state.context import (
    Context,
    fold_assistant,
    fold_cleared,
    fold_compacted,
    fold_result,
    fold_system,
    fold_truncated,
    fold_user,
    with_media,
)
from exeunt.actors.state.media import fold_media_removed

BEGINS_A_TURN = frozenset({"idle", "queued", "seed"})
"""Deliveries of a user message that open a turn."""

FRONT = 0
"""Order of a steered message that was left over, and of one that was sent to be first: before all that was queued."""


class Pending(msgspec.Struct, frozen=True, gc=False):
    """An accepted message that is not in the context yet."""

    message_id: str
    prompt: str
    mode: str
    order: int
    """Position in the session's first-in-first-out order: the event's number."""
    media: tuple[Media, ...] = ()
    trace: dict[str, str] | None = None
    """Where its sender was in a trace, as its note says; the rest of that stands in the log."""


TRACE = ("traceparent", "tracestate")
"""Fields of a note that say where its sender was in a trace: those of the W3C."""

TurnRequested = SessionLimitsExhaustedRequested | AutoModeSwitchRequested
"""What a turn asks people before it goes on. One at a time."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What a call has asked people; open until it is answered, or for want of an answer gone."""

    request: PermissionRequested | UserInputRequested
    answer: UserInputCompleted | None = None
    """An answer is kept until its call has ended: a call that is run again asks again, and is not to ask in vain."""


class SessionState:
    """The fold of a session's log. `apply` is the only way to change it."""

    __slots__ = (
        "account",
        "call_ids",
        "clears_in_a_row",
        "context",
        "labels",
        "last_id",
        "media_came",
        "open_calls",
        "question",
        "queue",
        "requests",
        "seq",
        "steering",
        "step",
        "turn_id",
        "turn_steps",
    )

    def __init__(self) -> None:
        self.seq = 0
        self.last_id: str | None = None
        """Id of the last event that was replayed: what the next activation begins behind."""
        self.context = Context()
        self.media_came = False
        """Whether media have come into the context since the last request."""
        self.queue: deque[Pending] | None = None
        """Messages that wait for a turn of their own. `None` while there are none: a deque takes 0.8 KiB."""
        self.steering: deque[Pending] | None = None
        """Messages that join the running turn before its next request."""
        self.turn_id: str | None = None
        self.turn_steps = 0
        """Requests of the open turn."""
        self.step: AssistantTurnStart | None = None
        self.open_calls: dict[str, ToolExecutionStart] | None = None
        self.requests: dict[str, Asked] | None = None
        """What open calls have asked people, by the id of the request, in order."""
        self.question: TurnRequested | None = None
        """What the open turn itself has asked people."""
        self.account: Account = NO_ACCOUNT
        """What it may spend, and has spent."""
        self.clears_in_a_row = 0
        self.labels: dict[str, str] | None = None
        """What was chosen for the session while it ran: `title`, `mode`, `model`, and whether the automatic model
        takes over unasked; of each the last."""
        self.call_ids: list[str] | None = None
        """Ids of the calls in the context. A list: looking for one is rare work, and 8 bytes an id are little."""

    @classmethod
    def replay(cls, events: Iterable[Event], start: "SessionState | None" = None) -> "SessionState":
        """Return the state after *events*: a log from its beginning, or what follows *start*, which is changed.

        Raises `ContextError` for a log with a gap or with an event that cannot be where it is.
        """
        state = cls() if start is None else start
        event = None
        for event in events:
            if event.seq != state.seq + 1:
                raise ContextError(f"event {event.id} has number {event.seq}; {state.seq + 1} was expected")
            state.apply(event)
        if event is not None:
            state.last_id = event.id
        return state

    def apply(self, event: Event) -> None:
        """Fold one persisted event. Raises `ContextError`, and changes nothing, for one that cannot follow."""
        fold = FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)
        self.seq = event.seq

    @property
    def waiting(self) -> int:
        """Accepted messages that are not in the context."""
        return (len(self.queue) if self.queue else 0) + (len(self.steering) if self.steering else 0)

    @property
    def approvals(self) -> dict[str, str] | None:
        """Requests for approval that nobody has answered, by the id of the call."""
        asked = [asked.request for asked in (self.requests or {}).values()]
        return {r.tool_call_id: r.request_id for r in asked if isinstance(r, PermissionRequested)} or None

    def pending(self) -> list[Pending]:
        """Return the messages that wait: steered ones first, then the queue, each in order."""
        return [*(self.steering or ()), *(self.queue or ())]

    @property
    def at_rest(self) -> bool:
        """Whether no turn and no call is under way, and no seed waits for its turn."""
        return self.turn_id is None and not self.open_calls and self.context.unanswered_seed is None

    def summary(self) -> tuple[Any, ...]:
        """Return a value that is equal for equal states: what a test compares."""
        return (
            self.seq,
            tuple(self.context.visible()),
            self.context.generation,
            tuple(self.queue or ()),
            tuple(self.steering or ()),
            self.turn_id,
            self.step,
            self.turn_steps,
            tuple(sorted(self.open_calls or ())),
            tuple((self.requests or {}).items()),
            self.question,
            self.account,
            self.media_came,
            self.clears_in_a_row,
            tuple(sorted((self.labels or {}).items())),
        )

    def label(self, name: str, value: str) -> None:
        """Note what was chosen. For the folds."""
        if self.labels is None:
            self.labels = {}
        self.labels[name] = value


def _system(state: SessionState, event: SystemMessage) -> None:
    state.context = fold_system(state.context, event)


def _trace(note: dict[str, Any]) -> dict[str, str] | None:
    return {name: note[name] for name in TRACE if isinstance(note.get(name), str)} or None


def _accepted(state: SessionState, event: MessageAccepted) -> None:
    order = FRONT if event.first else event.seq
    trace = None if event.note is None else _trace(event.note)
    item = Pending(event.message_id, event.prompt, event.mode, order, event.media, trace)
    if event.steers:
        lane = state.steering = deque[Pending]() if state.steering is None else state.steering
    else:
        lane = state.queue = deque[Pending]() if state.queue is None else state.queue
    if event.first:
        lane.appendleft(item)
    else:
        lane.append(item)


def _leaves(state: SessionState, message_id: str) -> Pending:
    item = None
    if state.queue is not None:
        item = _take(state.queue, message_id)
        state.queue = state.queue or None
    if item is None and state.steering is not None:
        item = _take(state.steering, message_id)
        state.steering = state.steering or None
    if item is None:
        raise ContextError(f"message {message_id} left the queue without having been in it")
    return item


def _take(lane: deque[Pending], message_id: str) -> Pending | None:
    """Remove and return a message, nearly always the first; `None` where it was not there."""
    if lane[0].message_id == message_id:
        return lane.popleft()
    for item in lane:
        if item.message_id == message_id:
            lane.remove(item)
            return item
    return None


def _dropped(state: SessionState, event: MessageDropped) -> None:
    _leaves(state, event.message_id)


def _user(state: SessionState, event: UserMessage) -> None:
    context = fold_user(state.context, event)
    if event.message_id is not None:
        media = _leaves(state, event.message_id).media
        if media:
            context = with_media(context, media)
            state.media_came = True
    if event.delivery in BEGINS_A_TURN:
        state.turn_id = event.turn_id
        state.turn_steps = 0
    state.context = context


def _step_start(state: SessionState, event: AssistantTurnStart) -> None:
    state.step = event
    state.turn_steps = event.step + 1
    state.media_came = False


def _step_end(state: SessionState, event: AssistantTurnEnd) -> None:
    state.step = None


def _turn_end(state: SessionState, event: TurnEnd) -> None:
    state.turn_id = None
    if event.cleared:
        return
    state.clears_in_a_row = 0
    if state.steering:
        # The first leftover begins the next turn; the rest steer that one.
        first = msgspec.structs.replace(state.steering.popleft(), order=FRONT)
        state.steering = state.steering or None
        if state.queue is None:
            state.queue = deque()
        state.queue.appendleft(first)


def _assistant(state: SessionState, event: AssistantMessage) -> None:
    state.context = fold_assistant(state.context, event)
    if event.tool_calls:
        if state.call_ids is None:
            state.call_ids = []
        for call in event.tool_calls:
            state.call_ids.append(call.id)


def _call_start(state: SessionState, event: ToolExecutionStart) -> None:
    if state.open_calls is None:
        state.open_calls = {}
    state.open_calls[event.tool_call_id] = event


def _call_end(state: SessionState, event: ToolExecutionComplete) -> None:
    if state.open_calls is None or event.tool_call_id not in state.open_calls:
        raise ContextError(f"result of {event.tool_call_id!r} has no open call")
    state.context = fold_result(state.context, event)
    if event.media:
        state.media_came = True
    del state.open_calls[event.tool_call_id]
    if not state.open_calls:
        state.open_calls = None
    if state.requests is not None:
        left = {k: v for k, v in state.requests.items() if v.request.tool_call_id != event.tool_call_id}
        state.requests = left or None


def _asked(state: SessionState, event: PermissionRequested | UserInputRequested) -> None:
    if state.requests is None:
        state.requests = {}
    state.requests[event.request_id] = Asked(event)


def _request_ended(state: SessionState, event: PermissionCompleted | UserInputCompleted) -> None:
    asked = (state.requests or {}).get(event.request_id)
    if asked is None or state.requests is None:
        return
    if isinstance(event, UserInputCompleted) and event.kind == "answered":
        state.requests[event.request_id] = Asked(asked.request, event)
    else:
        del state.requests[event.request_id]
        state.requests = state.requests or None


def _turn_asked(state: SessionState, event: TurnRequested) -> None:
    state.question = event


def _turn_answered(
    state: SessionState, event: SessionLimitsExhaustedCompleted | AutoModeSwitchCompleted
) -> None:
    state.question = None
    if isinstance(event, AutoModeSwitchCompleted) and event.response == "yes_always":
        state.label("auto_mode_switch", "always")


def _limited(state: SessionState, event: SessionLimitsChanged) -> None:
    limit = event.max_ai_credits
    state.account = state.account.limited(None if limit is None else to_nano(limit))


def _charged(state: SessionState, event: UsageCheckpoint) -> None:
    call = Spent(
        1,
        event.input_tokens,
        event.output_tokens,
        event.cache_read_tokens,
        event.cache_write_tokens,
        event.nano_aiu,
    )
    state.account = state.account.charged(event.model, call)


def _model_chosen(state: SessionState, event: SessionModelChange) -> None:
    state.label("model", event.new_model)


def _mode_chosen(state: SessionState, event: SessionModeChanged) -> None:
    state.label("mode", event.new_mode)


def _title_chosen(state: SessionState, event: SessionTitleChanged) -> None:
    state.label("title", event.title)


def _cleared(state: SessionState, event: ContextCleared) -> None:
    state.context = fold_cleared(state.context, event)
    state.clears_in_a_row = state.clears_in_a_row + 1 if event.only_clears else 0
    state.call_ids = None


def _truncated(state: SessionState, event: SessionTruncated) -> None:
    if state.turn_id is not None or state.open_calls:
        raise ContextError(f"truncation {event.id} stands inside of a turn")
    state.context = context = fold_truncated(state.context, event)
    state.clears_in_a_row = 0
    state.call_ids = [call.id for message in context.messages for call in message.tool_calls] or None


def _media_removed(state: SessionState, event: MediaRemoved) -> None:
    state.context = fold_media_removed(state.context, event)


def _compacted(state: SessionState, event: SessionCompacted) -> None:
    if state.turn_id is not None or state.open_calls:
        raise ContextError(f"compaction {event.id} stands inside of a turn")
    state.context = context = fold_compacted(state.context, event)
    state.call_ids = [call.id for message in context.messages for call in message.tool_calls] or None


FOLDS: dict[type[Event], Callable[[SessionState, Any], None]] = {
    SystemMessage: _system,
    MessageAccepted: _accepted,
    MessageDropped: _dropped,
    UserMessage: _user,
    AssistantTurnStart: _step_start,
    AssistantMessage: _assistant,
    ToolExecutionStart: _call_start,
    PermissionRequested: _asked,
    PermissionCompleted: _request_ended,
    UserInputRequested: _asked,
    UserInputCompleted: _request_ended,
    SessionLimitsExhaustedRequested: _turn_asked,
    SessionLimitsExhaustedCompleted: _turn_answered,
    AutoModeSwitchRequested: _turn_asked,
    AutoModeSwitchCompleted: _turn_answered,
    SessionLimitsChanged: _limited,
    UsageCheckpoint: _charged,
    ToolExecutionComplete: _call_end,
    AssistantTurnEnd: _step_end,
    TurnEnd: _turn_end,
    ContextCleared: _cleared,
    SessionTruncated: _truncated,
    SessionCompacted: _compacted,
    MediaRemoved: _media_removed,
    SessionModelChange: _model_chosen,
    SessionModeChanged: _mode_chosen,
    SessionTitleChanged: _title_chosen,
}
"""The fold of each event that changes a state. An event that is not here changes nothing but the number."""
