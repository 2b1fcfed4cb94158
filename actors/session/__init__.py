"""Handles: how hosts and handlers use a session.

Read `session` (the handle), `putting` (how it reaches the actor), `history` (the context and its clear), `pending`
(what people are asked), `replies` (what calls return), `subscriptions` (streams of events), `statistics`, and
`remote` (a session whose actor lives elsewhere), `transport` (the way there), `frames` (how it crosses the process
boundary) and `answering` (the other side).
"""

from exeunt.actors.session.answering import answer_request
from exeunt.actors.session.history import ClearResult, History
from exeunt.actors.session.pending import PendingRequest
from exeunt.actors.session.remote import RemoteHistory, RemoteSession
from exeunt.actors.session.replies import AbortReceipt, Reply, ToolOutcome
from exeunt.actors.session.session import Session
from exeunt.actors.session.statistics import SessionStatistics
from exeunt.actors.session.subscriptions import EventStream, StreamLagged, StreamReset
from exeunt.actors.session.transport import FrameStream, RemoteEventStream, SessionTransport

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
    "answer_request",
]
