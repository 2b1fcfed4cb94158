"""What happens in a generated test of whole sessions, as plain values that shrink well.

A `Program` says how a host and its sessions are made, what their models answer, and what people and handlers do
to them and when. Nothing here runs anything: `tests.properties.stage` plays it.

Sessions are named by an offset from the session whose handler acts; for a person it is the number of the session.
"""

from typing import Literal

import attrs
from hypothesis import strategies as st

# --- What people and handlers do -------------------------------------------------------------------------------

Mode = Literal["enqueue", "immediate"]
Siblings = Literal["wait", "cancel"]


@attrs.frozen
class Sleep:
    """Let time pass."""

    seconds: float = 0.0
    how: Literal["plain", "shielded", "swallowed"] = "plain"
    """`shielded` does not hear a cancellation, `swallowed` hears it and goes on."""


@attrs.frozen
class Send:
    """Send a message."""

    to: int = 0
    mode: Mode = "enqueue"


@attrs.frozen
class Ask:
    """Send a message and wait for the reply."""

    to: int = 0
    timeout: float | None = None
    mode: Mode = "enqueue"


@attrs.frozen
class Clear:
    """Clear the context."""

    to: int = 0
    siblings: Siblings | None = None
    blank: bool = False
    settled_after: float | None = None
    """Wait for the commit, after these seconds."""


@attrs.frozen
class Abort:
    """Abort the turn."""

    to: int = 0
    queued: Literal["drop", "keep"] = "drop"


@attrs.frozen
class Leave:
    """Disconnect."""

    to: int = 0


@attrs.frozen
class TakeUp:
    """Resume a session, or attach to one."""

    to: int = 0
    goes_on: bool = True


@attrs.frozen
class Crash:
    """Make the actor crash while it handles an entry, and again when it tries that entry again."""

    to: int = 0
    times: int = 1


@attrs.frozen
class Work:
    """One call of a tool: what its handler does, and how it ends."""

    tool: Literal["work", "asks", "ends", "alone", "ends_alone", "unknown"] = "work"
    """`asks` needs approval, `ends*` is terminal, `*alone` is sequential, `unknown` does not exist."""
    steps: "tuple[Step, ...]" = ()
    ending: Literal["returns", "raises", "fails", "rejects", "invalid"] = "returns"
    """`invalid` has arguments that the tool does not take: its handler does not run."""


@attrs.frozen
class RunTool:
    """Run a tool by the host's own will."""

    to: int = 0
    work: Work = Work()


Step = Sleep | Send | Ask | Clear | Abort | Leave | TakeUp | Crash | RunTool

# --- What models and the host's callbacks answer ---------------------------------------------------------------


@attrs.frozen
class Answer:
    """A text, or a batch of calls, of a model; or why there is none."""

    works: tuple[Work, ...] = ()
    fault: Literal["", "retryable", "final", "hang", "cut", "stall", "foreign"] = ""
    delay: float = 0.0
    steps: tuple[Step, ...] = ()
    """What happens elsewhere while the model thinks."""


@attrs.frozen
class Callback:
    """A hook or a permission handler: what it does, and what it returns."""

    steps: tuple[Step, ...] = ()
    answer: str = ""
    """See `stage.HOOK_OUTPUTS` and `stage.APPROVALS`; `raise` raises."""


@attrs.frozen
class SessionPlan:
    """How a session is made."""

    answers: tuple[Answer, ...] = ()
    """Then the model says a word and asks for nothing."""
    hooks: tuple[tuple[str, Callback], ...] = ()
    permission: Callback | None = None
    streaming: bool = False
    siblings: Siblings = "wait"
    tenant: str = ""
    steps: int = 6
    failed_batches: int = 2
    mailbox: int = 4
    clears_in_a_row: int = 2


@attrs.frozen
class Command:
    """Something that a person does, some time after the command before."""

    step: Step
    gap: float = 0.0
    patience: float | None = None
    """Seconds until the person gives up and cancels."""


@attrs.frozen
class Program:
    """A whole test."""

    sessions: tuple[SessionPlan, ...] = (SessionPlan(),)
    commands: tuple[Command, ...] = ()
    running_turns: int = 10
    waiting_turns: int = 10
    tool_slots: int = 10
    restarts: int = 3
    lost_writes: tuple[int, ...] = ()
    """Which of the journal's writes fail."""


