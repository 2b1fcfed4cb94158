"""Calling a hook of the host: bounded, contained, and in the log."""

import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import attrs
import trio

from exeunt.actors.activities.activity import GRACE, Activity
from exeunt.actors.events import HookEnd, HookStart
from exeunt.actors.hooks import Hook, HookInput
from exeunt.actors.text import cause_of


@attrs.frozen
class HookAnswer:
    """What came of a hook."""

    output: Mapping[str, Any]
    error: str | None = None
    """Why there is no output, when the hook failed."""


def common_fields(activity: Activity) -> dict[str, Any]:
    """Return the fields that the input of every hook has."""
    actor = activity.actor
    moment = datetime.fromtimestamp(actor.host.clock.wall(), UTC)
    return {"session_id": actor.id, "timestamp": moment}


async def call_hook(
    activity: Activity, hook: Hook, hook_type: str, hook_input: HookInput, tool_call_id: str | None = None
) -> HookAnswer:
    """Call *hook* and return what came of it. Never raises but for a cancellation of the activity.

    A hook that swallows its own time-out is left to the activity's fence, a grace later.
    """
    actor = activity.actor
    seconds = actor.options.waits.hook
    hook_id = actor.new_id()
    actor.record(HookStart, hook_id, hook_type, tool_call_id)
    activity.limit(seconds + GRACE)
    answer = HookAnswer({}, f"the hook was cancelled: {activity.cause or 'the session ends'}")
    try:
        with trio.move_on_after(seconds) as scope:  # noqa: ASYNC912 - a synchronous hook has no wait to cut short
            output = hook(hook_input, actor.invocation(tool_call_id))
            if inspect.isawaitable(output):
                output = await output
            answer = _checked(output)
        if scope.cancel_called:  # also when the hook swallowed that and returned something
            answer = HookAnswer({}, f"the hook did not return within {seconds:g} s")
    except Exception as error:  # noqa: BLE001 - a hook is foreign code
        answer = HookAnswer({}, cause_of(error))
    finally:
        if not activity.done:
            actor.record(HookEnd, hook_id, hook_type, answer.error is None, answer.error, tool_call_id)
    return answer


def _checked(output: Any) -> HookAnswer:
    if output is None:
        return HookAnswer({})
    if isinstance(output, Mapping):
        return HookAnswer(cast("Mapping[str, Any]", output))
    return HookAnswer({}, f"the hook returned {type(output).__name__}; it must return a mapping or None")


def text_of(output: Mapping[str, Any], field: str) -> str | None:
    """Return a text field of a hook's output; anything but a non-empty text counts as absent."""
    value = output.get(field)
    return value if isinstance(value, str) and value else None
