"""The label values that there are.

Prometheus keeps each series that it ever saw, so a label may take only values from a set that is known here.
Session, tenant and user ids are never labels.
"""

from typing import Final

from exeunt.actors.errors import (
    ClearAlreadyStaged,
    ClearLoop,
    EmptySeedPrompt,
    NoToolCallInFlight,
    RemoteSessionError,
)
from exeunt.actors.models import ModelErrorKind
from exeunt.actors.outcomes import HANDOFF_ACTIONS, HANDOFF_TRIGGERS, Outcome, TurnEndReason
from exeunt.actors.turn_requests import LIMIT_ACTIONS, SWITCH_RESPONSES

OTHER: Final = "other"
"""Stands for every value outside a set, and for every name beyond a cap."""

COMMITTED: Final = "committed"
ROLLED_BACK: Final = "rolled_back"
CLEAR_OUTCOMES: Final = (
    COMMITTED,
    ROLLED_BACK,
    *(
        refusal.cause
        for refusal in (
            NoToolCallInFlight,
            EmptySeedPrompt,
            RemoteSessionError,
            ClearAlreadyStaged,
            ClearLoop,
        )
    ),
)

UNNAMED: Final = "unnamed"
CLEAR_TRIGGERS: Final = (
    UNNAMED,
    "tool",
    "phase",
    *(f"handoff_{trigger}" for trigger in HANDOFF_TRIGGERS if trigger != "tool"),
)
"""Of a trigger such as `phase:build` the part before the colon counts: names of phases are not known here."""

PERMISSION_ENDS: Final = (
    "approved", "approved-for-session", "rejected", "unavailable", "timeout", "cancelled"
)  # fmt: skip

USER_INPUT_ENDS: Final = ("answered", "unavailable", "timeout", "cancelled")

UNANSWERED: Final = ("unavailable", "timeout", "cancelled")

CREDIT_ENDS: Final = (*LIMIT_ACTIONS, *UNANSWERED)

SWITCH_ENDS: Final = (*SWITCH_RESPONSES, *UNANSWERED)

TURN_REASONS: Final = tuple(reason.value for reason in TurnEndReason)

TOOL_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)

HANDOFFS: Final = (HANDOFF_ACTIONS, HANDOFF_TRIGGERS)

MODEL_OK: Final = "ok"
MODEL_STATUSES: Final = (MODEL_OK, *(kind.value for kind in ModelErrorKind))

DIRECTIONS: Final = ("input", "output")

CRASH: Final = "crash"
CRASH_REASONS: Final = (CRASH,)
"""An actor is restarted for one reason only so far."""

FAILURE_REASONS: Final = (CRASH, "taken_over", "journal")
"""Why a session is not in memory any more that nobody has ended."""

DEAD_LETTER_REASONS: Final = ("crash", "session_failed", "closed")

DROP_CAUSES: Final = ("aborted", "withdrawn", "blocked", "dead_letter", "session_failed", "deleted")

SESSION_STATES: Final = ("live", "passive", "restarting", "stopping", "failed")

ADMISSION_DECISIONS: Final = ("granted", "queued", "refused")

DEFAULT_TOOL_NAME_CAP: Final = 200
"""Each tool makes at most 18 series, so 3,600 in all: well below the 10,000 that take 0.1 s to expose."""

PROVIDER_CAP: Final = 16
"""Each provider makes at most 17 x 14 series. More model services in one process are no known need."""
