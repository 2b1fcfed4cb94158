"""The load of `fastapi_service.py`: many users at once, each with a session of its own, over real sockets.

    python examples/fastapi_load.py --users 1000 --messages 3

Starts the service in a process of its own, and says how long users waited and how much memory it took.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONNECTING = 200
"""Users that connect at once: beyond it the system's queue of new connections overflows, which measures nothing."""


class Waits:
    """Seconds that users waited: for the first piece of an answer, and for the last."""

    def __init__(self) -> None:
        self.first: list[float] = []
        self.last: list[float] = []


class User:
    """One connection, kept open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def request(self, path: str, body: object = None) -> AsyncIterator[bytes]:
        """Post, and give the body of the answer as it comes."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status, *fields = answer.decode().lower().splitlines()
        if not status.split()[1].startswith("2"):
            raise RuntimeError(f"{path}: {status}")
        length = next((int(f.partition(":")[2]) for f in fields if f.startswith("content-length:")), None)
        if length is not None:
            yield await self._reader.readexactly(length)
            return
        while size := int(await self._reader.readline(), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()


class Crowd:
    """What all users share."""

    def __init__(self, port: int, users: int, messages: int, think: float) -> None:
        self.port, self.users, self.messages, self.think = port, users, messages, think
        self.waits = Waits()
        self.connecting = asyncio.Semaphore(CONNECTING)
        self.together = asyncio.Barrier(users + 1)


async def live(crowd: Crowd) -> None:
    """One user: connects and makes a session; once all have one, says something and reads the answer, several times."""
    user = User(crowd.port)
    async with crowd.connecting:
        await user.connect()
        made = json.loads(b"".join([part async for part in user.request("/sessions")]))
    await crowd.together.wait()
    for _ in range(crowd.messages):
        await asyncio.sleep(random.uniform(0, 2 * crowd.think))
        began = time.perf_counter()
        first = 0.0
        async for part in user.request(
            f"/sessions/{made['session_id']}/messages", {"prompt": "Where is order 7?"}
        ):
            if not first and b"assistant.message_delta" in part:
                first = time.perf_counter() - began
        crowd.waits.first.append(first)
        crowd.waits.last.append(time.perf_counter() - began)
    await crowd.together.wait()
    await user.close()


async def load(crowd: Crowd, pid: int) -> None:
    """Let all users live, and report."""
    first = User(crowd.port)
    await first.connect()
    _ = [part async for part in first.request("/sessions")]  # now the service is up
    users, waits, empty = crowd.users, crowd.waits, resident(pid)
    async with asyncio.TaskGroup() as group:
        for _ in range(users):
            group.create_task(live(crowd))
        await crowd.together.wait()
        print(f"{users} users have a session each, at once", flush=True)
        connected, began = resident(pid), time.perf_counter()
        await crowd.together.wait()
        seconds, busy = time.perf_counter() - began, resident(pid)
    print(f"{len(waits.last)} answers in {seconds:.1f} s: {len(waits.last) / seconds:.0f} a second")
    for name, values in (("first piece", waits.first), ("whole answer", waits.last)):
        p50, p99 = (statistics.quantiles(values, n=100, method="inclusive")[at] for at in (49, 98))
        print(f"{name}: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, worst {max(values) * 1000:.0f} ms")
    await first.close()
    each = (connected - empty) / users / 1024
    print(
        f"memory of the service: {empty >> 20} MiB, {connected >> 20} MiB with all users "
        f"({each:.1f} KiB each, connection and session), {busy >> 20} MiB after their answers"
    )


async def play(port: int, pid: int, chosen: argparse.Namespace) -> None:
    await load(Crowd(port, chosen.users, chosen.messages, chosen.think), pid)


def resident(pid: int) -> int:
    """Bytes of memory of a process; 0 where the system does not say."""
    statm = Path(f"/proc/{pid}/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=3)
    parser.add_argument(
        "--think", type=float, default=1.0, help="seconds between a user's messages, on average"
    )
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio", help="of the service")
    chosen = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        service = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "examples.fastapi_service:app", "--loop", chosen.loop),
                *("--fd", str(listening.fileno()), "--timeout-keep-alive", "300", "--log-level", "warning"),
            ],
            cwd=ROOT,
            pass_fds=[listening.fileno()],
        )
        try:
            asyncio.run(play(listening.getsockname()[1], service.pid, chosen))
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main()
