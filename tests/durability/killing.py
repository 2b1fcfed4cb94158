"""The test's side: makes processes, kills them, and looks at what they left."""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from exeunt.actors.events import (
    ContextCleared,
    Event,
    MessageAccepted,
    MessageDropped,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
    UserMessage,
)
from exeunt.actors.events.codec import SliceDecoder
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import load
from exeunt.supervisor.journal.slices import open_slice, unseal
from exeunt.testing import EventInvariants, check_request
from exeunt.testing.journal_events import same
from tests.durability.boundaries import store_of
from tests.durability.notes import Notes
from tests.durability.scene import PLAN, SESSION

ROOT = Path(__file__).parents[2]

KILLED = -9

STOPS = {"write", "nudge", "submit", "clear_context"}
"""Tools that must never run twice for one call."""


class Company:
    """The program that makes processes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def perform(self, folder: Path, url: str, attempt: int, **order: Any) -> tuple[int, float]:
        """Let a process play; return its exit code, or minus the signal that ended it, and its seconds."""
        full = {"fatal": None, "kill_after": None, "durability": "default", "last": False, **order}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(
            json.dumps({"folder": str(folder), "url": url, "attempt": attempt, **full}) + "\n"
        )
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["code"], answer["seconds"]


@contextmanager
def company() -> Generator[Company]:
    """Have a program that makes processes while the block runs."""
    command = [sys.executable, "-m", "tests.durability.child"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Company(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@attrs.define
class Case:
    """One session that is killed, perhaps several times, and then taken up for good."""

    company: Company
    folder: Path
    url: str
    durability: str = "default"
    attempts: int = 0
    kills: int = 0
    seconds: float = 0.0
    """How long the last process took."""
    log: Sequence[Event] = ()
    """What was durable when the last process had ended."""

    def perform(self, **order: Any) -> bool:
        """Let a process play, and check what it left. Return whether it came to its end."""
        ended = {event.turn_id for event in self.log if isinstance(event, TurnEnd)}
        self.attempts += 1
        code, self.seconds = self.company.perform(
            self.folder, self.url, self.attempts, durability=self.durability, **order
        )
        error = self.folder / "error"
        assert code in (0, KILLED), error.read_text() if error.exists() else f"it ended with {code}"
        self.kills += code == KILLED
        self._check(ended)
        return code == 0

    def finish(self) -> None:
        """Let a last process play to the end, and check the whole."""
        assert self.perform(last=True)
        self._check_end()

    # --- Checks ----------------------------------------------------------------------------------------------

    def _check(self, ended: set[str]) -> None:
        """What must hold whenever a process is gone; *ended* are the turns whose end was durable before it."""
        notes = Notes(self.folder)
        before, self.log = self.log, self._read()
        assert same(before, self.log[: len(before)]), "what was durable has changed"
        state = SessionState.replay(self.log)
        self._check_snapshot(state)
        if state.context.batch is None and state.context.length:
            check_request(state.context)
        accepted = {event.message_id: event for event in self.log if isinstance(event, MessageAccepted)}
        for line in notes.read("accepted"):
            assert line["message_id"] in accepted, f"{line} was acknowledged, and is lost"
        started = {event.id for event in self.log if isinstance(event, ToolExecutionStart)}
        keys: dict[str, int] = {}
        for line in notes.read("effects"):
            assert line["key"].removeprefix(f"{SESSION}/") in started, (
                f"{line} ran, and the log does not know of it"
            )
            if line["tool"] in STOPS:
                assert line["key"] not in keys, f"{line} ran twice"
            assert keys.get(line["key"]) != line["attempt"], f"{line} ran twice in one process"
            keys[line["key"]] = line["attempt"]
        for line in notes.read("requests"):
            if line["attempt"] == self.attempts:
                assert line["turn_id"] not in ended, f"{line} is of a turn that had ended before"
        self._check_clears()
        if self.durability == "strict":
            self._check_replies(notes)

    def _check_snapshot(self, state: SessionState) -> None:
        store = store_of(self.url)
        store.open()
        try:
            found = store.read_snapshot(SESSION)
        finally:
            store.close()
        if found is not None:
            start = load(unseal(found[1]))
            assert start is not None
            assert SessionState.replay(self.log[found[0] :], start).summary() == state.summary()

    def _check_clears(self) -> None:
        """A clear is whole or absent: the owner's success, the end of its turn, the boundary."""
        for place, event in enumerate(self.log):
            if (
                isinstance(event, ToolExecutionComplete)
                and event.tool_name == "clear_context"
                and event.success
            ):
                following = self.log[place : place + 6]
                assert any(isinstance(other, ContextCleared) for other in following), (
                    f"half a clear at {event.seq}"
                )

    def _check_replies(self, notes: Notes) -> None:
        ends = {event.turn_id for event in self.log if isinstance(event, TurnEnd)}
        for line in notes.read("replies"):
            assert line["turn_id"] in ends, f"the reply of {line} was seen, and its turn's end is lost"
        results = {event.tool_call_id for event in self.log if isinstance(event, ToolExecutionComplete)}
        for line in notes.read("outcomes"):
            assert line["call_id"] in results, f"{line} was seen, and is lost"

    def _check_end(self) -> None:
        """What must hold when everything is done: each message has ended once, in order."""
        invariants = EventInvariants()
        invariants.observe(SESSION, self.log)
        invariants.verify(settled=False)
        accepted = [event for event in self.log if isinstance(event, MessageAccepted)]
        taken = [
            event for event in self.log if isinstance(event, UserMessage) and event.message_id is not None
        ]
        dropped = [event for event in self.log if isinstance(event, MessageDropped)]
        assert not dropped
        assert sorted(e.message_id for e in accepted) == sorted(e.message_id or "" for e in taken)
        ends = {event.turn_id for event in self.log if isinstance(event, TurnEnd)}
        assert all(event.turn_id in ends for event in taken)
        queued = [event.message_id for event in accepted if not event.steers]
        assert [event.message_id for event in taken if event.message_id in queued] == queued
        texts = [event.prompt for event in accepted]
        assert all(texts.count(line.text) <= 1 for line in PLAN), texts
        clears = [event for event in self.log if isinstance(event, ContextCleared)]
        seeds = [event for event in self.log if isinstance(event, UserMessage) and event.delivery == "seed"]
        assert [event.initial_message for event in clears] == [event.content for event in seeds]
        effects = {line["key"].removeprefix(f"{SESSION}/") for line in Notes(self.folder).read("effects")}
        starts = {event.tool_call_id: event.id for event in self.log if isinstance(event, ToolExecutionStart)}
        assert starts
        for event in self.log:
            if isinstance(event, ToolExecutionStart):
                starts[event.tool_call_id] = event.id
            elif isinstance(event, ToolExecutionComplete) and event.success:
                assert starts[event.tool_call_id] in effects, (
                    f"{event.tool_call_id} succeeded without having run"
                )

    def _read(self) -> list[Event]:
        store = store_of(self.url)
        store.open()
        try:
            slices = store.read(SESSION, 1)
        finally:
            store.close()
        decoder = SliceDecoder()
        return [event for data in slices for event in open_slice(decoder, data)]
