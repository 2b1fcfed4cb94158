"""Handlers of a program of threads, as handlers that trio can run.

The rule: a synchronous handler of a tool, a hook or an approval runs in a worker thread, and may block. An `async def`
handler is a trio coroutine and runs in the host's thread.
"""

import inspect
from collections.abc import Callable
from typing import Any

import trio

import exeunt.actors.hooks as trio_hooks
import exeunt.actors.tools as trio_tools
from exeunt.actors.hooks import Hook
from exeunt.actors.tools.signature import is_async
from exeunt.embed.adapting import Adapter, AnyTool
from exeunt.embed.threads.invocation import HookInvocation, ToolInvocation
from exeunt.embed.threads.runtime import Runtime
from exeunt.embed.threads.session import Session


def adapter(runtime: Runtime, threads: int) -> Adapter:
    """Return what makes the handlers of the sessions of a host; at most *threads* of its hooks run at once.

    Hooks have threads of their own: tools that wait for a session whose hooks wait for the tools' would wait for ever.
    """
    limiter = trio.CapacityLimiter(threads)

    def told(argument: Any) -> Any:
        if isinstance(argument, trio_tools.ToolInvocation):
            session = Session(argument.session, runtime)
            return ToolInvocation(*argument.told(), session=session, trio=argument, runtime=runtime)
        return argument

    def tool_handler(tool: AnyTool) -> Callable[..., Any]:
        given: Callable[..., Any] = tool.handler
        if tool.is_async or not tool.takes_invocation:
            return given

        def called(*args: Any, **kwargs: Any) -> Any:
            return given(*map(told, args), **{name: told(value) for name, value in kwargs.items()})

        return called

    def hook(given: Hook) -> Hook:
        if is_async(given):
            return given

        async def called(what: Any, invocation: trio_hooks.HookInvocation) -> Any:
            session = Session(invocation.session, runtime)
            place = HookInvocation(session, invocation.session_id, invocation.tool_call_id)
            return await in_thread(limiter, given, what, place)

        return called

    return Adapter(tool_handler, hook)


async def in_thread(limiter: trio.CapacityLimiter, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call *function* in a worker thread, which is left behind by a cancellation; what it returns may be awaitable."""
    # As it is, trio would refuse a coroutine.
    (value,) = await trio.to_thread.run_sync(
        lambda: (function(*arguments),), abandon_on_cancel=True, limiter=limiter
    )
    return await value if inspect.isawaitable(value) else value
