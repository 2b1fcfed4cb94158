"""Summaries: a conversation as a note for whoever goes on with it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from exeunt.actors.errors import ExeuntError
from exeunt.actors.media import Media
from exeunt.actors.models import Message, ModelClient, ModelRequest, Role, ToolCall

Summarizer = Callable[[Sequence[Message], Any], Awaitable[str]]
"""Makes a note of the messages of a context; the second argument is the invocation of the hook that needs it."""

INSTRUCTIONS = (
    "The conversation below is about to be cleared. Write the note with which its assistant goes on in a fresh context:"
    " the user's task and wishes, what was decided and why, what was found out (names, numbers and paths exactly), what"
    " has been done, and what is to be done next. Write nothing else."
)

LONGEST_TRANSCRIPT = 400_000
"""Characters that a summary model is given: some 100,000 tokens. The middle of a longer conversation is left out."""


class SummaryFailed(ExeuntError):
    """There is no summary: the model failed, took too long, or said nothing."""


@attrs.frozen
class Said:
    """A message that is in no log."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()


def summary_by(
    model: ModelClient, *, instructions: str = INSTRUCTIONS, longest: int = LONGEST_TRANSCRIPT
) -> Summarizer:
    """Return a summarizer that asks *model*, of the host's choice, once for each summary.

    Raises `SummaryFailed` for a blank answer, and `ModelError` as the model raises it; nothing is tried again.
    """

    async def summarize(conversation: Sequence[Message], invocation: Any) -> str:
        request = ModelRequest(
            (Said("system", instructions), Said("user", transcript(conversation, longest))),
            (),
            invocation.session_id,
            "summary",
        )
        answer = await model.complete(request)
        if not answer.content.strip():
            raise SummaryFailed("the summary model gave a blank answer")
        return answer.content

    return summarize


def transcript(conversation: Sequence[Message], longest: int = LONGEST_TRANSCRIPT) -> str:
    """Return messages as a text. System and developer messages stay in the next context, and are left out."""
    parts: list[str] = []
    for message in conversation:
        if message.role in ("system", "developer"):
            continue
        lines = [f"{message.role}: {message.content}"] if message.content or not message.tool_calls else []
        lines += [f"{message.role} calls {call.name}({call.arguments_json})" for call in message.tool_calls]
        lines += [f"{message.role} shows {media}" for media in message.media]
        parts.extend(lines)
    text = "\n\n".join(parts)
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n\n[{len(text) - 2 * half} characters are left out]\n\n{text[-half:]}"
