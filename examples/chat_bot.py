"""A bot in a chat, as for Discord or Slack: one loop takes what a gateway sends, one session answers in each channel.

The gateway here is a stand-in that plays a little chat. With a real one, `on_message` and `Gateway.say` are the
library's; the bot stays as it is.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import attrs

from exeunt import MailboxFull, SessionNotFound, TurnAborted, approve_all
from exeunt.embed.asyncio import Session, SessionHost, ToolInvocation, open_host, tool
from exeunt.testing import Reply, ScriptedModel, call, say


@attrs.frozen
class Message:
    """What a gateway tells of."""

    channel: str
    author: str
    text: str


@attrs.define
class Gateway:
    """A chat that is none: plays *messages*, and prints what the bot says."""

    messages: list[Message]
    typing: set[str] = attrs.field(factory=set[str])

    async def run(self, on_message: Callable[[Message], Coroutine[Any, Any, None]]) -> None:
        """Call *on_message* for each message, in a task of its own, as gateways do; return when all are handled."""
        async with asyncio.TaskGroup() as handlers:
            for message in self.messages:
                print(f"#{message.channel} {message.author}: {message.text}")
                handlers.create_task(on_message(message))
                await asyncio.sleep(0.05)

    async def say(self, channel: str, text: str) -> None:
        print(f"#{channel} bot: {text}")

    @contextlib.asynccontextmanager
    async def is_typing(self, channel: str) -> AsyncGenerator[None]:
        self.typing.add(channel)
        try:
            yield
        finally:
            self.typing.discard(channel)


class Bot:
    """Answers in each channel with a session of its own; the channel's id is the session's."""

    def __init__(self, host: SessionHost, gateway: Gateway, model: ScriptedModel) -> None:
        self._host, self._gateway, self._model = host, gateway, model

    async def on_message(self, message: Message) -> None:
        """Take one message. Never raises: a bot that dies of one message is no use to the next."""
        session = await self._session_of(message.channel)
        if message.text == "!stop":
            receipt = await session.abort(reason=f"{message.author} said stop")
            await self._gateway.say(
                message.channel, f"Stopped, with {len(receipt.tools_cancelled)} tool at work."
            )
            return
        try:
            async with self._gateway.is_typing(message.channel):
                # What comes while a turn runs joins it, as in a conversation.
                reply = await session.send_and_wait(f"{message.author}: {message.text}", mode="immediate")
        except MailboxFull:
            await self._gateway.say(message.channel, "One at a time, please.")
        except TurnAborted:
            pass  # whoever stopped it has been told
        else:
            await self._gateway.say(message.channel, reply.content)

    async def _session_of(self, channel: str) -> Session:
        try:
            return self._host.get_session(channel)
        except SessionNotFound:
            return await self._host.create_session(
                model=self._model,
                tools=[search, new_topic],
                session_id=channel,
                tenant=channel,
                on_permission_request=approve_all,
                mailbox_size=20,
            )


@tool
async def search(words: str) -> str:
    """Search the archive. For `everything` it takes too long."""
    await asyncio.sleep(60 if words == "everything" else 0.01)
    return f"3 messages about {words}"


@tool(is_terminal=True)
async def new_topic(summary: str, invocation: ToolInvocation) -> str:
    """Put the conversation away and go on with a summary of it."""
    await invocation.session.history.clear_context(summary)
    return "A new topic."


SCRIPTS: dict[str, list[Reply]] = {
    "general": [say("Hello, ada."), call("search", words="cats"), say("There are 3 messages about cats.")],
    "random": [
        call("search", words="everything"),
        call("new_topic", summary="They like cats."),
        say("Cats it is."),
    ],
}

CHAT = [
    Message("general", "ada", "hello"),
    Message("random", "bob", "find everything"),
    Message("general", "ada", "anything about cats?"),
    Message("random", "eve", "!stop"),
    Message("random", "bob", "then something new"),
]


async def main() -> None:
    gateway = Gateway(CHAT)
    async with open_host() as host:
        bot = Bot(host, gateway, ScriptedModel.per_session(SCRIPTS.__getitem__))
        await gateway.run(bot.on_message)
        contexts = {name: host.get_session(name).statistics().generation for name in SCRIPTS}
    print(f"Contexts since the beginning: {contexts}")


if __name__ == "__main__":
    asyncio.run(main())
