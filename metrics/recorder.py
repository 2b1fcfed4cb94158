"""Counting: from events to numbers. Nothing here knows Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import (
    AssistantUsage,
    AutoModeSwitchCompleted,
    ClearRefusedEvent,
    ClearRolledBackEvent,
    ContextCleared,
    DeadLetter,
    Event,
    MediaRemoved,
    MessageDropped,
    ModelCallFailure,
    PermissionCompleted,
    SessionFailed,
    SessionHandoff,
    SessionLimitsExhaustedCompleted,
    SessionLost,
    SessionRestarted,
    ToolExecutionComplete,
    ToolResultStale,
    TurnEnd,
    UsageCheckpoint,
    UserInputCompleted,
)
from exeunt.metrics import labels
from exeunt.metrics.instruments import (
    ClosedLabel,
    Counter,
    Histogram,
    HistogramSet,
    ModelCalls,
    PairCounter,
    ToolCalls,
)

ANSWERED: Final = "answered"

# Eleven bounds each, so twelve buckets with the one above all: a scrape's cost is its number of buckets.
# The smallest context that can be cleared has 2 messages; 5,000 is where contexts are too long for any model.
MESSAGES_BOUNDS: Final = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0)
# Seconds. From an answer out of a cache to an approval that took its whole time (3,600); a tool may take 300.
TURN_BOUNDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 3_600.0)
# Seconds. Doubling where answers usually lie; 60 is the longest gap in a stream, 120 the wait for its start.
MODEL_BOUNDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
# Seconds. From a handler that only computes, over the waits for slots and hooks (60) and the time-out (300),
# to an approval that nobody answered (3,600).
TOOL_BOUNDS: Final = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3_600.0)
# Seconds. A commit without a sync to the disk takes a fraction of a millisecond, with one 1 to 10; a disk
# that needs a second stops every session.
COMMIT_BOUNDS: Final = (0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
# A lone turn writes about 5 events a time; at 200 busy sessions 100 turns (900 events) share a commit.
BATCH_BOUNDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0)


class Recorder:
    """All that is counted from the events of one host.

    Counting never waits and takes no lock. `observe` and `register_tools` belong to the thread of the host,
    `observe_commit` to one thread of the journal's choice; reading is allowed from any thread.
    """

    def __init__(self, *, tool_name_cap: int = labels.DEFAULT_TOOL_NAME_CAP, strict: bool = False) -> None:
        if type(tool_name_cap) is not int or tool_name_cap < 0:
            raise InvalidConfiguration(
                f"tool_name_cap is {tool_name_cap!r}: give how many tool names may have series, 0 or more"
            )

        def label(name: str, values: tuple[str, ...]) -> ClosedLabel:
            return ClosedLabel(name, values, strict)

        outcome = label("exeunt_tool_calls_total{outcome}", labels.TOOL_OUTCOMES)
        reason = label("exeunt_turn_terminations_total{reason}", labels.TURN_REASONS)
        status = label("exeunt_model_call_duration_seconds{status}", labels.MODEL_STATUSES)
        self.strict: Final = strict
        self.clears = Counter(label("exeunt_context_clears_total{outcome}", labels.CLEAR_OUTCOMES))
        self.clear_triggers = Counter(
            label("exeunt_context_clear_triggers_total{trigger}", labels.CLEAR_TRIGGERS)
        )
        self.handoffs = PairCounter(
            label("exeunt_handoffs_total{action}", labels.HANDOFFS[0]),
            label("exeunt_handoffs_total{trigger}", labels.HANDOFFS[1]),
        )
        self.permissions = Counter(label("exeunt_permission_requests_total{end}", labels.PERMISSION_ENDS))
        self.questions = Counter(label("exeunt_user_input_requests_total{end}", labels.USER_INPUT_ENDS))
        self.credit_requests = Counter(label("exeunt_credit_requests_total{end}", labels.CREDIT_ENDS))
        self.model_switches = Counter(label("exeunt_model_switch_requests_total{end}", labels.SWITCH_ENDS))
        self.nano_credits = 0
        self.messages_cleared = Histogram(MESSAGES_BOUNDS)
        self.terminations = Counter(reason)
        self.turn_seconds = HistogramSet(reason, TURN_BOUNDS)
        self.model_seconds = ModelCalls(status, labels.PROVIDER_CAP, MODEL_BOUNDS)
        self.tool_seconds = HistogramSet(outcome, TOOL_BOUNDS)
        self.tool_calls = ToolCalls(outcome, tool_name_cap)
        self.tokens = Counter(label("exeunt_tokens_total{direction}", labels.DIRECTIONS))
        self.restarts = Counter(label("exeunt_actor_restarts_total{reason}", labels.CRASH_REASONS))
        self.failures = Counter(label("exeunt_actor_failures_total{reason}", labels.FAILURE_REASONS))
        self.dead_letters = Counter(label("exeunt_dead_letters_total{reason}", labels.DEAD_LETTER_REASONS))
        self.dropped = Counter(label("exeunt_messages_dropped_total{cause}", labels.DROP_CAUSES))
        self.stale_results = 0
        self.media_removed = 0
        self.commit_seconds = Histogram(COMMIT_BOUNDS)
        self.batch_events = Histogram(BATCH_BOUNDS)
        self._handlers: dict[type[Event], Callable[[str, Any], None]] = {
            AssistantUsage: self._model_answered,
            ToolExecutionComplete: self._tool_settled,
            TurnEnd: self._turn_ended,
            ContextCleared: self._clear_committed,
            ClearRolledBackEvent: self._clear_rolled_back,
            ClearRefusedEvent: self._clear_refused,
            ModelCallFailure: self._model_failed,
            SessionRestarted: self._actor_restarted,
            SessionFailed: self._actor_failed,
            SessionLost: self._session_lost,
            DeadLetter: self._dead_lettered,
            MessageDropped: self._message_dropped,
            MediaRemoved: self._media_left,
            ToolResultStale: self._result_stale,
            SessionHandoff: self._handed_off,
            PermissionCompleted: self._permission_ended,
            UserInputCompleted: self._question_ended,
            UsageCheckpoint: self._call_paid,
            SessionLimitsExhaustedCompleted: self._credits_decided,
            AutoModeSwitchCompleted: self._switch_decided,
        }

    def observe(self, session_id: str, events: Sequence[Event], /) -> None:
        """Count *events*, which just happened in the session. Called once for each handler run of an actor.

        Each event counts once: do not pass what a resume reads back from a journal. An event that is not
        counted costs one look-up. Never raises, except `InvariantViolation` if strict.
        """
        handlers = self._handlers
        for event in events:
            # Most events are not counted: asking first is half of what a `get` costs.
            if (kind := event.__class__) in handlers:
                handlers[kind](session_id, event)

    @property
    def counted_events(self) -> Mapping[type[Event], object]:
        """The classes of the events that are counted."""
        return MappingProxyType(self._handlers)

    def register_tools(self, names: Iterable[str], /) -> None:
        """Let the tools with these names have series of their own: call it when a session is created.

        Calls of a tool that was never registered (a model may make up any name), or beyond the cap, count
        under the tool `other`. Names stay registered: what was counted stays true when the session has gone.
        """
        self.tool_calls.register(names)

    def observe_commit(self, seconds: float, events: int, /) -> None:
        """Count one commit of the journal that took *seconds* and made *events* durable."""
        self.commit_seconds.observe(seconds)
        self.batch_events.observe(events)

    def _turn_ended(self, session_id: str, event: TurnEnd) -> None:
        self.terminations.add_one_of(event.reason, session_id, event.time)
        self.turn_seconds.observe(event.reason, event.duration)

    def _tool_settled(self, _: str, event: ToolExecutionComplete) -> None:
        self.tool_calls.add(event.tool_name, event.outcome, event.terminal)
        self.tool_seconds.observe(event.outcome, event.duration)

    def _model_answered(self, _: str, event: AssistantUsage) -> None:
        self.model_seconds.observe(event.provider, labels.MODEL_OK, event.duration)
        tokens = self.tokens.counts
        # A provider may say anything, and a counter that falls reads as a restart of the process.
        if event.input_tokens > 0:
            tokens["input"] += event.input_tokens
        if event.output_tokens > 0:
            tokens["output"] += event.output_tokens

    def _model_failed(self, _: str, event: ModelCallFailure) -> None:
        self.model_seconds.observe(event.provider, event.error_type, event.duration)

    def _clear_committed(self, session_id: str, event: ContextCleared) -> None:
        self.clear_triggers.add(event.trigger.partition(":")[0] or labels.UNNAMED)
        self.clears.add_one_of(labels.COMMITTED, session_id, event.time)
        self.messages_cleared.observe(event.messages_cleared)

    def _clear_rolled_back(self, session_id: str, event: ClearRolledBackEvent) -> None:
        self.clears.add_one_of(labels.ROLLED_BACK, session_id, event.time)

    def _clear_refused(self, session_id: str, event: ClearRefusedEvent) -> None:
        self.clears.add_one_of(event.cause, session_id, event.time)

    def _handed_off(self, _: str, event: SessionHandoff) -> None:
        self.handoffs.add(event.action, event.trigger)

    def _permission_ended(self, _: str, event: PermissionCompleted) -> None:
        self.permissions.add(event.kind)

    def _question_ended(self, _: str, event: UserInputCompleted) -> None:
        self.questions.add(event.kind)

    def _call_paid(self, _: str, event: UsageCheckpoint) -> None:
        self.nano_credits += max(0, event.nano_aiu)

    def _credits_decided(self, _: str, event: SessionLimitsExhaustedCompleted) -> None:
        self.credit_requests.add(event.action if event.kind == ANSWERED else event.kind)

    def _switch_decided(self, _: str, event: AutoModeSwitchCompleted) -> None:
        self.model_switches.add(event.response if event.kind == ANSWERED else event.kind)

    def _actor_restarted(self, _: str, __: SessionRestarted) -> None:
        self.restarts.add(labels.CRASH)

    def _actor_failed(self, _: str, __: SessionFailed) -> None:
        self.failures.add(labels.CRASH)

    def _session_lost(self, _: str, event: SessionLost) -> None:
        self.failures.add(event.cause)

    def _dead_lettered(self, _: str, event: DeadLetter) -> None:
        self.dead_letters.add(event.cause)

    def _message_dropped(self, _: str, event: MessageDropped) -> None:
        self.dropped.add(event.cause)

    def _media_left(self, _: str, event: MediaRemoved) -> None:
        self.media_removed += event.removed

    def _result_stale(self, _: str, __: ToolResultStale) -> None:
        self.stale_results += 1
