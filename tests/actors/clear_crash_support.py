"""Clears that a crash finds half done, for tests."""

import trio

from exeunt import (
    ToolInvocation,
)
from exeunt.testing import call

CLEAR = call("clear_context", prompt="FRESH")


INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."


async def clear_and_sleep(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    await trio.sleep_forever()
    return "never"
