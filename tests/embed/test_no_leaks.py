"""After thousands of sessions whose callers were cancelled in the middle of a tool, everything is as it was before."""

import asyncio
import gc
import os
import sys
import threading
from typing import Any

import pytest
import trio

import exeunt
import exeunt.embed.threads as in_threads
from exeunt.embed.asyncio import SessionHost, approve_all, open_host, tool
from exeunt.testing import ScriptedModel, call

MANY = [pytest.param(300, id="300"), pytest.param(10_000, id="10000", marks=pytest.mark.slow)]
AT_ONCE = 100


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only


def threads_but_the_pools() -> int:
    """How many threads there are beside those of trio's pool, which end when they had nothing to do for 10 s."""
    return sum(not thread.name.startswith(("Trio", "exeunt worker")) for thread in threading.enumerate())


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")


class Work:
    """A tool that never returns by itself, and counts how often it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.entered: dict[str, asyncio.Event] = {}

    async def work(self, invocation: exeunt.ToolInvocation) -> str:
        """Work."""
        self.entered[invocation.session_id].set()
        try:
            await asyncio.sleep(10_000)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ""


async def one_session(host: SessionHost, work: Work, made: Any, name: str) -> None:
    model = ScriptedModel([call("work"), "still here"])
    session = await host.create_session(
        model=model, tools=[made], on_permission_request=approve_all, session_id=name
    )
    work.entered[name] = asyncio.Event()
    waiting = asyncio.create_task(session.send_and_wait("go", abort_on_cancel=True))
    await work.entered[name].wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # The tool was cancelled with its caller, and the context that is left is one for a model.
    assert (await session.send_and_wait("are you there?")).content == "still here"
    messages = session.history.messages()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert messages[2].tool_call_id == messages[1].tool_calls[0].id
    del work.entered[name]
    await host.delete_session(name)


@needs_proc
@pytest.mark.parametrize("many", MANY)
def test_cancelled_callers_leave_nothing_on_asyncio(many: int) -> None:
    work = Work()
    made = tool(work.work)

    async def round_of(host: SessionHost, number: int, size: int) -> None:
        await asyncio.gather(*(one_session(host, work, made, f"{number}-{index}") for index in range(size)))

    async def main() -> None:
        async with open_host() as host:
            await round_of(host, -1, AT_ONCE)  # workers, threads and files that stay for the next
            await asyncio.sleep(0)
            before = await counts(host)
            for number in range(many // AT_ONCE):
                await round_of(host, number, AT_ONCE)
            await asyncio.sleep(0)
            assert await counts(host) == before
            assert work.cancelled == many + AT_ONCE
            assert host.statistics().sessions == {}
        assert len(asyncio.all_tasks()) == 1
        assert not trio.lowlevel.in_trio_run()

    threads, files = threads_but_the_pools(), descriptors()
    asyncio.run(main())
    gc.collect()
    assert threads_but_the_pools() == threads
    assert descriptors() == files


async def counts(host: SessionHost) -> tuple[int, int, int, int, int]:
    """Tasks of both loops, calls under way, threads, files."""

    async def in_trio() -> int:
        await trio.testing.wait_all_tasks_blocked()
        return trio.lowlevel.current_statistics().tasks_living

    tasks = await host.run_trio(in_trio)
    pending = len(host._guest.pending)  # pyright: ignore[reportPrivateUsage]
    return tasks, len(asyncio.all_tasks()), pending, threads_but_the_pools(), descriptors()


@needs_proc
@pytest.mark.parametrize("many", MANY)
def test_aborted_callers_leave_nothing_in_threads(many: int) -> None:
    @tool
    async def work() -> str:
        """Work."""
        await trio.sleep_forever()
        return ""

    def one_session(host: in_threads.SessionHost, name: str) -> None:
        session = host.create_session(
            model=ScriptedModel([call("work")]),
            tools=[work],
            on_permission_request=approve_all,
            session_id=name,
        )
        with session.events() as events:
            session.send("go")
            next(event for event in events if event.type == "tool.execution_start")
        assert session.abort().tools_cancelled == ("call_1",)
        assert [message.role for message in session.history.messages()] == ["user", "assistant", "tool"]
        host.delete_session(name)

    def living(host: in_threads.SessionHost) -> tuple[int, int, int, int]:
        async def in_trio() -> int:
            await trio.testing.wait_all_tasks_blocked()
            return trio.lowlevel.current_statistics().tasks_living

        tasks = host.run_trio(in_trio)
        pending = len(host._runtime.pending)  # pyright: ignore[reportPrivateUsage]
        return tasks, pending, threads_but_the_pools(), descriptors()

    with in_threads.open_host():
        pass  # from here on the thread that waits for the end of the interpreter is there
    threads, files = threads_but_the_pools(), descriptors()
    with in_threads.open_host() as host:
        one_session(host, "first")
        before = living(host)
        for number in range(many):
            one_session(host, str(number))
        assert living(host) == before
        assert host.statistics().sessions == {}
    gc.collect()
    assert threads_but_the_pools() == threads
    assert descriptors() == files