# --- Strategies ------------------------------------------------------------------------------------------------

# Around every bound of `stage`: shorter, a little longer, much longer.
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, 9.0])
TARGETS = st.sampled_from([0, 0, 0, 1, 2])
MODES: st.SearchStrategy[Mode] = st.sampled_from(["enqueue", "immediate"])
SIBLINGS: st.SearchStrategy[Siblings | None] = st.sampled_from([None, "wait", "cancel"])

_sends = st.builds(Send, TARGETS, MODES)
_asks = st.builds(Ask, TARGETS, st.none() | SECONDS, MODES)
_clears = st.builds(
    Clear, TARGETS, SIBLINGS, st.sampled_from([False] * 7 + [True]), st.none() | st.sampled_from([0.0, 2.0])
)
_aborts = st.builds(Abort, TARGETS, st.sampled_from(["drop", "keep"]))
_leaves = st.builds(Leave, TARGETS)
_take_ups = st.builds(TakeUp, TARGETS, st.booleans())
_crashes = st.builds(Crash, TARGETS, st.sampled_from([1, 1, 1, 2, 9]))
_sleeps = st.builds(Sleep, SECONDS, st.sampled_from(["plain", "plain", "shielded", "swallowed"]))

_tools = st.sampled_from(["work", "ends", "asks", "alone", "ends_alone", "unknown"])
_endings = st.sampled_from(["returns", "returns", "returns", "raises", "fails", "rejects", "invalid"])
_errands = st.builds(RunTool, TARGETS, st.builds(Work, _tools, st.just(()), _endings))

# Clears come up twice: they are what this project is about.
STEPS = st.one_of(
    _sleeps, _clears, _sends, _asks, _clears, _aborts, _crashes, _errands, _leaves, _take_ups
)
SOME_STEPS = st.lists(STEPS, max_size=3).map(tuple)
WORKS = st.builds(Work, _tools, SOME_STEPS, _endings)

ANSWERS = st.builds(
    Answer,
    st.lists(WORKS, max_size=4).map(tuple),
    st.sampled_from([""] * 8 + ["retryable", "final", "hang", "cut", "stall", "foreign"]),
    SECONDS,
    st.lists(STEPS, max_size=1).map(tuple),
)

HOOK_NAMES = (
    "on_session_start",
    "on_user_prompt_submitted",
    "on_pre_tool_use",
    "on_post_tool_use",
    "on_post_tool_use_failure",
    "on_session_end",
    "on_error_occurred",
)
_outputs = st.sampled_from(["", "context", "deny", "ask", "allow", "change", "block", "raise", "nonsense"])
_hooks = st.tuples(st.sampled_from(HOOK_NAMES), st.builds(Callback, st.lists(STEPS, max_size=2).map(tuple), _outputs))
_approvals = st.sampled_from(["once", "session", "reject", "nobody", "raise", "nonsense"])

SESSIONS = st.builds(
    SessionPlan,
    st.lists(ANSWERS, max_size=5).map(tuple),
    st.just(()) | st.lists(_hooks, max_size=2, unique_by=lambda hook: hook[0]).map(tuple),
    st.none() | st.builds(Callback, SOME_STEPS, _approvals),
    st.booleans(),
    st.sampled_from(["wait", "cancel"]),
    st.sampled_from(["", "a"]),
    st.sampled_from([6, 1, 2]),
    st.sampled_from([2, 1]),
    st.sampled_from([4, 1, 2]),
    st.sampled_from([2, 0, 1]),
)

COMMANDS = st.builds(
    Command,
    st.one_of(_sends, _asks, STEPS, st.builds(RunTool, TARGETS, WORKS)),
    SECONDS,
    st.none() | SECONDS,
)

PROGRAMS = st.builds(
    Program,
    st.lists(SESSIONS, min_size=1, max_size=3).map(tuple),
    st.lists(COMMANDS, min_size=1, max_size=8).map(tuple),
    st.sampled_from([10, 1, 2]),
    st.sampled_from([10, 0, 1]),
    st.sampled_from([10, 1, 2]),
    st.sampled_from([3, 0, 1]),
    st.just(()) | st.lists(st.integers(1, 60), max_size=3, unique=True).map(tuple),
)
