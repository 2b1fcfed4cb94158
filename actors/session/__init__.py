"""Handles: how hosts and handlers use a session.

Read `session` (the handle), `putting` (how it reaches the actor), `history` (the context and its clear), `pending`
(what people are asked), `replies` (what calls return), `subscriptions` (streams of events), `statistics`, and
`remote` (a session whose actor lives elsewhere) with `frames` (how it crosses the process boundary).
"""

from exeunt.actors.session.history import ClearResult, History
from exeunt.actors.session.pending import PendingRequest
from exeunt.actors.session.remote import (
    FrameStream,
    RemoteEventStream,
    RemoteHistory,
    RemoteSession,
    SessionTransport,
)
from exeunt.actors.session.replies import AbortReceipt, Reply, ToolOutcome
from exeunt.actors.session.session import Session
from exeunt.actors.session.statistics import SessionStatistics
from exeunt.actors.session.subscriptions import EventStream, StreamLagged, StreamReset

__all__ = [
    "AbortReceipt",
    "ClearResult",
    "EventStream",
    "FrameStream",
    "History",
    "PendingRequest",
    "RemoteEventStream",
    "RemoteHistory",
    "RemoteSession",
    "Reply",
    "Session",
    "SessionStatistics",
    "SessionTransport",
    "StreamLagged",
    "StreamReset",
    "ToolOutcome",
]
