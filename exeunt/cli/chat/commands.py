"""What a line that begins with a slash shows. What it does is in `conversation`."""

from collections.abc import Sequence

from exeunt import Message, Session
from exeunt.actors.events import Event
from exeunt.cli.chat.transcript import one_line

HELP = """\
/clear PROMPT   start a new context with PROMPT as its first message
/abort          end the answer that is under way; Ctrl-C does the same
/context        show what the model sees
/events [N]     show the last N events of the session's log (10)
/help           show this list
/quit           leave; so do Ctrl-D, and Ctrl-C twice
A line that is typed during an answer steers it. To send a line that begins with
a slash, put a space before it."""

USUAL_EVENTS = 10
_HIDDEN = frozenset({"turn_id", "message_id", "tool_call_id", "session_id", "request_id"})


async def events_text(session: Session, argument: str, width: int) -> str:
    """Return the last events, one a line. *argument* is what stands behind `/events`."""
    if argument and not (argument.isdecimal() and int(argument)):
        return f"/events takes a number of events, not {one_line(argument, 20)!r}"
    number = int(argument or USUAL_EVENTS)
    found = await session.get_events(max(1, session.statistics().events - number + 1))
    return "\n".join(event_line(event, width) for event in found)


def context_text(messages: Sequence[Message], width: int) -> str:
    """Return the messages of a context, one a line."""
    if not messages:
        return "the context is empty"
    return "\n".join(_message_line(message, width) for message in messages)


def event_line(event: Event, width: int) -> str:
    """Return an event on one line."""
    clock = event.timestamp.astimezone().strftime("%H:%M:%S")
    fields = (
        f"{name}={_shown(value)}"
        for name, value in event.payload().items()
        if name not in _HIDDEN and value not in (None, "", (), False)
    )
    return one_line(f"{event.seq} {clock} {event.type}  {' '.join(fields)}", width)


def _message_line(message: Message, width: int) -> str:
    calls = "".join(f" {call.name}({call.arguments_json})" for call in message.tool_calls)
    shown = "".join(f" [{media}]" for media in message.media)
    text = one_line(f"{message.content}{shown}{calls}", max(10, width - 11))
    return f"{message.role:9}  {text}"


def _shown(value: object) -> str:
    match value:
        case str():
            return repr(str(value))  # an enum of texts would show its class
        case float():
            return f"{value:.3g}"
        case _:
            return str(value)
