"""Synchronous handlers run in worker threads. Real threads need real time: these tests wait for events only."""

import threading
from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from exeunt import HostOptions, NotInWorkerThread, ToolInvocation, tool
from exeunt.actors.events import ToolResultStale
from exeunt.testing import ScriptedModel, call, checked_host
from tests.actors.turn_support import calls_counted, counted, open_session, outcomes, watch

LONG = 30.0
"""Seconds that nothing here takes: they only end a test that hangs."""


async def until(reached: Callable[[], bool]) -> None:
    """Give the host's loop to others until *reached*."""
    with trio.fail_after(LONG):
        await trio.lowlevel.checkpoint()
        while not reached():  # noqa: ASYNC110 - a thread cannot set a trio.Event
            await trio.sleep(0.001)


async def test_a_synchronous_handler_runs_beside_the_loop() -> None:
    threads: list[threading.Thread] = []

    @tool(is_terminal=True)
    def act(number: int) -> str:
        threads.append(threading.current_thread())
        return f"number {number}"

    model = ScriptedModel([call("act", number=3)])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        reply = await session.send_and_wait("go", LONG)

        assert (reply.content, reply.reason) == ("number 3", "terminal_tool")
        assert threads[0] is not threading.current_thread()
    model.verify()


async def test_what_a_synchronous_handler_raises_is_a_failure() -> None:
    @tool(is_terminal=True)
    def act() -> None:
        raise OSError("disk full")

    model = ScriptedModel([call("act"), "noted"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        reply = await session.send_and_wait("go", LONG)

        assert reply.reason == "completed"
        assert model.requests[1].results["call_1"].endswith("due to error: OSError: disk full")
        assert calls_counted(host) == {("act", "failure", "true"): 1}
    model.verify()


async def test_synchronous_calls_of_a_batch_run_at_once() -> None:
    both = threading.Barrier(2, timeout=LONG)

    @tool
    def meet() -> int:
        return both.wait()

    model = ScriptedModel([[call("meet"), call("meet")], "met"])
    async with checked_host() as host:
        session = await open_session(host, model, meet)
        await session.send_and_wait("go", LONG)

        assert sorted(model.requests[1].results.values()) == ["0", "1"]
    model.verify()


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_a_thread_is_abandoned_and_what_it_returns_is_stale(how: str) -> None:
    entered, leave = threading.Event(), threading.Event()
    noticed: list[bool] = []

    @tool(timeout=0.05 if how == "timeout" else LONG, is_terminal=True)
    def act(invocation: ToolInvocation) -> str:
        noticed.append(invocation.cancelled)
        entered.set()
        leave.wait(LONG)
        noticed.append(invocation.cancelled)
        return "late"

    model = ScriptedModel([call("act"), "without it"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        stale = watch(session, ToolResultStale)
        try:
            await session.send("go")
            await until(entered.is_set)
            if how == "cancelled":
                await session.abort()
                await session.send("next")
            await until(lambda: model.calls == 2 and session.statistics().phase == "idle")
            assert await outcomes(session) == [("act", how)]
            assert stale == []
        finally:
            leave.set()
        await until(lambda: len(stale) == 1)

        assert noticed == [False, True]
        assert (stale[0].tool_call_id, stale[0].tool_name) == ("call_1", "act")
        assert counted(host, "exeunt_stale_results_total") == {(): 1}
    model.verify()


async def test_a_synchronous_handler_calls_the_session_through_the_loop() -> None:
    @tool
    def act(invocation: ToolInvocation) -> str:
        return invocation.run(invocation.session.send, "more work")

    model = ScriptedModel([call("act"), "one", "two"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        await session.send("go")
        await until(lambda: model.calls == 3 and session.statistics().phase == "idle")

        assert model.requests[2].contents[-1] == "more work"
    model.verify()


async def test_a_synchronous_handler_may_clear_the_context() -> None:
    @tool(is_terminal=True)
    def start_over(invocation: ToolInvocation) -> str:
        result = invocation.run(invocation.session.history.clear_context, "step 2")
        return f"cleared {result.messages_cleared}"

    model = ScriptedModel([call("start_over"), "on step 2"])
    async with checked_host() as host:
        session = await open_session(host, model, start_over)
        reply = await session.send_and_wait("go", LONG)

        assert reply.content == "on step 2"
        assert model.requests[1].contents == ("step 2",)
    model.verify()


async def test_a_thread_that_was_abandoned_can_no_longer_call_the_session() -> None:
    entered, leave = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @tool
    def act(invocation: ToolInvocation) -> None:
        entered.set()
        leave.wait(LONG)
        try:
            invocation.run(invocation.session.send, "too late")
        except BaseException as error:
            raised.append(error)
            raise

    model = ScriptedModel([call("act")])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        stale = watch(session, ToolResultStale)
        await session.send("go")
        await until(entered.is_set)
        await session.abort()
        leave.set()
        await until(lambda: bool(raised) and bool(stale))

        assert isinstance(raised[0], trio.Cancelled)
        assert session.statistics().queued == 0
    model.verify()


async def test_run_is_refused_on_the_loop_itself() -> None:
    refused: list[Exception] = []

    @tool
    async def act(invocation: ToolInvocation) -> None:
        try:
            invocation.run(trio.sleep, 0)
        except NotInWorkerThread as error:
            refused.append(error)

    model = ScriptedModel([call("act"), "noted"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        await session.send_and_wait("go", LONG)

        assert len(refused) == 1
        assert await outcomes(session) == [("act", "success")]
    model.verify()


async def test_the_host_bounds_its_worker_threads() -> None:
    entered, leave = threading.Semaphore(0), threading.Event()
    running: list[int] = []
    lock = threading.Lock()
    most: list[int] = [0]

    @tool
    def act() -> None:
        with lock:
            running.append(1)
            most[0] = max(most[0], len(running))
        entered.release()
        leave.wait(LONG)
        with lock:
            running.pop()

    model = ScriptedModel([[call("act")] * 5, "done"])
    async with checked_host(options=HostOptions(threads=2)) as host:
        session = await open_session(host, model, act)
        await session.send("go")
        await until(lambda: len(running) == 2)
        await wait_all_tasks_blocked()
        assert len(running) == 2
        leave.set()
        await until(lambda: session.statistics().phase == "idle")

        assert most == [2]
        assert await outcomes(session) == [("act", "success")] * 5
    model.verify()


async def test_a_coroutine_from_a_synchronous_function_is_awaited_on_the_loop() -> None:
    async def inner() -> str:
        await trio.lowlevel.checkpoint()
        return threading.current_thread().name

    @tool
    def act() -> object:
        return inner()

    model = ScriptedModel([call("act"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, act)
        await session.send_and_wait("go", LONG)

        assert model.requests[1].results == {"call_1": threading.current_thread().name}
    model.verify()
