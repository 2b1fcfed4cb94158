"""Handlers that the program wrote for asyncio, as handlers that trio can run.

The rule: a coroutine of a tool, a hook or an approval is awaited in an asyncio task of its own, unless its function
has the mark `runs_on_trio`. A synchronous tool runs in a worker thread, a synchronous hook in the loop.
"""

import inspect
from collections.abc import Callable
from typing import Any

import exeunt.actors.hooks as trio_hooks
import exeunt.actors.tools as trio_tools
from exeunt.actors.hooks import Hook
from exeunt.embed.adapting import Adapter, AnyTool
from exeunt.embed.asyncio.crossing import on_asyncio
from exeunt.embed.asyncio.guest import Guest
from exeunt.embed.asyncio.invocation import HookInvocation, ToolInvocation
from exeunt.embed.asyncio.session import Session


def adapter(guest: Guest) -> Adapter:
    """Return what makes the handlers of this guest's sessions."""

    def told(argument: Any) -> Any:
        if isinstance(argument, trio_tools.ToolInvocation):
            session = Session(argument.session, guest)
            return ToolInvocation(*argument.told(), session=session, trio=argument, guest=guest)
        return argument

    def tool_handler(tool: AnyTool) -> Callable[..., Any]:
        given: Callable[..., Any] = tool.handler
        handler = given
        if tool.takes_invocation:

            def handler(*args: Any, **kwargs: Any) -> Any:
                return given(*map(told, args), **{name: told(value) for name, value in kwargs.items()})

        if tool.is_async:

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await on_asyncio(handler(*args, **kwargs))

            return awaited

        def called(*args: Any, **kwargs: Any) -> Any:
            value = handler(*args, **kwargs)
            return on_asyncio(value) if inspect.isawaitable(value) else value

        return called

    def hook(given: Hook) -> Hook:
        def called(what: Any, invocation: trio_hooks.HookInvocation) -> Any:
            session = Session(invocation.session, guest)
            answer = given(what, HookInvocation(session, invocation.session_id, invocation.tool_call_id))
            return on_asyncio(answer) if inspect.isawaitable(answer) else answer

        return called

    return Adapter(tool_handler, hook)
