"""The session that is killed: what its model says, what its tools do, what its user wants.

The model's answer follows from the request alone, so it makes no difference in which process it is asked. Tools note
each run on the disk, with the key that tells a second run of one call from another call.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from exeunt import ModelRequest, Tool, ToolInvocation, approve_all, tool
from exeunt.actors.models import Message
from exeunt.testing import ScriptedModel, call, say
from exeunt.testing.replies import Reply
from tests.durability.notes import Notes

SESSION = "hamlet"

GOODBYE = "are you there?"
"""The last message, by which a session shows that it is well."""

PATIENCE = 4
"""Answers after which the model gives up a turn whose tools were interrupted again and again."""


@attrs.frozen
class Line:
    """Something that the user does."""

    how: str
    """`send`, `steer`, `tool` or `ask`, which waits for the reply."""
    text: str


PLAN = (
    Line("send", "act 1"),
    Line("send", "talk 2"),
    Line("steer", "talk 3"),
    Line("ask", "clear 4"),
    Line("send", "act 5"),
    Line("tool", "write"),
    Line("steer", "talk 6"),
    Line("send", "clear 7"),
    Line("send", "submit 8"),
    Line("ask", "talk 9"),
)


def answer(request: ModelRequest) -> Reply:
    """Say what the model answers to *request*."""
    place, text = _last_of_the_user(request.messages)
    asked = sum(message.role == "assistant" for message in request.messages[place:])
    word = text.split()[0]
    if asked >= PATIENCE:
        return say(f"enough of {text}")
    match word, asked:
        case "act", 0:
            return [say("let me see"), call("write"), call("look_up"), call("write")]
        case "act", 1:
            return call("nudge")
        case "clear", _:
            return [call("write"), call("clear_context", prompt=f"seed after {text}")]
        case "seed", 0:
            return [call("look_up"), call("write")]
        case "submit", _:
            return [call("submit"), call("write")]
        case _:
            return say(f"done: {text}")


def _last_of_the_user(messages: Sequence[Message]) -> tuple[int, str]:
    for place in reversed(range(len(messages))):
        if messages[place].role == "user":
            return place, messages[place].content
    raise AssertionError("a context without a user message")


def options(notes: Notes, attempt: int, cross: Callable[[], None], **others: Any) -> dict[str, Any]:
    """Return the keywords with which process number *attempt* opens the session."""

    def asked(request: ModelRequest) -> Reply:
        notes.write(
            "requests", attempt=attempt, turn_id=request.turn_id, roles=[m.role for m in request.messages]
        )
        return answer(request)

    return {
        "model": ScriptedModel([], default=asked),
        "tools": tools(notes, attempt, cross),
        "system_message": "You are terse.",
        "on_permission_request": approve_all,
        **others,
    }


def tools(notes: Notes, attempt: int, cross: Callable[[], None]) -> list[Tool[..., Any]]:
    """Return the session's tools. Each notes that it runs, between two boundaries."""

    def note(invocation: ToolInvocation) -> None:
        cross()
        notes.write(
            "effects",
            attempt=attempt,
            tool=invocation.tool_name,
            call_id=invocation.tool_call_id,
            key=invocation.idempotency_key,
        )
        cross()

    @tool
    async def write(invocation: ToolInvocation) -> str:
        """Change the world, once."""
        note(invocation)
        return "written"

    @tool(idempotent=True)
    def look_up(invocation: ToolInvocation) -> str:
        """Change nothing, in a thread."""
        note(invocation)
        return "looked up"

    @tool
    async def nudge(invocation: ToolInvocation) -> str:
        """Steer the turn that this call belongs to."""
        note(invocation)
        await invocation.session.send(f"talk, as {invocation.tool_call_id} says", mode="immediate")
        return "nudged"

    @tool(is_terminal=True)
    async def submit(invocation: ToolInvocation) -> str:
        """Hand in."""
        note(invocation)
        return "handed in"

    @tool(is_terminal=True, defer="never")
    async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
        """Start a new context."""
        note(invocation)
        result = await invocation.session.history.clear_context(prompt)
        return f"Cleared {result.messages_cleared} messages."

    return [write, look_up, nudge, submit, clear_context]
