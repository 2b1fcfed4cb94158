"""A real disk without room, as the operating system tells of it: the host goes on, and nothing is lost."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from exeunt.actors.events.codec import SliceDecoder
from exeunt.stores.sqlite import SqliteStore
from exeunt.supervisor.journal.slices import open_slice

ROOT = Path(__file__).parents[2]

PROGRAM = """
import resource, sys
import trio
from exeunt import JournalUnavailable, open_host
from exeunt.testing import ScriptedModel, say

def room(size):
    # Of a single file of this process: what a full disk is to a program that has it to itself.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    model = ScriptedModel([], default=say("a long answer. " * 500))
    async with open_host(journal=f"sqlite:///{sys.argv[1]}") as host:
        session = await host.create_session(session_id="hamlet", model=model)
        room(300_000)
        while session.statistics().journal_available:
            # The one that the full disk keeps waiting is given up, and may be written all the same.
            with trio.move_on_after(1):
                print("accepted", await session.send("a message"), flush=True)
        try:
            await session.send("refused")
        except JournalUnavailable:
            print("full")
        room(resource.RLIM_INFINITY)
        while not session.statistics().journal_available:
            await trio.sleep(0.01)
        print("accepted", await session.send("there is room again"))

trio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_loses_nothing_that_was_accepted_and_the_host_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["full"] in lines
    accepted = [words[1] for words in lines if words[0] == "accepted"]
    assert len(accepted) > 5
    store = SqliteStore(path)
    store.open()
    with closing(store):
        decoder = SliceDecoder()
        events = [event for data in store.read("hamlet", 1) for event in open_slice(decoder, data)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    stored = [getattr(event, "message_id", "") for event in events if event.type == "message.accepted"]
    assert len(set(stored)) == len(stored)
    assert [message_id for message_id in stored if message_id in accepted] == accepted
    assert accepted[-1] == stored[-1]
    # Those that were taken in have ended too.
    assert events[-1].type == "session.shutdown"
