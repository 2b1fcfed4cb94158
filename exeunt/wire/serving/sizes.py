"""How large a context is, in tokens."""

from collections.abc import Iterable, Sequence

import attrs

from exeunt.actors.models import Message, ToolDefinition
from exeunt.actors.sizes import CHARACTERS_A_TOKEN, characters_of
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.rpc import encode


@attrs.frozen
class Sizes:
    """Tokens of a context, estimated."""

    system: int
    conversation: int
    tools: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.system + self.conversation + self.tools


def tokens_of(message: Message, *, cited: bool = False) -> int:
    """Estimate the tokens of one message; where the model is to cite, with what it may cite of a result."""
    return characters_of(message, cited=cited) // CHARACTERS_A_TOKEN


def estimate(
    messages: Iterable[Message], tools: Sequence[ToolDefinition] = (), *, cited: bool = False
) -> Sizes:
    """Estimate the tokens of system and developer messages, of the conversation, and of the tools' definitions."""
    system = conversation = 0
    for message in messages:
        if message.role in ("system", "developer"):
            system += tokens_of(message)
        else:
            conversation += tokens_of(message, cited=cited)
    return Sizes(system, conversation, len(encode(tools)) // CHARACTERS_A_TOKEN if tools else 0)


def token_limit(config: SessionConfig, model: str) -> int | None:
    """Return how many tokens a client says that its model takes in."""
    capabilities = config.modelCapabilities
    if capabilities is not None and capabilities.limits is not None and capabilities.limits.max_prompt_tokens:
        return capabilities.limits.max_prompt_tokens
    for one in config.models or ():
        if model in (one.id, f"{one.provider}/{one.id}"):
            return one.maxPromptTokens or one.maxContextWindowTokens
    return None if config.provider is None else config.provider.maxPromptTokens
