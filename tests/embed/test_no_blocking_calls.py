"""Nothing that the host does blocks the asyncio loop, also with a journal on the disk."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, BlockingError, blockbuster_ctx

from exeunt.embed.asyncio import ToolInvocation, approve_all, open_host, tool
from exeunt.testing import ScriptedModel, call, say


@pytest.fixture
def detector() -> Iterator[BlockBuster]:
    """Raises `BlockingError` where a thread that runs an asyncio loop sleeps, or waits for a file, socket or lock."""
    with blockbuster_ctx() as found:
        yield found


@tool(is_terminal=True)
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear."""
    await invocation.session.history.clear_context(prompt)
    return "cleared"


@tool
def look(invocation: ToolInvocation) -> str:
    """Look, with a call that blocks its worker thread."""
    time.sleep(0.001)
    invocation.run(invocation.session.get_events)
    return "looked"


async def live(journal: str | None) -> None:
    """Everything that a program does with a session, in short."""
    replies: list[Any] = ["hello", call("look"), "seen", call("clear_context", prompt="anew"), say("fresh")]
    async with open_host(journal=journal) as host:
        session = await host.create_session(
            model=ScriptedModel(replies),
            tools=[clear_context, look],
            on_permission_request=approve_all,
            session_id="ada",
            streaming=True,
        )
        async with session.events(from_seq=1) as events:
            await session.send_and_wait("hi")
            async for event in events:
                if event.type == "session.idle":
                    break
        await session.send_and_wait("look")
        await session.send_and_wait("clear")
        await session.disconnect()
        session = await host.resume_session("ada")
        (end, *_) = [event for event in await session.get_events() if event.type == "turn.end"]
        await session.history.truncate(end.id)
        await host.fork_session("ada", new_session_id="eve")
        await host.list_sessions()
        await host.delete_session("eve")
        await host.prune_sessions(keep=0)


def test_no_call_blocks_the_loop_with_a_log_in_memory(detector: BlockBuster) -> None:
    asyncio.run(live(None))


def test_no_call_blocks_the_loop_with_a_journal_on_the_disk(detector: BlockBuster, tmp_path: Path) -> None:
    asyncio.run(live(f"sqlite:///{tmp_path}/log.sqlite3"))


def test_the_detector_finds_a_handler_that_blocks(detector: BlockBuster) -> None:
    model = ScriptedModel([call("block"), "done"])

    @tool
    async def block() -> str:
        time.sleep(0.001)  # noqa: ASYNC251 - on purpose
        return ""

    async def main() -> None:
        async with open_host() as host:
            session = await host.create_session(model=model, tools=[block], on_permission_request=approve_all)
            await session.send_and_wait("go")

    asyncio.run(main())
    assert BlockingError.__name__ in model.requests[1].results["call_1"]


def test_a_slow_synchronous_handler_does_not_delay_other_sessions(detector: BlockBuster) -> None:
    """The handler is let go by what the other session has done in the meantime."""
    import threading

    entered, go_on = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Work."""
        entered.set()
        assert go_on.wait(30)
        return "worked"

    async def main() -> None:
        async with open_host() as host:
            busy = await host.create_session(
                model=ScriptedModel([call("slow"), "done"]), tools=[slow], on_permission_request=approve_all
            )
            waiting = asyncio.create_task(busy.send_and_wait("go"))
            other = await host.create_session(model=ScriptedModel([], default="quick"))
            while not entered.is_set() or busy.statistics().in_flight != ("slow",):
                await other.send_and_wait("x")
            for _ in range(100):
                assert (await other.send_and_wait("x")).content == "quick"
            assert not waiting.done()
            go_on.set()
            assert (await waiting).content == "done"

    asyncio.run(main())
