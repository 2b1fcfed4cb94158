"""What happens in a generated test of whole sessions, as plain values that shrink well.

A `Program` says how a host and its sessions are made, what their models answer, and what people and handlers do
to them and when. Nothing here runs anything: `tests.properties.stage` plays it.

Sessions are named by an offset from the session whose handler acts; for a person it is the number of the session.
"""

from typing import Literal, TypeVar

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

    tool: Literal["work", "asks", "ends", "alone", "ends_alone", "again", "unknown"] = "work"
    """`asks` needs approval, `ends*` is terminal, `*alone` is sequential, `again` is idempotent, `unknown` does not
    exist."""
    steps: "tuple[Step, ...]" = ()
    ending: Literal["returns", "raises", "fails", "rejects", "invalid"] = "returns"
    """`invalid` has arguments that the tool does not take: its handler does not run."""


@attrs.frozen
class RunTool:
    """Run a tool by the host's own will."""

    to: int = 0
    work: Work = Work()


@attrs.frozen
class Question:
    """Ask the user something, in the name of the tool call that does it."""

    to: int = 0
    timeout: float | None = None
    text: str = "which?"


@attrs.frozen
class Settle:
    """Answer one of the open requests."""

    to: int = 0
    place: int = 0
    answer: Literal["once", "session", "reject", "a text", "nonsense"] = "once"
    twice: bool = False


Step = Sleep | Send | Ask | Clear | Abort | Leave | TakeUp | Crash | RunTool | Question | Settle

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

T = TypeVar("T")


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """Choose a strategy as often as its number says; shrink towards the first."""
    table = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.integers(0, len(table) - 1).flatmap(lambda place: table[place])


def tuples(strategy: st.SearchStrategy[T], least: int, most: int) -> st.SearchStrategy[tuple[T, ...]]:
    """As `lists`, hashable."""
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


# Around every bound of `cast`: shorter, a little longer, much longer. Often none, so that things meet.
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 0.0, 2.0, 0.5, 5.0, 9.0])
OWN = st.sampled_from([0, 0, 0, 0, 1, 2])
ANY = st.sampled_from([0, 0, 1, 2])
MODES: st.SearchStrategy[Mode] = st.sampled_from(["enqueue", "immediate"])
SIBLINGS: st.SearchStrategy[Siblings | None] = st.sampled_from([None, None, "wait", "cancel"])

TOOLS = st.sampled_from(["work", "work", "ends", "asks", "alone", "ends_alone", "unknown", "again"])
ENDINGS = st.sampled_from(["returns"] * 7 + ["raises", "fails", "rejects", "invalid"])


SETTLED = st.sampled_from(["once", "a text", "reject", "session", "nonsense"])


def steps_of(whom: st.SearchStrategy[int]) -> st.SearchStrategy[Step]:
    """What one may do to *whom*."""
    return weighted(
        (4, st.builds(Sleep, SECONDS, st.sampled_from(["plain", "plain", "plain", "shielded", "swallowed"]))),
        (5, st.builds(Clear, whom, SIBLINGS, st.sampled_from([False] * 9 + [True]), st.none() | SECONDS)),
        (3, st.builds(Send, whom, MODES)),
        (2, st.builds(Ask, whom, st.none() | SECONDS, MODES)),
        (2, st.builds(Abort, whom, st.sampled_from(["drop", "keep"]))),
        (1, st.builds(RunTool, whom, st.builds(Work, TOOLS, st.just(()), ENDINGS))),
        (1, st.builds(Crash, whom, st.sampled_from([1, 1, 1, 2, 9]))),
        (1, st.builds(Leave, whom)),
        (1, st.builds(TakeUp, whom, st.booleans())),
        (2, st.builds(Question, whom, st.none() | SECONDS, st.sampled_from(["which?", "why?"]))),
        (2, st.builds(Settle, whom, st.integers(0, 2), SETTLED, st.sampled_from([False, False, True]))),
    )


STEPS = steps_of(OWN)
WORKS = weighted(
    (2, st.builds(Work, TOOLS, tuples(STEPS, 0, 3), ENDINGS)),
    (1, st.builds(Work, TOOLS, st.builds(Clear, st.just(0), SIBLINGS).map(lambda clear: (clear,)), ENDINGS)),
)
ANSWERS = weighted(
    (5, st.builds(Answer, tuples(WORKS, 1, 4), delay=SECONDS)),
    (1, st.builds(Answer, delay=SECONDS, steps=tuples(STEPS, 0, 1))),
    (1, st.builds(Answer, fault=st.sampled_from(["retryable", "final", "hang", "cut", "stall", "foreign"]))),
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
OUTPUTS = st.sampled_from(["", "context", "deny", "ask", "allow", "change", "block", "raise", "nonsense"])
HOOKS = st.tuples(st.sampled_from(HOOK_NAMES), st.builds(Callback, tuples(STEPS, 0, 1), OUTPUTS))
APPROVALS = st.builds(
    Callback,
    tuples(STEPS, 0, 2),
    st.sampled_from(["once", "session", "reject", "nobody", "raise", "nonsense", "open"]),
)

SESSIONS = st.builds(
    SessionPlan,
    tuples(ANSWERS, 1, 6),
    weighted((1, st.just(())), (1, tuples(HOOKS, 1, 3))),
    st.none() | APPROVALS,
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
    weighted(
        (2, st.builds(Send, ANY, MODES)),
        (1, st.builds(Ask, ANY, st.none() | SECONDS, MODES)),
        (1, st.builds(RunTool, ANY, WORKS)),
        (4, steps_of(ANY)),
    ),
    SECONDS,
    weighted((4, st.none()), (1, SECONDS)),
)


def _after_a_message(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    return (Command(Send()), *commands)


PROGRAMS = st.builds(
    Program,
    weighted((2, tuples(SESSIONS, 1, 1)), (1, tuples(SESSIONS, 2, 3))),
    tuples(COMMANDS, 0, 10).map(_after_a_message),
    st.sampled_from([10, 1, 2]),
    st.sampled_from([10, 10, 0, 1]),
    st.sampled_from([10, 1, 2]),
    st.sampled_from([3, 0, 1]),
    weighted((3, st.just(())), (1, st.lists(st.integers(1, 60), max_size=3, unique=True).map(tuple))),
)
