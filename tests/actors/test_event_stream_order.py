"""A stream that begins in the log and goes on live shows every event once, in the order in which it happened."""

import pytest
import trio

from exeunt.actors.events import Event
from exeunt.testing import ScriptedModel, checked_host, say


@pytest.mark.parametrize("rest", [0.0, 0.5])
async def test_ephemeral_events_come_where_they_happened_also_while_the_log_is_read(
    autojump_clock: None, rest: float
) -> None:
    model = ScriptedModel([say("one two", gap=0.1), say("three four", gap=0.1)])
    async with checked_host() as host:
        session = await host.create_session(model=model, streaming=True)
        happened: list[Event] = list(await session.get_events())
        session.on(happened.append)
        stream = session.events(from_seq=1)
        await session.send("1")
        await session.send("2")
        shown: list[Event] = []
        while len(shown) < len(happened) or session.statistics().phase != "idle":
            shown.append(await anext(stream))
            await trio.sleep(rest)
        await stream.aclose()
        assert [(e.type, e.seq) for e in shown] == [(e.type, e.seq) for e in happened]
    model.verify()
