"""A host of the smallest kind, to see whether it works on this machine."""

import logging

import trio

from exeunt import ToolInvocation, approve_all, open_host, tool
from exeunt.testing import EventInvariants, Reply, ScriptedModel, call, say

LONGEST = 10.0
"""Seconds. It takes some milliseconds; a machine that is this slow is as good as stuck."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers, in a worker thread."""
    return a + b


@tool(is_terminal=True)
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the conversation."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


async def run_self_test() -> str:
    """Run a session through a tool call, a clear and its seeded turn; return what went wrong, or nothing."""
    replies: list[Reply] = [call("add", a=1, b=2), call("clear_context", prompt="Go on"), say("done")]
    model, invariants = ScriptedModel(replies), EventInvariants()
    logging.getLogger("exeunt").addHandler(logging.NullHandler())
    try:
        with trio.fail_after(LONGEST):
            async with open_host() as host:
                host.observe(invariants.observe)
                session = await host.create_session(
                    model=model, tools=[add, clear_context], on_permission_request=approve_all
                )
                reply = await session.send_and_wait("Add, then start over", timeout=None)
                counted = host.metrics.value("exeunt_context_clears_total", outcome="committed")
        model.verify()
        invariants.verify()
    except trio.TooSlowError:
        return f"it did not end within {LONGEST:g} s"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the doctor was asked for
        return f"{type(error).__name__}: {error}"
    results = model.requests[1].results
    problems = [
        (reply.content == "done", f"the reply was {reply.content!r}"),
        (list(results.values()) == ["3"], f"the tool's results were {results}"),
        (
            model.requests[-1].contents == ("Go on",),
            f"after the clear the model was sent {model.requests[-1]}",
        ),
        (counted == 1, f"the clear was counted {counted:g} times"),
    ]
    return "; ".join(text for holds, text in problems if not holds)
