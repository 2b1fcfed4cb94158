"""A runtime on a port ends when the client that started it was killed, and for no other reason."""

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import attrs
import pytest
import trio
from trio.testing import MockClock

from exeunt.cli.serve.orphans import GRACE, LOOK_EVERY, Starter, until_abandoned
from tests.cli.programs import LONGEST, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows tells nothing of pipes")


@attrs.define
class Seen:
    """What can be seen at a time: each change is (seconds, starter gone, clients)."""

    changes: list[tuple[float, bool, int]]
    began: float = attrs.field(factory=trio.current_time)

    def _now(self) -> tuple[float, bool, int]:
        passed = trio.current_time() - self.began
        return [change for change in self.changes if change[0] <= passed][-1]

    def gone(self) -> bool:
        """Whether the starter is gone."""
        return self._now()[1]

    def clients(self) -> int:
        """How many are connected."""
        return self._now()[2]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ([(0, True, 0)], GRACE),
        ([(0, False, 0), (61, True, 0)], 60 + GRACE),
        ([(0, True, 1), (1_001, True, 0)], 1_000 + GRACE),
        # A client that is back in time, whoever it is, and that leaves later.
        ([(0, True, 1), (11, True, 0), (21, True, 1), (31, True, 0)], 30 + GRACE),
        ([(0, False, 0)], None),
        ([(0, True, 3)], None),
    ],
)
async def test_a_server_is_abandoned_without_starter_and_clients_for_a_while(
    changes: list[tuple[float, bool, int]],
    seconds: float | None,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen(changes)
    with trio.move_on_after(100_000) as never:
        await until_abandoned(seen.gone, seen.clients)
    assert never.cancelled_caught == (seconds is None)
    if seconds is not None:
        assert trio.current_time() - seen.began == pytest.approx(seconds, abs=LOOK_EVERY)
        assert "whoever started this server has ended" in caplog.text
        assert caplog.records[-1].levelno == logging.WARNING


class Output:
    """Stands for the standard output."""

    def __init__(self, file: "IO[str] | int") -> None:
        self._number = file if isinstance(file, int) else file.fileno()

    def fileno(self) -> int:
        """Its number."""
        return self._number


def starter_with(monkeypatch: pytest.MonkeyPatch, output: object) -> Starter:
    monkeypatch.setattr(sys, "stdout", output)
    return Starter()


def test_a_starter_is_gone_when_it_has_ended_and_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    starter = starter_with(monkeypatch, Output(writing))
    assert starter.can_go
    assert not starter.is_gone()
    os.close(reading)
    assert not starter.is_gone()  # it lives, and has read all that it wanted to
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert starter.is_gone()
    os.close(writing)


def test_a_starter_that_has_ended_with_somebody_who_reads_on_is_not_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    starter = starter_with(monkeypatch, Output(writing))
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert not starter.is_gone()  # as with `exeunt-runtime --port 7000 | logger &` in a script
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("output", ["file", "none", "closed"])
def test_who_gives_the_server_a_file_or_nothing_to_write_to_wants_it_to_stay(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        outputs = {"file": Output(file), "none": None, "closed": Output(1_000_000)}
        starter = starter_with(monkeypatch, outputs[output])
        monkeypatch.setattr(os, "getppid", lambda: 1)
        assert not starter.can_go
        assert not starter.is_gone()


RUNTIME = (
    "from exeunt.cli.serve import orphans\n"
    "orphans.LOOK_EVERY, orphans.GRACE = 0.01, 0.05\n"
    "from exeunt.cli.serve.runtime import main\n"
    "main()\n"
)

CLIENT = (
    "import json, re, socket, subprocess, sys, time\n"
    "runtime, pair = sys.argv[1], sys.argv[2] == 'pair'\n"
    "ours, theirs = socket.socketpair()\n"
    "started = subprocess.Popen([sys.executable, '-c', runtime, '--headless', '--port', '0', '--log-level', 'warn'],\n"
    "    stdin=subprocess.DEVNULL, stdout=theirs if pair else subprocess.PIPE)\n"
    "theirs.close()\n"
    "output = ours.makefile('rb') if pair else started.stdout\n"
    "port = int(re.search(rb'port (\\d+)', output.readline())[1])\n"
    "print(json.dumps({'port': port, 'pid': started.pid}), flush=True)\n"
    "time.sleep(1000)\n"
)


@pytest.mark.parametrize("kind", ["pipe", "pair"])
async def test_a_runtime_ends_after_its_client_was_killed(kind: str) -> None:
    """With a pipe, as of most languages, and with a pair of sockets, as Node.js makes them."""
    client = await trio.lowlevel.open_process(
        [sys.executable, "-c", CLIENT, RUNTIME, kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    pid = None
    try:
        with trio.fail_after(LONGEST):
            assert client.stdout is not None
            assert client.stderr is not None
            started = json.loads(await client.stdout.receive_some())
            pid = started["pid"]
            stream = await trio.open_tcp_stream("127.0.0.1", started["port"])
            client.kill()
            await client.wait()
            # Of the client's processes only the runtime is left, and it serves who is still connected.
            await stream.send_all(frame_of_ping())
            assert b"pong" in await stream.receive_some()
            await stream.aclose()
            # It ends when all of the client's processes have.
            said = b"".join([piece async for piece in client.stderr])
            assert b"whoever started this server has ended" in said
            pid = None
    finally:
        client.kill()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)


def frame_of_ping() -> bytes:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"message":"x"}}'
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
