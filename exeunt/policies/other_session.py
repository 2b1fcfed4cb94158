"""Handing work to another session."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from exeunt.actors.errors import ExeuntError, InvalidConfiguration
from exeunt.actors.marks import runs_on_trio
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.session import Session
from exeunt.actors.tools import Tool, ToolInvocation, tool
from exeunt.policies.seeds import LONGEST_SEED, SeedFrame, SeedTooLong, State

Target = Session | Callable[[ToolInvocation], "Session | Awaitable[Session]"]
"""The session that goes on, or a function that finds or makes it when a call needs it; of an embedded host too."""

NOTE = "handoffFrom"
"""Under this name the note of a message holds the id of the session that has sent it."""

DESCRIPTION = (
    "Hand the work over to somebody else, who knows nothing but your prompt. Write down the task, what was decided,"
    " what was found out, and what is to be done next. Your own work ends with it."
)


class HandoffRefused(ExeuntError):
    """Work may not go from this session to that one."""


def handoff_tool(
    *,
    to: Target,
    name: str = "handoff",
    description: str = DESCRIPTION,
    longest_seed: int = LONGEST_SEED,
    template: str = "{prompt}",
    state: State | None = None,
    across_tenants: bool = False,
) -> Tool[..., Any]:
    """Return a terminal tool that sends the model's prompt to another session and ends the turn.

    The prompt, in its frame (`clear_context_tool`), is an ordinary message there, answered in a turn of its own. Both
    logs get a `session.handoff` that names the other session and the message: `sent` here, `received` there. A crash
    may come before these two; the message itself says where it is from, in the note of its `message.accepted`.

    Refused with `HandoffRefused`, which the model reads as a failure: the session itself, and one of another tenant
    unless *across_tenants*. What sending raises (`MailboxFull`, `Overloaded`, ...) is a failure too: the model may try
    again, and nothing was sent. The other session's reply is not waited for.

    Raises `InvalidConfiguration`, `InvalidToolDefinition`.
    """
    to = getattr(to, "trio_session", to)
    if not isinstance(to, Session) and not callable(to):
        raise InvalidConfiguration(f"to is a session, or a function that returns one, not {to!r:.80}")
    frame = SeedFrame(template, longest_seed, state)

    @runs_on_trio
    async def handoff(
        prompt: Annotated[str, "All that the other one is told."], invocation: ToolInvocation
    ) -> ToolResult:
        if not prompt.strip():
            return ToolResult("The prompt is blank: nobody could go on with it.", "failure")
        try:
            seed = await frame.seed(prompt, invocation)
        except SeedTooLong as error:
            return ToolResult(str(error), "failure", str(error))
        target = await _found(to, invocation)
        _check(invocation.session, target, across_tenants)
        message_id = await target.send(seed, note={NOTE: invocation.session_id})
        invocation.session.record_handoff("sent", session_id=target.session_id, message_id=message_id)
        target.record_handoff("received", session_id=invocation.session_id, message_id=message_id)
        return ToolResult(f"Handed over to session {target.session_id}.")

    return tool(name, description=description, is_terminal=True, skip_permission=True, defer="never")(handoff)


async def _found(to: Target, invocation: ToolInvocation) -> Session:
    found: Any = to if isinstance(to, Session) else to(invocation)
    if inspect.isawaitable(found):
        found = await found
    found = getattr(found, "trio_session", found)
    if not isinstance(found, Session):
        raise HandoffRefused(f"{found!r:.80} is no session to which work could be handed")
    return found


def _check(source: Session, target: Session, across_tenants: bool) -> None:
    if target.session_id == source.session_id:
        raise HandoffRefused("a session hands nothing to itself: it can clear its context")
    if target.tenant != source.tenant and not across_tenants:
        raise HandoffRefused(f"session {target.session_id} is another tenant's, and gets nothing of this one")
