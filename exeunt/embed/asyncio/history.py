"""The context of a session, for asyncio tasks."""

from collections.abc import Collection, Mapping
from typing import Any

import exeunt.actors.session as trio_api
from exeunt.actors.events import SessionCompacted, SessionTruncated
from exeunt.actors.models import Message
from exeunt.actors.options import Siblings
from exeunt.embed.asyncio.crossing import call
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.documented import like


@like(trio_api.ClearResult)
class ClearResult:
    """In a host on asyncio."""

    __slots__ = ("_guest", "_trio")

    def __init__(self, result: trio_api.ClearResult, guest: Guest) -> None:
        self._trio = result
        self._guest = guest

    @property
    def messages_cleared(self) -> int:
        """Messages that will leave the context, system and developer messages not counted."""
        return self._trio.messages_cleared

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.ClearResult.settled)
    async def settled(self) -> None:
        await call(self._guest, self._trio.settled)


@like(trio_api.History)
class History:
    """In a host on asyncio."""

    __slots__ = ("_guest", "_trio")

    def __init__(self, history: trio_api.History, guest: Guest) -> None:
        self._trio = history
        self._guest = guest

    @like(trio_api.History.messages)
    def messages(self) -> tuple[Message, ...]:
        self._guest.check_thread()
        return self._trio.messages()

    @like(trio_api.History.clear_context)
    async def clear_context(
        self,
        prompt: str,
        *,
        siblings: Siblings | None = None,
        trigger: str = "",
        calls: Collection[str] | None = None,
    ) -> ClearResult:
        clear = self._trio.clear_context
        result = await call(self._guest, clear, prompt, siblings=siblings, trigger=trigger, calls=calls)
        return ClearResult(result, self._guest)

    @like(trio_api.History.truncate)
    async def truncate(self, event_id: str) -> SessionTruncated:
        return await call(self._guest, self._trio.truncate, event_id)

    @like(trio_api.History.compact)
    async def compact(
        self,
        content: str,
        *,
        messages: int,
        generation: int,
        trigger: str = "",
        note: Mapping[str, Any] | None = None,
    ) -> SessionCompacted:
        act = self._trio.compact
        return await call(
            self._guest,
            act,
            content,
            messages=messages,
            generation=generation,
            trigger=trigger,
            note=note,
        )
