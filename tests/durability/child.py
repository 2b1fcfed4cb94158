"""The process that is killed: it takes the session up, or makes it, and does what of the plan is not done yet.

Started as a program it serves a test: for each order, a line of JSON, it makes a new process, lets it play, kills it
if told so, and answers how it ended. A fork of a process that has imported everything takes 10 ms, not a second.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import trio

from exeunt import Session, SessionHost, SessionNotFound
from exeunt.testing import checked_host
from tests.actors.clear_support import settled
from tests.durability.boundaries import Boundaries, BoundedJournal, store_of
from tests.durability.notes import Notes
from tests.durability.scene import GOODBYE, PLAN, SESSION, Line, options

LONGEST = 60
"""Seconds after which a process is stuck. One takes less than half a second."""


class Performance:
    """What one process does."""

    def __init__(
        self, folder: str, url: str, attempt: int, fatal: int | None, durability: str, last: bool
    ) -> None:
        self.notes = Notes(Path(folder))
        self.boundaries = Boundaries(fatal)
        self._url = url
        self._attempt = attempt
        self._durability = durability
        self._last = last

    async def run(self) -> None:
        """Do what of the plan is not done yet; as the *last* process, see that the session is well."""
        journal = BoundedJournal(store_of(self._url), self.boundaries)
        async with checked_host(journal=journal) as host:
            keywords = options(self.notes, self._attempt, self.boundaries.cross, durability=self._durability)
            session = await self._open(host, keywords)
            begun = len(self.notes.read("begun"))
            for line in PLAN[begun:]:
                self.notes.write("begun", text=line.text)
                await self._do(session, line)
            await settled(session)
            await session.get_events()  # with durability="strict" the end is seen when it is durable
            if self._last:
                reply = await session.send_and_wait(GOODBYE)
                assert (reply.content, reply.reason) == ("done: are you there?", "completed"), reply
            keywords["model"].verify()
        self.notes.write("ended", attempt=self._attempt, boundaries=self.boundaries.passed)

    async def _open(self, host: SessionHost, keywords: dict[str, Any]) -> Session:
        try:
            return await host.resume_session(SESSION, continue_pending_work=True, **keywords)
        except SessionNotFound:
            return await host.create_session(session_id=SESSION, **keywords)

    async def _do(self, session: Session, line: Line) -> None:
        match line.how:
            case "tool":
                outcome = await session.call_tool(line.text)
                self._acknowledged("outcomes", call_id=outcome.tool_call_id, outcome=outcome.outcome)
            case "ask":
                reply = await session.send_and_wait(line.text)
                self._acknowledged("replies", turn_id=reply.turns[-1].turn_id)
            case how:
                message_id = await session.send(line.text, "immediate" if how == "steer" else "enqueue")
                self._acknowledged("accepted", message_id=message_id, text=line.text)

    def _acknowledged(self, name: str, **fields: Any) -> None:
        self.boundaries.cross()
        self.notes.write(name, **fields)
        self.boundaries.cross()


def main() -> None:
    """Serve orders until there are no more."""
    importlib.import_module("psycopg")  # once, and not in every process
    for order in sys.stdin:
        print(json.dumps(serve(**json.loads(order))), flush=True)


def serve(kill_after: float | None, **order: Any) -> dict[str, Any]:
    """Let a new process play; kill it after some seconds, or not. Return how it ended."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        _play(order)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.perf_counter() - began}


def _play(order: dict[str, Any]) -> None:
    signal.alarm(LONGEST)
    code = 1
    try:
        trio.run(Performance(**order).run)
        code = 0
    except BaseException:  # noqa: BLE001, ASYNC103 - whatever it is, the test reads it
        Path(order["folder"], "error").write_text(traceback.format_exc())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
