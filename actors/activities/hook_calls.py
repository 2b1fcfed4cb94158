"""Calling a hook of the host: bounded, contained, and in the log."""

import inspect
from datetime import UTC, datetime
from typing import Any, Generic

import attrs
import trio

from exeunt.actors.activities.activity import GRACE, Activity
from exeunt.actors.events import HookEnd, HookStart
from exeunt.actors.hook_outputs import HookKind, Out, WrongAnswer
from exeunt.actors.hooks import Hook, HookInput
from exeunt.actors.text import cause_of


@attrs.frozen
class HookAnswer(Generic[Out]):
    """What came of a hook."""

    output: Out
    """Without anything in it, when the hook failed."""
    error: str | None = None
    """Why, when it failed."""


def common_fields(activity: Activity) -> dict[str, Any]:
    """Return the fields that the input of every hook has."""
    actor = activity.actor
    moment = datetime.fromtimestamp(actor.host.clock.wall(), UTC)
    return {"session_id": actor.id, "timestamp": moment}


async def call_hook(
    activity: Activity,
    hook: Hook,
    kind: HookKind[Out],
    hook_input: HookInput,
    tool_call_id: str | None = None,
) -> HookAnswer[Out]:
    """Call *hook* and return what came of it. Never raises but for a cancellation of the activity.

    A hook that swallows its own time-out is left to the activity's fence, a grace later.
    """
    actor = activity.actor
    seconds = actor.options.waits.hook
    hook_id = actor.new_id()
    actor.record(HookStart, hook_id, kind.name, tool_call_id)
    activity.limit(seconds + GRACE)
    answer = HookAnswer(kind.output(), f"the hook was cancelled: {activity.cause or 'the session ends'}")
    try:
        with trio.move_on_after(seconds) as scope:  # noqa: ASYNC912 - a synchronous hook has no wait to cut short
            output = hook(hook_input, actor.invocation(tool_call_id))
            if inspect.isawaitable(output):
                output = await output
            answer = HookAnswer(kind.read(output))
        if scope.cancel_called:  # also when the hook swallowed that and returned something
            answer = HookAnswer(kind.output(), f"the hook did not return within {seconds:g} s")
    except WrongAnswer as error:
        answer = HookAnswer(kind.output(), str(error))
    except Exception as error:  # noqa: BLE001 - a hook is foreign code
        answer = HookAnswer(kind.output(), cause_of(error))
    finally:
        if not activity.done:
            actor.record(HookEnd, hook_id, kind.name, answer.error is None, answer.error, tool_call_id)
    return answer
