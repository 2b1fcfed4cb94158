"""The context of a session, for any thread."""

from collections.abc import Collection, Mapping
from typing import Any

import exeunt.actors.session as trio_api
from exeunt.actors.events import SessionCompacted, SessionTruncated
from exeunt.actors.models import Message
from exeunt.actors.options import Siblings
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import at_once, call
from exeunt.embed.threads.runtime import Runtime


@like(trio_api.ClearResult)
class ClearResult:
    """In a host for threads."""

    __slots__ = ("_runtime", "_trio")

    def __init__(self, result: trio_api.ClearResult, runtime: Runtime) -> None:
        self._trio = result
        self._runtime = runtime

    @property
    def messages_cleared(self) -> int:
        """Messages that will leave the context, system and developer messages not counted."""
        return self._trio.messages_cleared

    def __repr__(self) -> str:
        return repr(self._trio)

    @like(trio_api.ClearResult.settled)
    def settled(self) -> None:
        call(self._runtime, self._trio.settled)


@like(trio_api.History)
class History:
    """In a host for threads."""

    __slots__ = ("_runtime", "_trio")

    def __init__(self, history: trio_api.History, runtime: Runtime) -> None:
        self._trio = history
        self._runtime = runtime

    @like(trio_api.History.messages)
    def messages(self) -> tuple[Message, ...]:
        return at_once(self._runtime, self._trio.messages)

    @like(trio_api.History.clear_context)
    def clear_context(
        self,
        prompt: str,
        *,
        siblings: Siblings | None = None,
        trigger: str = "",
        calls: Collection[str] | None = None,
    ) -> ClearResult:
        clear = self._trio.clear_context
        result = call(self._runtime, clear, prompt, siblings=siblings, trigger=trigger, calls=calls)
        return ClearResult(result, self._runtime)

    @like(trio_api.History.truncate)
    def truncate(self, event_id: str) -> SessionTruncated:
        return call(self._runtime, self._trio.truncate, event_id)

    @like(trio_api.History.compact)
    def compact(
        self,
        content: str,
        *,
        messages: int,
        generation: int,
        trigger: str = "",
        note: Mapping[str, Any] | None = None,
    ) -> SessionCompacted:
        act = self._trio.compact
        return call(
            self._runtime,
            act,
            content,
            messages=messages,
            generation=generation,
            trigger=trigger,
            note=note,
        )
