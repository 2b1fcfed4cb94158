"""After an attack the server holds what it held before: connections, sessions, and memory."""

import gc
import logging
import tracemalloc
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel
from exeunt.wire.framing import frame
from exeunt.wire.options import WireOptions
from tests.wire.wire_client import Wire, open_wire

MIB = 1024 * 1024

BOMB = b"[" * 200_000
DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
WIDE = b"[" + b"0," * 400_000 + b"0]"

ROUNDS = 20
"""Of each attack: what one leaves behind shows when it is left twenty times."""

SPARE = 0.5 * MIB
"""Bytes that caches may take at their first use. One attack that stays is larger."""


def request(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method.encode(), params)


ATTACKS = {
    "nested lists": frame(request("session.create", BOMB)),
    "nested objects": frame(request("session.send", DEEP)),
    "a wide list": frame(request("ping", WIDE)),
    "nested tools": frame(
        request("session.create", b'{"sessionId":"s","tools":[{"name":"t","parameters":%b}]}' % DEEP)
    ),
    "a body that never comes": b"Content-Length: 30000000\r\n\r\n" + b"x" * MIB,
    "a head that never ends": b"X-Padding: " + b"y" * MIB,
    "a frame over the limit": b"Content-Length: 99999999999\r\n\r\n",
    "a long method": frame(request("m" * MIB, b"{}")),
    "a long id": frame(b'{"jsonrpc":"2.0","id":"' + b"i" * MIB + b'","method":"ping"}'),
    "an unknown session of a long name": frame(
        request("session.abort", b'{"sessionId":"' + b"s" * MIB + b'"}')
    ),
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What pytest keeps of the log would count as the server's memory."""
    caplog.set_level(logging.CRITICAL, "exeunt.wire")


async def attack(wire: Wire, data: bytes) -> None:
    """Send it, take no notice of what comes, and hang up."""
    client = wire.raw()
    with trio.move_on_after(60):
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await client.send_bytes(data)
        await wait_all_tasks_blocked()
    await client.stream.aclose()
    await wait_all_tasks_blocked()


def held() -> int:
    """Bytes that Python holds."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("data", ATTACKS.values(), ids=ATTACKS)
async def test_memory_returns_after_an_attack(data: bytes, autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel(["hi"])) as wire:
        await attack(wire, data)
        tracemalloc.start()
        try:
            before = held()
            for _ in range(ROUNDS):
                await attack(wire, data)
            grown = held() - before
        finally:
            tracemalloc.stop()
        assert grown < SPARE
        assert wire.server.statistics().connections == 0

        client = await wire.connect()
        await client.create("mine")
        await client.say("hello", session="mine")
        assert (await client.event("assistant.message"))["data"]["content"] == "hi"


async def test_memory_returns_after_a_thousand_clients_that_say_half_a_frame(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel(["hi"]), options=WireOptions(frame_timeout=30)) as wire:
        await attack(wire, b"Content-Length: 5")
        tracemalloc.start()
        try:
            before = held()
            clients = [wire.raw() for _ in range(1_000)]
            for client in clients:
                await client.send_bytes(b"Content-Length: 100000\r\n\r\n" + b"x" * 1_000)
            await wait_all_tasks_blocked()
            assert wire.server.statistics().connections == 1_000
            for client in clients:
                await client.closed.wait()
            await wait_all_tasks_blocked()
            clients.clear()
            grown = held() - before
        finally:
            tracemalloc.stop()
        statistics = wire.server.statistics()
        assert (statistics.connections, statistics.closed) == (0, {"silent_in_a_frame": 1_000})
        # trio's own sets keep the room of a thousand tasks; a thousand buffers that stay are more than that.
        assert grown < 2 * SPARE
