"""What providers report of the size of contexts, for the sessions that ask for it."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from exeunt.actors.events import (
    AssistantUsage,
    ContextCleared,
    Event,
    SessionCompacted,
    SessionFailed,
    SessionShutdown,
    SessionTruncated,
)
from exeunt.actors.session import Session

MOST_SESSIONS = 10_000
"""Sessions that are remembered; beyond it the one that asked first is forgotten, and its tokens are guessed until its
next request. Each takes about 0.5 KiB."""


class ReportedTokens:
    """The last report of each session: tokens of a request and its answer, which is in the next request."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, int] = OrderedDict()
        self._unsubscribe: dict[str, Callable[[], None]] = {}

    def of(self, session: Session) -> int:
        """Return the tokens of the session's context as last reported, 0 where nothing was since it was first asked."""
        session_id = session.session_id
        if session_id not in self._tokens:
            if len(self._tokens) >= MOST_SESSIONS:
                self._forget(next(iter(self._tokens)))
            self._tokens[session_id] = 0
            self._unsubscribe[session_id] = session.on(partial(self._take, session_id))
        return self._tokens[session_id]

    def _take(self, session_id: str, event: Event) -> None:
        if session_id not in self._tokens:
            return
        if isinstance(event, AssistantUsage):
            self._tokens[session_id] = event.input_tokens + event.output_tokens
        elif isinstance(event, ContextCleared | SessionTruncated | SessionCompacted):
            self._tokens[session_id] = 0
        elif isinstance(event, SessionShutdown | SessionFailed):
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        del self._tokens[session_id]
        self._unsubscribe.pop(session_id)()
