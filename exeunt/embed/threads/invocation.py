"""What synchronous handlers of a host for threads are told about where they are called from."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, TypeVarTuple, cast

import attrs

import exeunt.actors.hooks as trio_hooks
import exeunt.actors.tools as trio_tools
from exeunt.actors.hooks import Fields
from exeunt.actors.user_input import UserInputResponse
from exeunt.embed.documented import like
from exeunt.embed.threads.crossing import call
from exeunt.embed.threads.runtime import Runtime
from exeunt.embed.threads.session import Session

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@like(trio_tools.ToolInvocation)
@attrs.define(eq=False)
class ToolInvocation(trio_tools.CallInvocation):
    """In a host for threads, for synchronous handlers: its session blocks.

    An `async def` handler, which trio runs, is given `exeunt.ToolInvocation`.
    """

    session: Session = attrs.field(kw_only=True)
    """The session that the call belongs to. It serves the handler while its turn waits for the handler."""

    _trio: trio_tools.ToolInvocation = attrs.field(kw_only=True, alias="trio", repr=False)
    _runtime: Runtime = attrs.field(kw_only=True, alias="runtime", repr=False)

    @like(trio_tools.ToolInvocation.ask_user)
    def ask_user(
        self,
        question: str,
        choices: Iterable[str] | None = None,
        *,
        allow_freeform: bool = True,
        timeout: float | None = None,
    ) -> UserInputResponse:
        ask = self._trio.ask_user
        return call(self._runtime, ask, question, choices, allow_freeform=allow_freeform, timeout=timeout)

    def run(self, fn: Callable[[*Ts], T | Awaitable[T]], *args: *Ts) -> T:
        """Call *fn* and return what it returns; a coroutine is run by trio in the host's thread.

        The methods of `session` need none of it. Raises what *fn* raises, and for a coroutine what `exeunt`'s
        `ToolInvocation.run` raises.
        """
        value: Any = fn(*args)
        if not inspect.isawaitable(value):
            return cast("T", value)
        awaitable: Awaitable[T] = value

        async def awaited() -> T:
            return await awaitable

        return self._trio.run(awaited)


@like(trio_hooks.HookInvocation)
@attrs.frozen(eq=False)
class HookInvocation(Fields):
    """In a host for threads, for synchronous hooks: its session blocks."""

    session: Session
    session_id: str
    tool_call_id: str | None = None
