"""The second act: a process full of sessions is killed in the middle, and another one takes them up."""

import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import attrs
import trio

from exeunt import open_host
from exeunt.actors import events

WORKER = "exeunt.demo.worker"
ENOUGH = 200
"""Messages that are acknowledged before the kill: several for each session, so that all is under way."""


def journal_of(folder: Path) -> str:
    """Return the URL of the worker's journal."""
    return f"sqlite:///{folder.as_posix()}/worker.sqlite3"


def till_of(folder: Path) -> Path:
    """Return the file that is the world outside: each payment is a line of it, and cannot be taken back."""
    return folder / "till.txt"


@attrs.frozen(kw_only=True)
class SecondAct:
    """What became of the worker's sessions."""

    acknowledged: int
    """Messages of which the killed process had said that they are accepted."""
    lost: int
    """Of these, messages whose end is not in the journal."""
    cut_off: int
    """Tool calls whose outcome the kill has made unknown. None was run again."""
    twice: int
    """Messages that entered a context twice, and payments that were made twice."""
    problem: str = ""
    """Why it did not come to an end."""

    @property
    def kept(self) -> bool:
        """Whether it went as promised."""
        return not (self.problem or self.lost or self.twice)

    @property
    def details(self) -> str:
        """What is wrong."""
        return (
            self.problem or f"of {self.acknowledged} messages {self.lost} were lost; {self.twice} ran twice"
        )


async def play_second_act(folder: Path) -> SecondAct:
    """Play it in *folder*. Takes some seconds; cancelled, the worker is ended."""
    acknowledged = await _run_and_kill(folder)
    if len(acknowledged) < ENOUGH:
        return _broken(len(acknowledged), "the worker ended before it was killed")
    resumed = await trio.run_process([*_worker(folder), "--resume"], check=False, start_new_session=True)
    if resumed.returncode:
        return _broken(
            len(acknowledged), f"the process that took the sessions up ended with {resumed.returncode}"
        )
    return await judged(folder, acknowledged)


def _broken(acknowledged: int, problem: str) -> SecondAct:
    return SecondAct(acknowledged=acknowledged, lost=0, cut_off=0, twice=0, problem=problem)


def _worker(folder: Path) -> list[str]:
    # It is started in a session of its own: Ctrl-C at the terminal is for the demo, which ends its worker itself.
    return [sys.executable, "-m", WORKER, str(folder)]


async def _run_and_kill(folder: Path) -> list[tuple[str, str]]:
    """Return the messages, as (session, message), that the worker acknowledged before it was killed."""
    written = b""
    async with trio.open_nursery() as nursery:
        run = partial(
            trio.run_process, _worker(folder), stdout=subprocess.PIPE, check=False, start_new_session=True
        )
        process: trio.Process = await nursery.start(run)
        assert process.stdout is not None
        async with process.stdout:
            async for data in process.stdout:
                written += data
                if written.count(b"\n") >= ENOUGH:
                    process.kill()
    lines = written.decode().split("\n")[:-1]
    return [(session_id, message_id) for session_id, message_id in map(str.split, lines)]


async def judged(folder: Path, acknowledged: list[tuple[str, str]]) -> SecondAct:
    """Hold what was acknowledged against the worker's journal and till."""
    ended, entered, cut_off = set[tuple[str, str]](), Counter[tuple[str, str]](), 0
    async with open_host(journal=journal_of(folder)) as host:
        for item in await host.list_sessions():
            turns: dict[str, list[tuple[str, str]]] = {}
            for event in await host.journal.read(item.session_id):
                if isinstance(event, events.UserMessage) and event.message_id is not None:
                    message = (item.session_id, event.message_id)
                    entered[message] += 1
                    turns.setdefault(event.turn_id, []).append(message)
                elif isinstance(event, events.TurnEnd):
                    ended.update(turns.pop(event.turn_id, ()))
                elif isinstance(event, events.ToolExecutionComplete):
                    cut_off += event.outcome == "interrupted"
    payments = Counter(till_of(folder).read_text(encoding="utf-8").splitlines())
    return SecondAct(
        acknowledged=len(acknowledged),
        lost=len(set(acknowledged) - ended),
        cut_off=cut_off,
        twice=sum(count > 1 for count in (*entered.values(), *payments.values())),
    )
