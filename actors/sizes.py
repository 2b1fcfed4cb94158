"""How large texts are, in tokens, where nobody has counted."""

from collections.abc import Iterable

from exeunt.actors.models import Message

CHARACTERS_A_TOKEN = 4
"""Of English text and code; where the provider reports no usage, tokens are guessed by it."""


def characters_of(message: Message) -> int:
    """Return the characters of a message that a model reads: its text, and what it calls."""
    called = sum(len(call.name) + len(call.arguments_json) for call in message.tool_calls)
    return len(message.content) + called


def guessed_tokens(messages: Iterable[Message]) -> int:
    """Return about how many tokens *messages* have. Costs O(messages)."""
    return sum(map(characters_of, messages)) // CHARACTERS_A_TOKEN
