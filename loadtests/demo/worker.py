"""The process of the second act: some sessions on a journal of its own, until somebody kills it.

`python -m exeunt.demo.worker FOLDER` plays, and writes a line for each message that was acknowledged. With `--resume`
it takes up what another process has left, lets it come to its end, and leaves.
"""

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import trio

from exeunt import ModelRequest, Session, SessionHost, Tool, ToolInvocation, approve_all, open_host, tool
from exeunt.demo.second_act import journal_of, till_of
from exeunt.testing import Reply, ScriptedModel, call, say

SESSIONS = 40
MESSAGES_EACH = 50
"""More than are ever answered before the process is killed."""
LIFETIME = 60.0
"""Seconds after which it ends by itself, whatever became of the process that started it."""
CLEAR_EVERY = 3
"""Of so many messages one starts over."""
FAREWELL = "Good night."


def answer(request: ModelRequest, /) -> Reply:
    """The model. Of a payment whose outcome is unknown it makes no second one."""
    last = request.messages[-1]
    if last.role != "user":
        return say("Thank you.")
    kind, _, seat = last.content.rpartition(" ")
    if kind == "Pay for seat":
        return [call("pay", seat=int(seat)), call("look_up", seat=int(seat))]
    if kind == "Start over before seat":
        return call("clear_context", prompt=f"Go on with seat {seat}")
    return say("So be it.")


def make_tools(folder: Path) -> tuple[Tool[..., Any], ...]:
    """Return the worker's tools."""
    till = os.open(till_of(folder), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @tool
    async def pay(seat: int, invocation: ToolInvocation) -> str:
        """Pay for a seat. It has happened when it has happened."""
        os.write(till, f"{invocation.session_id} {seat}\n".encode())
        await trio.sleep(0.02)
        return "paid"

    @tool
    async def look_up(seat: int) -> str:
        """Look a seat up."""
        await trio.sleep(0.05)
        return f"seat {seat}: row five"

    @tool(is_terminal=True, defer="never")
    async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
        """Clear the conversation."""
        await invocation.session.history.clear_context(prompt)
        return "cleared"

    return pay, look_up, clear_context


async def play(folder: Path) -> None:
    """Make sessions and send them messages, two at a time."""
    async with open_host(journal=journal_of(folder)) as host, trio.open_nursery() as nursery:
        for number in range(SESSIONS):
            session = await host.create_session(session_id=f"worker-{number:02}", **_options(folder))
            nursery.start_soon(_send_for_ever, session)


async def resume(folder: Path) -> None:
    """Take up all sessions, let them do what they have to, and have each answer one message more."""
    async with open_host(journal=journal_of(folder)) as host:
        stored = await host.list_sessions()
        async with trio.open_nursery() as nursery:
            for item in stored:
                nursery.start_soon(_finish, host, item.session_id, folder)


def _options(folder: Path) -> dict[str, Any]:
    return {
        "model": ScriptedModel((), default=answer, record=False),
        "tools": make_tools(folder),
        "on_permission_request": approve_all,
    }


async def _send_for_ever(session: Session) -> None:
    for number in range(MESSAGES_EACH):
        kind = "Start over before seat" if number % CLEAR_EVERY == 2 else "Pay for seat"
        message_id = await session.send(f"{kind} {number}")
        # One write, so that the lines of a process that is killed are whole.
        os.write(1, f"{session.session_id} {message_id}\n".encode())
        await trio.sleep(0.03)


async def _finish(host: SessionHost, session_id: str, folder: Path) -> None:
    session = await host.resume_session(session_id, continue_pending_work=True, **_options(folder))
    await session.send_and_wait(FAREWELL)


def main(arguments: list[str]) -> None:
    """Run the worker."""
    folder = Path(arguments[0])
    timer = threading.Timer(LIFETIME, os._exit, (1,))
    timer.daemon = True
    timer.start()
    # The kill may cut a write off, of which the journal warns: whether anything was lost is in the report.
    logging.basicConfig(level=logging.ERROR)
    trio.run(resume if "--resume" in arguments else play, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
