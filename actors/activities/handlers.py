"""Running the handler of a tool, with a slot, in the loop or in a worker thread."""

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import outcome
import trio

from exeunt.actors.activities.hook_calls import call_hook, common_fields
from exeunt.actors.events import ToolResultStale
from exeunt.actors.hook_outputs import ERROR_OCCURRED
from exeunt.actors.hooks import ErrorOccurredInput
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.text import cause_of, encodable
from exeunt.actors.tools import ToolInvocation, to_result
from exeunt.actors.turn import parking
from exeunt.actors.turn.live import Waiter

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.tools import Tool

T = TypeVar("T")


async def run(call: "Call", tool: "Tool[..., Any]", bound: Any) -> ToolResult:
    """Wait for a slot, run the handler within the tool's time-out, and return its result.

    What it raises becomes a failure; only cancellations pass.
    """
    actor = call.actor
    slots = actor.host.tool_slots
    if not slots.request(call):
        await wait_for_slot(call)
    try:
        call.stage = "handler"
        call.limit(tool.timeout)
        invocation = None
        if tool.takes_invocation:
            invocation = ToolInvocation(
                actor.id, call.call.id, call.name, call.arguments_json, call, session=actor.handle()
            )
        try:
            if tool.is_async:
                return to_result(await tool.invoke(bound, invocation))
            value = await _in_thread(call, functools.partial(tool.invoke, bound, invocation))
            return to_result(await value if inspect.isawaitable(value) else value)
        except BaseExceptionGroup as group:
            cancelled, error = group.split(trio.Cancelled)
            if error is not None and not isinstance(error, Exception):
                raise  # an interrupt goes on, whatever stands beside it
            if cancelled is not None:
                # Only the cancellation goes on: the rest would end the host's nursery.
                raise cancelled from None
            assert error is not None
            caught: Exception = error
        except Exception as error:  # noqa: BLE001 - a handler is foreign code
            caught = error
    finally:
        slots.release(call)
    try:
        if call.cause is not None:
            await trio.lowlevel.checkpoint()  # it raised because it was cancelled
        return await _failure(call, tool, caught)
    finally:
        del caught  # it holds this frame, and must not be held by it


async def wait_for_slot(call: "Call") -> None:
    """Wait until a slot is granted that was asked for. Cancelled: the slot is given up."""
    before = call.stage
    call.stage = "slot"
    call.limit(call.actor.options.waits.slot)
    await _granted(call)
    call.stage = before


async def take_slot_again(call: "Call") -> None:
    """Wait, in front of the tenant's others, for a slot that a handler had left. Its time-out bounds that.

    Cancelled: the slot is given up.
    """
    if not call.cancelled and not call.actor.host.tool_slots.requeue_front(call):
        await _granted(call)


async def leave_slots_while(call: "Call", wait: Callable[[], Awaitable[T]]) -> T:
    """Await *wait()*, which waits for somebody; the call leaves its slots to others meanwhile.

    It has its slot for tools again when this returns or raises, except by a cancellation.
    """
    actor = call.actor
    actor.put(parking.park, call)
    if actor.host.tool_slots.release(call):
        call.left_slot = True
    result = await outcome.acapture(wait)
    actor.put(parking.unpark, call)
    cancelled = isinstance(result, outcome.Error) and not isinstance(result.error, Exception)
    if call.left_slot and not call.parks and not cancelled:
        call.left_slot = False
        await take_slot_again(call)
    try:
        return result.unwrap()
    finally:
        del result  # an error holds this frame


async def _granted(call: "Call") -> None:
    call.slot_waiter = Waiter()
    granted = False
    try:
        await call.slot_waiter.wait()
        granted = True
    finally:
        waiter, call.slot_waiter = call.slot_waiter, None
        if not granted:
            # Between the grant and the cancellation the slot may be ours already.
            if waiter.resolved:
                call.actor.host.tool_slots.release(call)
            else:
                call.actor.host.tool_slots.withdraw(call)


async def _failure(call: "Call", tool: "Tool[..., Any]", error: Exception) -> ToolResult:
    cause = cause_of(error)
    shown = cause if tool.expose_errors else "Tool execution failed"
    text = (
        f"Failed to execute `{call.name}` tool with arguments: {call.arguments_json or '{}'} "
        f"due to error: {shown}"
    )
    # The outcome is decided here: a hook that is stuck cannot make a time-out of it.
    call.result = ToolResult(encodable(text), "failure", cause)
    call.stage = "post_hook"
    hook = call.actor.options.hooks.on_error_occurred
    if hook is not None:
        hook_input = ErrorOccurredInput(**common_fields(call), error=cause, error_context="tool_execution")
        await call_hook(call, hook, ERROR_OCCURRED, hook_input, call.call.id)
    return call.result


async def _in_thread(call: "Call", function: Any) -> Any:
    token = trio.lowlevel.current_trio_token()

    def tell_when_late() -> tuple[Any]:
        try:
            return (function(),)  # as it is, trio would refuse a coroutine
        finally:
            if call.cancelled:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(_late, call)

    limiter = call.actor.host.threads
    (value,) = await trio.to_thread.run_sync(tell_when_late, abandon_on_cancel=True, limiter=limiter)
    return value


def _late(call: "Call") -> None:
    turn_id = call.turn.turn_id if call.turn is not None else None
    call.actor.record(ToolResultStale, call.call.id, call.name, turn_id)
