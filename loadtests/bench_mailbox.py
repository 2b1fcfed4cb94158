"""Messages through the mailbox of a session's actor, against a trio memory channel in the same rounds.

An actor runs a handler in `put` itself; a channel needs a task at its other end. The handler counts, as does the
task. "session.send" is a whole message: checked, accepted, logged and shown, to a session that is busy.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable

import outcome
import trio

from exeunt import open_host
from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from loadtests.crowd import open_crowd
from loadtests.frame import Size, Table, main, quartile, rounds

BURST = 100
BOUND = 256
"""Messages that may wait in a session."""


class HangingModel:
    """Never answers."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Wait for ever."""
        await trio.sleep_forever()
        raise AssertionError

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Wait for ever."""
        yield await self.complete(request)


class Count:
    """What arrives is counted here."""

    arrived = 0


def _arrive(actor: SessionActor, count: Count) -> None:
    count.arrived += 1


def _answer(actor: SessionActor, waiter: Waiter) -> None:
    actor.wake(waiter, outcome.Value(None))


async def actor_bursts(bursts: int) -> float:
    """Return the seconds for each message that is put in bursts."""
    async with open_host() as host:
        await open_crowd(host, 1)
        (actor,) = host.actors()
        count = Count()
        began = time.perf_counter()
        for _ in range(bursts):
            for _ in range(BURST):
                actor.put(_arrive, count)
            await trio.lowlevel.checkpoint()
        assert count.arrived == bursts * BURST
        return (time.perf_counter() - began) / count.arrived


async def channel_bursts(bursts: int) -> float:
    """Return the seconds for each message that goes through a channel in bursts."""
    send, receive = trio.open_memory_channel[int](BURST)
    count = Count()

    async def serve() -> None:
        async for _ in receive:
            count.arrived += 1

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with send:
            for _ in range(bursts):
                for number in range(BURST):
                    await send.send(number)
    assert count.arrived == bursts * BURST
    return (time.perf_counter() - began) / count.arrived


async def actor_ping_pong(bursts: int) -> float:
    """Return the seconds for each question of a task to an actor, with an answer."""
    async with open_host() as host:
        await open_crowd(host, 1)
        (actor,) = host.actors()
        began = time.perf_counter()
        for _ in range(bursts):
            waiter = Waiter()
            actor.put(_answer, waiter)
            await waiter.wait()
        return (time.perf_counter() - began) / bursts


async def channel_ping_pong(bursts: int) -> float:
    """Return the seconds for each question of a task to another through two channels."""
    ask, asked = trio.open_memory_channel[int](0)
    reply, replies = trio.open_memory_channel[int](0)

    async def serve() -> None:
        async with reply:
            async for number in asked:
                await reply.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        began = time.perf_counter()
        async with ask:
            for number in range(bursts):
                await ask.send(number)
                await replies.receive()
        seconds = time.perf_counter() - began
    return seconds / bursts


async def busy_session(bursts: int) -> float:
    """Return the seconds for each message that is sent to a session that cannot take it in, up to its bound."""
    fills = math.ceil(bursts * BURST / BOUND / 10)
    async with open_host() as host:
        (session,) = await open_crowd(host, 1, model=HangingModel(), mailbox_size=BOUND)
        taken = 0.0
        for _ in range(fills):
            await session.send("the turn that hangs")
            began = time.perf_counter()
            for _ in range(BOUND):
                await session.send("one that waits")
            taken += time.perf_counter() - began
            await session.abort()
        return taken / (fills * BOUND)


CHANNEL_BURSTS = f"trio channel, bursts of {BURST}"
CHANNEL_PING_PONG = "trio channels, ask and answer"

SUBJECTS: list[tuple[str, Callable[[int], Awaitable[float]], str]] = [
    (CHANNEL_BURSTS, channel_bursts, CHANNEL_BURSTS),
    (f"actor.put, bursts of {BURST}", actor_bursts, CHANNEL_BURSTS),
    (f"session.send to a busy session, up to {BOUND}", busy_session, CHANNEL_BURSTS),
    (CHANNEL_PING_PONG, channel_ping_pong, CHANNEL_PING_PONG),
    ("actor.put, ask and answer", actor_ping_pong, CHANNEL_PING_PONG),
]
"""Names, what is measured, and the name of what it is compared with."""


def run(size: Size) -> None:
    """Measure and print."""
    samples: defaultdict[str, list[float]] = defaultdict(list)
    most, seconds, bursts = size.pick(full=(20, 30.0, 500), quick=(4, 4.0, 100), tiny=(2, 0.0, 10))
    try:
        for _ in rounds(most, seconds):
            for name, subject, _ in random.sample(SUBJECTS, len(SUBJECTS)):
                samples[name].append(trio.run(subject, bursts))
    finally:
        table = Table("messages through it", "us each", "messages/s", "x channel")
        for name, _, base in SUBJECTS:
            if samples[name] and samples[base]:
                cost = quartile(samples[name])
                table.row(name, cost * 1e6, 1 / cost, quartile(samples[base]) / cost)


if __name__ == "__main__":
    main(run, __doc__)
