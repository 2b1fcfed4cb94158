"""What waits for a slow client: bounded, in order, without the session noticing."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, say
from exeunt.wire.framing import FrameReader
from exeunt.wire.options import WireOptions
from exeunt.wire.outbox import Outbox
from tests.wire.wire_client import open_wire

LIMIT = 1000


def bodies(outbox: Outbox) -> list[bytes]:
    reader, seen = FrameReader(10**6), list[bytes]()
    while data := outbox.take():
        seen += reader.feed(data)
    return seen


def test_what_is_put_comes_out_in_order() -> None:
    outbox = Outbox(LIMIT, lambda: 0.0)
    for number in range(10):
        outbox.put(b"%d" % number)
    assert bodies(outbox) == [b"%d" % number for number in range(10)]
    assert outbox.size == 0


def test_events_of_the_moment_go_first() -> None:
    outbox = Outbox(LIMIT, lambda: 0.0)
    outbox.put(b"kept one")
    for _ in range(20):
        outbox.put(b"x" * 50, droppable=True)
    outbox.put(b"kept two " + b"y" * 500)
    assert not outbox.overflowed
    assert [body[:8] for body in bodies(outbox) if not body.startswith(b"x")] == [b"kept one", b"kept two"]
    assert outbox.dropped > 0


def test_more_than_the_limit_may_wait_for_a_moment_and_not_for_longer() -> None:
    clock = [0.0]
    outbox = Outbox(LIMIT, lambda: clock[0])
    for _ in range(3):
        outbox.put(b"x" * 900)
    assert outbox.is_full
    clock[0] = 4.9
    outbox.put(b"y")
    assert not outbox.overflowed
    clock[0] = 5.1
    outbox.put(b"z")
    assert outbox.overflowed


def test_a_client_that_catches_up_has_its_time_again() -> None:
    clock = [0.0]
    outbox = Outbox(LIMIT, lambda: clock[0])
    outbox.put(b"x" * 900)
    outbox.put(b"x" * 900)
    bodies(outbox)
    clock[0] = 60.0
    outbox.put(b"y" * 900)
    outbox.put(b"y" * 900)
    assert not outbox.overflowed


def test_a_burst_has_a_bound() -> None:
    outbox = Outbox(LIMIT, lambda: 0.0)
    for _ in range(100):
        outbox.put(b"x" * 900)
    assert outbox.overflowed
    assert outbox.size <= 5 * LIMIT


def test_a_single_message_over_the_limit_is_sent_and_what_follows_it() -> None:
    outbox = Outbox(LIMIT, lambda: 0.0)
    outbox.put(b"x" * (LIMIT * 2))
    outbox.put(b"end")
    assert not outbox.overflowed
    assert bodies(outbox) == [b"x" * (LIMIT * 2), b"end"]


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans())))
def test_nothing_that_must_arrive_is_lost_and_the_bound_holds(
    puts: list[tuple[int, bool, bool]],
) -> None:
    outbox = Outbox(LIMIT, lambda: 0.0)
    expected, seen = list[bytes](), list[bytes]()
    for number, (size, droppable, read) in enumerate(puts):
        if outbox.overflowed:
            break
        body = b"%d:" % number + b"x" * size
        outbox.put(body, droppable=droppable)
        if not droppable and not outbox.overflowed:
            expected.append(body)
        assert outbox.size <= 5 * LIMIT
        if read:
            seen += bodies(outbox)
    seen += bodies(outbox)
    numbers = [int(body.partition(b":")[0]) for body in seen]
    assert numbers == sorted(numbers)
    assert [body for body in seen if body in set(expected)] == expected


class Unread(trio.abc.Stream):
    """A client that sends, and never reads."""

    def __init__(self, *received: bytes) -> None:
        self._received = list(received)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.sleep_forever()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._received:
            await trio.sleep_forever()
        return self._received.pop(0)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_client_that_never_reads_is_cut_off_after_the_write_time_out(
    autojump_clock: MockClock,
) -> None:
    async with open_wire(ScriptedModel([]), options=WireOptions(write_timeout=60)) as wire:
        began = trio.current_time()
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        await wire.server.serve_stream(Unread(b"Content-Length: %d\r\n\r\n%b" % (len(ping), ping)))
        assert trio.current_time() - began == pytest.approx(60)
        assert wire.server.statistics().closed == {"stalled": 1}


async def test_a_session_is_not_slowed_by_a_client_that_never_reads(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("word " * 2_000, chunks=500), "second"])
    async with open_wire(model, options=WireOptions(outbox=20_000, write_timeout=3600)) as wire:
        owner = await wire.connect()
        await owner.create(streaming=True)
        resume = b'{"jsonrpc":"2.0","id":1,"method":"session.resume","params":{"sessionId":"s"}}'
        stuck = Unread(b"Content-Length: %d\r\n\r\n%b" % (len(resume), resume))
        wire.nursery.start_soon(wire.server.serve_stream, stuck)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        await owner.say("go")
        await owner.event("session.idle")
        assert trio.current_time() == began
        assert wire.server.statistics().events_dropped > 0
        # What it was sent that cannot be dropped fits, so it is connected still.
        assert wire.server.statistics().connections == 2


async def test_a_client_is_cut_off_when_its_bound_is_passed(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["x" * 30_000, "y" * 30_000])
    async with open_wire(model, options=WireOptions(outbox=10_000, write_timeout=3600)) as wire:
        owner = await wire.connect()
        await owner.create()
        resume = b'{"jsonrpc":"2.0","id":1,"method":"session.resume","params":{"sessionId":"s"}}'
        stuck = Unread(b"Content-Length: %d\r\n\r\n%b" % (len(resume), resume))
        wire.nursery.start_soon(wire.server.serve_stream, stuck)
        await wait_all_tasks_blocked()
        await owner.say("go")
        await owner.event("session.idle")
        assert wire.server.statistics().closed == {}
        await trio.sleep(6)
        await owner.say("again")
        await owner.event("session.idle", 2)
        assert wire.server.statistics().closed == {"slow_client": 1}
