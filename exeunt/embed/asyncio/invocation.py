"""What handlers of an asyncio host are told about where they are called from."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, TypeVarTuple

import attrs

import exeunt.actors.hooks as trio_hooks
import exeunt.actors.tools as trio_tools
from exeunt.actors.hooks import Fields
from exeunt.actors.user_input import UserInputResponse
from exeunt.embed.asyncio.crossing import call, on_asyncio
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.asyncio.session import Session
from exeunt.embed.documented import like

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@like(trio_tools.ToolInvocation)
@attrs.define(eq=False)
class ToolInvocation(trio_tools.CallInvocation):
    """In a host on asyncio: its session is awaited in asyncio tasks."""

    session: Session = attrs.field(kw_only=True)
    """The session that the call belongs to. It serves the handler while its turn waits for the handler."""

    _trio: trio_tools.ToolInvocation = attrs.field(kw_only=True, alias="trio", repr=False)
    _guest: Guest = attrs.field(kw_only=True, alias="guest", repr=False)

    @like(trio_tools.ToolInvocation.ask_user)
    async def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - the name in the trio API
    ) -> UserInputResponse:
        ask = self._trio.ask_user
        return await call(self._guest, ask, question, choices, allow_freeform=allow_freeform, timeout=timeout)

    def run(self, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run *async_fn* on the event loop of the host and return what it returns; for synchronous handlers.

        Blocks the worker thread until then. Raises what *async_fn* raises, `trio.Cancelled` when the call was
        cancelled before, `trio.RunFinishedError` when the host has ended, and `NotInWorkerThread` anywhere else
        than in the worker thread of a synchronous handler: on the host's loop it would wait for itself.
        """

        async def awaited() -> T:
            return await on_asyncio(async_fn(*args))

        return self._trio.run(awaited)


@like(trio_hooks.HookInvocation)
@attrs.frozen(eq=False)
class HookInvocation(Fields):
    """In a host on asyncio: its session is awaited in asyncio tasks."""

    session: Session
    session_id: str
    tool_call_id: str | None = None
