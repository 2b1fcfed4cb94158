"""Whatever happens, in whatever slices it is told: the counters add up with the events."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.events import (
    AssistantMessage,
    AssistantUsage,
    AutoModeSwitchCompleted,
    ClearRefusedEvent,
    ClearRolledBackEvent,
    ContextCleared,
    DeadLetter,
    Event,
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
from exeunt.actors.models import ModelErrorKind
from exeunt.actors.outcomes import Outcome
from exeunt.actors.prices import NANO
from exeunt.actors.turn_requests import LIMIT_ACTIONS, SWITCH_RESPONSES
from exeunt.metrics import Metrics, labels
from tests.metrics import event_makers as make

TOOLS = ["search", "submit"]

# Sixteenths of a second: sums of them are exact, in any order.
seconds = st.integers(0, 100_000).map(lambda sixteenths: sixteenths / 16)
providers = st.sampled_from(["openai", "local"])
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(make.turn_end, st.sampled_from(labels.TURN_REASONS), seconds),
    st.builds(
        make.tool_complete,
        st.sampled_from([*TOOLS, "made_up"]),
        st.sampled_from(list(Outcome)),
        seconds,
        terminal=st.booleans(),
    ),
    st.builds(make.usage, providers, st.integers(0, 1_000), st.integers(0, 1_000), seconds),
    st.builds(make.model_failure, providers, st.sampled_from(list(ModelErrorKind)), seconds),
    st.builds(make.cleared, st.integers(0, 10_000), trigger=st.sampled_from(["", "tool", "phase:build"])),
    st.builds(make.handoff, st.sampled_from(labels.HANDOFFS[0]), st.sampled_from(labels.HANDOFFS[1])),
    st.builds(make.permission_ended, st.sampled_from(labels.PERMISSION_ENDS)),
    st.builds(make.question_ended, st.sampled_from(labels.USER_INPUT_ENDS)),
    # Whole credits, whose sums are exact.
    st.builds(make.paid, st.integers(0, 1_000).map(lambda count: count * NANO)),
    st.builds(make.credits_decided, st.just("answered"), st.sampled_from(LIMIT_ACTIONS)),
    st.builds(make.credits_decided, st.sampled_from(labels.UNANSWERED)),
    st.builds(make.switch_decided, st.just("answered"), st.sampled_from(SWITCH_RESPONSES)),
    st.builds(make.switch_decided, st.sampled_from(labels.UNANSWERED)),
    st.builds(make.clear_refused, st.sampled_from(["no_tool_call", "empty_prompt", "remote", "loop"])),
    st.builds(make.clear_rolled_back),
    st.builds(make.dead_letter, st.sampled_from(labels.DEAD_LETTER_REASONS)),
    st.builds(make.dropped, st.sampled_from(labels.DROP_CAUSES)),
    st.builds(make.restarted),
    st.builds(make.failed),
    st.builds(make.lost, st.sampled_from(["taken_over", "journal"])),
    st.builds(make.stale),
    st.just(AssistantMessage(make.ORIGIN, 1, make.TIME, "hi", "t1", "a1")),
)


def expected(happened: list[Event]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Counts and sums by sample, worked out in the plainest way."""
    numbers: defaultdict[tuple[str, frozenset[tuple[str, str]]], float] = defaultdict(float)

    def count(name: str, amount: float = 1, /, **labels: str) -> None:
        numbers[name, frozenset(labels.items())] += amount

    def duration(name: str, value: float, /, **labels: str) -> None:
        count(f"exeunt_{name}_count", 1, **labels)
        count(f"exeunt_{name}_sum", value, **labels)

    for event in happened:
        match event:
            case TurnEnd():
                count("exeunt_turn_terminations_total", reason=event.reason)
                duration("turn_duration_seconds", event.duration, reason=event.reason)
            case ToolExecutionComplete():
                tool = event.tool_name if event.tool_name in TOOLS else "other"
                terminal = "true" if event.terminal else "false"
                count("exeunt_tool_calls_total", tool=tool, outcome=str(event.outcome), terminal=terminal)
                duration("tool_duration_seconds", event.duration, outcome=str(event.outcome))
            case AssistantUsage():
                duration("model_call_duration_seconds", event.duration, provider=event.provider, status="ok")
                count("exeunt_tokens_total", event.input_tokens, direction="input")
                count("exeunt_tokens_total", event.output_tokens, direction="output")
            case ModelCallFailure():
                status = str(event.error_type)
                duration(
                    "model_call_duration_seconds", event.duration, provider=event.provider, status=status
                )
            case ContextCleared():
                count("exeunt_context_clears_total", outcome="committed")
                duration("context_messages_cleared", event.messages_cleared)
                trigger = event.trigger.split(":")[0] or "unnamed"
                count("exeunt_context_clear_triggers_total", trigger=trigger)
            case SessionHandoff():
                count("exeunt_handoffs_total", action=event.action, trigger=event.trigger)
            case PermissionCompleted():
                count("exeunt_permission_requests_total", end=event.kind)
            case UserInputCompleted():
                count("exeunt_user_input_requests_total", end=event.kind)
            case UsageCheckpoint():
                count("exeunt_credits_total", event.nano_aiu / NANO)
            case SessionLimitsExhaustedCompleted():
                end = event.action if event.kind == "answered" else event.kind
                count("exeunt_credit_requests_total", end=end)
            case AutoModeSwitchCompleted():
                end = event.response if event.kind == "answered" else event.kind
                count("exeunt_model_switch_requests_total", end=end)
            case ClearRefusedEvent():
                count("exeunt_context_clears_total", outcome=event.cause)
            case ClearRolledBackEvent():
                count("exeunt_context_clears_total", outcome="rolled_back")
            case DeadLetter():
                count("exeunt_dead_letters_total", reason=event.cause)
            case MessageDropped():
                count("exeunt_messages_dropped_total", cause=event.cause)
            case SessionRestarted():
                count("exeunt_actor_restarts_total", reason="crash")
            case SessionFailed():
                count("exeunt_actor_failures_total", reason="crash")
            case SessionLost():
                count("exeunt_actor_failures_total", reason=event.cause)
            case ToolResultStale():
                count("exeunt_stale_results_total")
            case _:
                pass
    return {key: value for key, value in numbers.items() if value}


@given(st.lists(st.tuples(st.sampled_from(["s1", "s2"]), st.lists(events, max_size=6)), max_size=12))
def test_the_counters_add_up_with_the_events(runs: list[tuple[str, list[Event]]]) -> None:
    metrics = Metrics(strict=True)
    metrics.register_tools(TOOLS)
    for session_id, happened in runs:
        metrics.observe(session_id, happened)
    counted = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.value and not sample.name.endswith("_bucket")
    }
    assert counted == expected([event for _, happened in runs for event in happened])


@given(st.lists(seconds, max_size=30))
def test_buckets_are_cumulative_and_end_with_the_count(durations: list[float]) -> None:
    metrics = Metrics(strict=True)
    metrics.observe("s1", [make.turn_end("completed", duration) for duration in durations])
    buckets = {
        float(sample.labels["le"]): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "exeunt_turn_duration_seconds_bucket" and sample.labels["reason"] == "completed"
    }
    assert buckets == {bound: sum(value <= bound for value in durations) for bound in buckets}
    assert list(buckets)[-1] == float("inf")
