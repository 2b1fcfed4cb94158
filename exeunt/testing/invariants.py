"""The two standing promises, as checks that any test can switch on.

I1: a request to a model can be sent. `check_request` looks at one request.
I2: what was accepted ends exactly once, and idle means idle. `EventInvariants` looks at streams of events.
"""

from collections.abc import Sequence
from typing import Protocol

from exeunt.actors.errors import InvariantViolation
from exeunt.actors.events import Event
from exeunt.actors.models import Message
from exeunt.testing._stream import SessionStream

MAX_KEPT = 100
"""Violations kept with their text: the first explain a run, the rest of a broken load test is a number."""

_SHOWN = 200
"""Characters of the `repr` of a message's text in a dump: enough to know it by."""


class HasMessages(Protocol):
    """A request, live or recorded."""

    @property
    def messages(self) -> Sequence[Message]: ...


def check_request(request: HasMessages) -> None:
    """Raise `InvariantViolation` unless *request* is one that every provider takes.

    System and developer messages come first. Then a user message opens the conversation. Each tool call of an
    assistant message has an id of its own and is answered exactly once, before the next message that is no
    result, in call order; no result lacks its call. Every text can be encoded.
    """
    problems = _problems(request.messages)
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise InvariantViolation(
            f"A model would refuse this request:{listed}\n{describe_messages(request.messages)}"
        )


def describe_messages(messages: Sequence[Message]) -> str:
    """The messages, one a line: number, role, calls or the call answered, beginning of the text."""
    lines: list[str] = []
    for number, message in enumerate(messages):
        text = repr(message.content)
        if len(text) > _SHOWN:
            text = f"{text[:_SHOWN]}... ({len(message.content)} characters)"
        parts = [f"  [{number}] {message.role}"]
        if message.tool_call_id is not None:
            parts.append(f"result of {message.tool_call_id!r}:")
        if message.content or not message.tool_calls:
            parts.append(text)
        parts.extend(f"{call.name}({call.arguments_json})#{call.id}" for call in message.tool_calls)
        lines.append(" ".join(parts))
    return "\n".join(lines)


def _problems(messages: Sequence[Message]) -> list[str]:
    problems: list[str] = []
    waiting: list[str] = []
    """Calls of the last assistant message that have no result yet, in call order."""
    ids: set[str] = set()
    begun = False
    for number, message in enumerate(messages):
        role = message.role
        if not _encodable(message.content):
            problems.append(f"message {number}: its content is no text that UTF-8 can encode")
        if role == "tool":
            _settle(number, message.tool_call_id, waiting, ids, problems)
        elif waiting:
            problems.append(f"message {number}: calls {waiting} have no result before it")
            waiting.clear()
        if role in ("system", "developer"):
            if begun:
                problems.append(f"message {number}: {role} message inside the conversation")
            continue
        if not begun:
            begun = True
            if role != "user":
                problems.append(f"message {number}: the conversation begins with role {role!r}, not user")
        if role == "assistant":
            for call in message.tool_calls:
                if not call.id or call.id in ids:
                    problems.append(f"message {number}: call id {call.id!r} is empty or used before")
                ids.add(call.id)
                waiting.append(call.id)
        elif message.tool_calls:
            problems.append(f"message {number}: role {role!r} with tool calls")
    if waiting:
        problems.append(f"at the end: calls {waiting} have no result")
    if not begun:
        problems.append("the conversation is empty")
    return problems


def _settle(number: int, call_id: str | None, waiting: list[str], ids: set[str], problems: list[str]) -> None:
    if call_id is None or call_id not in waiting:
        why = "has one already, or comes too late" if call_id in ids else "does not exist"
        problems.append(f"message {number}: result of call {call_id!r}, which {why}")
        return
    if call_id != waiting[0]:
        problems.append(f"message {number}: not in call order: {call_id!r} before {waiting[0]!r}")
    waiting.remove(call_id)


def _encodable(text: object) -> bool:
    if not isinstance(text, str):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class EventInvariants:
    """An observer that checks what the events of any number of sessions promise. Call it with each event.

    Checked while events come:

    * persisted events have a `seq` without gaps;
    * turns and steps follow each other, never one inside another;
    * each accepted message ends exactly once: by `message.dropped`, or by the `turn.end` of the turn whose
      context got its `user.message`;
    * each `tool.execution_start` has one `tool.execution_complete`, before its step and its turn end;
    * each request of a call (approval, question) has one end, before the outcome of its call;
    * each `assistant.turn_start` has its `assistant.turn_end` before its turn ends;
    * a context is cleared only right after a tool call that succeeded, with nothing in flight, and its seed
      is the first message of the turn that follows before the session is idle;
    * `session.idle` comes once after the last end and never while something is open.

    Checked by `verify()`: nothing is open, and the idle that was due has come.

    Keeps the ids of all messages and turns of a session: meant for tests, not for a service. A session that
    is first seen in the middle of its log is not blamed for what came before.
    """

    def __init__(self) -> None:
        self.events = 0
        """Events seen."""
        self.violations: list[str] = []
        """The first violations, at most `MAX_KEPT`, oldest first."""
        self.violation_count = 0
        """All violations."""
        self._streams: dict[str, SessionStream] = {}

    def __call__(self, session_id: str, event: Event) -> None:
        """Take *event* of *session_id*. Never raises on a violation: it is kept for `verify()`."""
        self.events += 1
        stream = self._streams.get(session_id)
        if stream is None or (event.seq == 1 and event.type == "session.start"):
            # The same id again is another session: the first one was deleted.
            stream = self._streams[session_id] = SessionStream()
        for problem in stream.take(event):
            self._violated(f"session {session_id!r}: {problem}\n{stream.describe_recent()}")

    def observe(self, session_id: str, events: Sequence[Event], /) -> None:
        """Look at the events of one handler run: `host.observe(invariants.observe)`."""
        for event in events:
            self(session_id, event)

    def forget(self, session_id: str) -> None:
        """Begin anew with this session: after its deletion, or a crash that lost what was not durable."""
        self._streams.pop(session_id, None)

    def verify(self, *, settled: bool = True) -> None:
        """Raise `InvariantViolation` with every violation kept.

        With *settled*, the default, a message without end, an open step or call, and an idle that never came
        are violations too. Give `settled=False` where the test stops in the middle of a turn.
        """
        found = list(self.violations)
        if self.violation_count > len(found):
            found.append(f"... and {self.violation_count - len(found)} more")
        if settled:
            for session_id, stream in self._streams.items():
                unsettled = stream.unsettled()
                if unsettled:
                    listed = "; ".join(unsettled)
                    found.append(f"session {session_id!r} at the end: {listed}\n{stream.describe_recent()}")
        if found:
            raise InvariantViolation("\n".join(found))

    def _violated(self, text: str) -> None:
        self.violation_count += 1
        if len(self.violations) < MAX_KEPT:
            self.violations.append(text)
