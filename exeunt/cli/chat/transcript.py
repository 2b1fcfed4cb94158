"""From the events of a session to what a person reads. Knows no terminal and no clock."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs

from exeunt.actors import events
from exeunt.actors.session import StreamLagged

Piece = tuple[str, str]
"""A style and a text: `answer`, `thought`, `note` or `error`. A note or an error is a line of its own."""

MOST_ARGUMENTS = 60
"""Characters of a call's arguments in its line."""
MOST_OF_ERROR = 300
"""Characters of what a model's server says went wrong: some send a page."""

# Escape sequences of a terminal are a way to lie to the person in front of it. Tabs and line breaks are text.
_UNPRINTABLE = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Return *text* without control characters."""
    return text.translate(_UNPRINTABLE)


def one_line(text: str, longest: int) -> str:
    """Return the beginning of *text* on one line of at most *longest* characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= longest else f"{line[: max(0, longest - 3)]}..."


@attrs.define
class Transcript:
    """What was shown of the answer that is under way."""

    live: bool
    """Whether answers are shown as they come. Else only whole ones are, and never a piece of one that broke off."""
    failed: bool = False
    """Whether a turn since the beginning got no answer."""
    _steering: dict[str, str] = attrs.Factory(dict[str, str])
    """What was typed during the answer and is not taken in yet, by message; the mailbox bounds it."""
    _message_id: str = ""
    _shown: str = ""
    _open_line: bool = False
    """Whether the last line has no end yet."""

    def take(self, event: events.Event) -> Iterator[Piece]:
        """Return what is to be shown of *event*, in order."""
        shows = self.SHOWS.get(type(event))
        if shows is not None:
            yield from shows(self, event)

    def _answer(self, message_id: str, text: str) -> Iterator[Piece]:
        if message_id != self._message_id:
            if self._shown:
                yield from self.note("the answer broke off; this is another")
            self._message_id, self._shown = message_id, ""
        if text:
            self._shown += text
            self._open_line = not text.endswith("\n")
            yield "answer", printable(text)

    def note(self, text: str, style: str = "note") -> Iterator[Piece]:
        """Return *text* as a line of its own."""
        if self._open_line:
            self._open_line = False
            yield "answer", "\n"
        yield style, f"{printable(text)}\n"

    def _delta(self, event: events.AssistantMessageDelta) -> Iterator[Piece]:
        if self.live:
            yield from self._answer(event.message_id, event.delta_content)

    def _thought(self, event: events.AssistantReasoningDelta) -> Iterator[Piece]:
        if self.live:
            self._open_line = True
            yield "thought", printable(event.delta_content)

    def _message(self, event: events.AssistantMessage) -> Iterator[Piece]:
        whole = event.content
        if self._shown and not (event.message_id == self._message_id and whole.startswith(self._shown)):
            # Pieces were missed.
            self._message_id, self._shown = event.message_id, ""
            yield from self.note("the answer in full:")
        self._message_id = event.message_id
        yield from self._answer(event.message_id, whole[len(self._shown) :])
        yield from self._end_of_answer()

    def _end_of_answer(self) -> Iterator[Piece]:
        self._message_id, self._shown = "", ""
        if self._open_line:
            self._open_line = False
            yield "answer", "\n"

    def _accepted(self, event: events.MessageAccepted) -> Iterator[Piece]:
        if event.mode == "immediate":
            self._steering[event.message_id] = event.prompt
        yield from ()

    def _entered(self, event: events.UserMessage) -> Iterator[Piece]:
        self._steering.pop(event.message_id or "", None)
        yield from ()

    def _dropped(self, event: events.MessageDropped) -> Iterator[Piece]:
        prompt = self._steering.pop(event.message_id, None)
        if prompt is not None:
            yield from self.note(f"not taken in, {event.cause}: {one_line(prompt, MOST_ARGUMENTS)}")

    def _call(self, event: events.ToolExecutionStart) -> Iterator[Piece]:
        yield from self.note(f"{event.tool_name} {one_line(event.arguments_json, MOST_ARGUMENTS)}")

    def _result(self, event: events.ToolExecutionComplete) -> Iterator[Piece]:
        yield from self.note(f"{event.tool_name}: {event.outcome}: {one_line(event.content, MOST_ARGUMENTS)}")

    def _cleared(self, event: events.ContextCleared) -> Iterator[Piece]:
        yield from self.note(f"a new context; {event.messages_cleared} messages left the old one")

    def _retry(self, event: events.AssistantTurnRetry) -> Iterator[Piece]:
        yield from self.note(f"{one_line(event.reason, MOST_ARGUMENTS)}; trying again in {event.delay:.1f} s")

    def _error(self, event: events.SessionError) -> Iterator[Piece]:
        self.failed = True
        yield from self.note(
            f"no answer ({event.error_type}): {one_line(event.message, MOST_OF_ERROR)}", "error"
        )

    def _turn_end(self, event: events.TurnEnd) -> Iterator[Piece]:
        yield from self._end_of_answer()
        if event.reason in ("aborted", "interrupted", "limit"):
            self.failed = True
            yield from self.note({"limit": "the turn's limit is reached"}.get(event.reason, event.reason))

    def _lagged(self, event: StreamLagged) -> Iterator[Piece]:
        yield from self.note(f"{event.missed} events were not shown: the terminal was too slow")

    SHOWS: ClassVar[dict[type[events.Event], Callable[["Transcript", Any], Iterator[Piece]]]] = {
        events.AssistantMessageDelta: _delta,
        events.AssistantReasoningDelta: _thought,
        events.AssistantMessage: _message,
        events.MessageAccepted: _accepted,
        events.UserMessage: _entered,
        events.MessageDropped: _dropped,
        events.ToolExecutionStart: _call,
        events.ToolExecutionComplete: _result,
        events.ContextCleared: _cleared,
        events.AssistantTurnRetry: _retry,
        events.SessionError: _error,
        events.TurnEnd: _turn_end,
        StreamLagged: _lagged,
    }
