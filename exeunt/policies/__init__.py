"""Policies: what a host makes of a session's public API for long work. Small, and to be combined.

Read `seeds` (what a new context begins with), `clear_tool` (the model clears its context), `marks` (how large a context
may grow), `handoff` (a context that grows past its mark hands off), `phases` (named phases, each a context of its own),
`other_session` (work goes to another session). `options` puts their tools and hooks beside those of the host.
"""

from exeunt.policies.clear_tool import clear_context_tool
from exeunt.policies.handoff import HandoffPolicy
from exeunt.policies.marks import Mark, messages, share, tokens
from exeunt.policies.other_session import HandoffRefused, handoff_tool
from exeunt.policies.phases import Phase, PhasePolicy
from exeunt.policies.summaries import Summarizer, SummaryFailed, summary_by

__all__ = [
    "HandoffPolicy",
    "HandoffRefused",
    "Mark",
    "Phase",
    "PhasePolicy",
    "Summarizer",
    "SummaryFailed",
    "clear_context_tool",
    "handoff_tool",
    "messages",
    "share",
    "summary_by",
    "tokens",
]
