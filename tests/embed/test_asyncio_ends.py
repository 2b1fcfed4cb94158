"""How hosts on asyncio begin and end, in order, also when the loop does not."""

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

import exeunt
from exeunt import HostLoopClosed, SessionClosed, TrioAlreadyRunning, WrongEventLoop
from exeunt.embed.asyncio import SessionHost, approve_all, open_host, tool
from exeunt.embed.asyncio.virtual_time import run_virtual
from exeunt.testing import ScriptedModel, call, hang


def watched(host: SessionHost) -> list[str]:
    """The types of all events of a host, as they happen."""
    seen: list[str] = []
    host.observe(lambda _, events: seen.extend(event.type for event in events))
    return seen


def test_a_cancelled_body_ends_the_host_in_order() -> None:
    async def main() -> None:
        entered, seen = asyncio.Event(), list[str]()

        @tool
        async def work() -> str:
            entered.set()
            try:
                await asyncio.sleep(1000)
            finally:
                seen.append("handler ended")
            return ""

        async def body() -> None:
            async with open_host() as host:
                host.observe(lambda _, events: seen.extend(event.type for event in events))
                session = await host.create_session(
                    model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
                )
                await session.send_and_wait("go")

        task = asyncio.create_task(body())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (
            seen[-5:]
            == [
                "handler ended",
                "tool.execution_complete",
                "assistant.turn_end",
                "turn.end",
                "session.shutdown",
            ]
            or seen[-1] == "session.shutdown"
        )
        assert seen.index("handler ended") < seen.index("tool.execution_complete")
        assert not trio.lowlevel.in_trio_run()

    run_virtual(main)


def test_a_cancellation_while_the_host_ends_waits_for_that() -> None:
    async def main() -> None:
        ending, seen = asyncio.Event(), list[str]()

        @tool
        async def work() -> str:
            try:
                await asyncio.sleep(1000)
            finally:
                ending.set()
                await asyncio.sleep(0.5)  # noqa: ASYNC102 - cleaning up takes its time
                seen.append("handler ended")
            return ""

        async def body() -> None:
            async with open_host() as host:
                session = await host.create_session(
                    model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
                )
                await session.send("go")
                await asyncio.sleep(1)

        async with open_host():  # which keeps the run: only the host's own end is waited for
            task = asyncio.create_task(body())
            await ending.wait()
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0.1)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert seen == ["handler ended"]

    run_virtual(main)


def test_a_host_that_fails_cancels_the_body_and_raises_its_failure_there() -> None:
    class Broken(Exception):
        pass

    async def fail() -> None:
        raise Broken("a service of the host")

    async def main() -> None:
        async with open_host() as host:
            host.trio_host.nursery.start_soon(fail)
            await asyncio.sleep(1000)

    with pytest.RaisesGroup(Broken, flatten_subgroups=True):
        run_virtual(main)


def test_a_task_is_not_left_cancelled_by_a_host_that_failed() -> None:
    async def fail() -> None:
        raise ValueError("a service of the host")

    async def main() -> None:
        with contextlib.suppress(ExceptionGroup):
            async with open_host() as host:
                host.trio_host.nursery.start_soon(fail)
                await asyncio.sleep(1000)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(1)

    run_virtual(main)


def test_what_cannot_be_opened_raises_and_leaves_nothing() -> None:
    async def main() -> None:
        with pytest.raises(exeunt.InvalidConfiguration):
            async with open_host(journal="nowhere://x"):
                pass
        assert not trio.lowlevel.in_trio_run()

    run_virtual(main)


def test_hosts_of_one_loop_share_one_run_that_begins_once_and_ends_with_the_last() -> None:
    async def main() -> None:
        runs: set[int] = set()
        together = asyncio.Barrier(8)

        async def one() -> None:
            async with open_host() as host:
                await together.wait()
                runs.add(id(await host.run_trio(_run_of)))
                session = await host.create_session(model=ScriptedModel(["x"]))
                assert (await session.send_and_wait("x")).content == "x"

        await asyncio.gather(*(one() for _ in range(8)))
        assert len(runs) == 1
        assert not trio.lowlevel.in_trio_run()
        async with open_host():
            assert trio.lowlevel.in_trio_run()

    async def _run_of() -> Any:
        return trio.lowlevel.current_trio_token()

    run_virtual(main)


def test_a_host_opened_while_the_last_one_ends_begins_anew() -> None:
    async def main() -> None:
        async def once() -> None:
            async with open_host() as host:
                session = await host.create_session(model=ScriptedModel(["x"]))
                await session.send_and_wait("x")

        for _ in range(3):
            await asyncio.gather(once(), once())

    run_virtual(main)


def test_a_loop_that_runs_in_pieces_keeps_its_host() -> None:
    """As test fixtures do: set up, run and torn down in three runs of one loop."""
    loop = asyncio.new_event_loop()
    manager = open_host()
    host = loop.run_until_complete(manager.__aenter__())
    session = loop.run_until_complete(host.create_session(model=ScriptedModel(["x"])))
    assert loop.run_until_complete(session.send_and_wait("x")).content == "x"
    loop.run_until_complete(manager.__aexit__(None, None, None))
    assert not trio.lowlevel.in_trio_run()
    loop.close()


def test_a_loop_that_was_closed_too_early_is_named_and_its_host_ended_before_the_next(tmp_path: Path) -> None:
    async def open_and_leave() -> tuple[Any, SessionHost, Any, list[str]]:
        manager = open_host(journal=f"sqlite:///{tmp_path}/log.sqlite3")
        host = await manager.__aenter__()
        session = await host.create_session(model=ScriptedModel([hang()]), session_id="ada")
        await session.send("never answered")
        return manager, host, session, watched(host)

    loop = asyncio.new_event_loop()
    _kept, host, session, seen = loop.run_until_complete(open_and_leave())
    loop.close()

    async def in_another_loop() -> None:
        with pytest.raises(HostLoopClosed, match="closed before the host was"):
            await session.send("x")
        with pytest.raises(HostLoopClosed):
            await host.create_session(model=ScriptedModel([]))
        assert "session.shutdown" not in seen
        async with open_host() as second:
            assert seen[-1] == "session.shutdown"
            other = await second.create_session(model=ScriptedModel(["y"]))
            assert (await other.send_and_wait("x")).content == "y"

    asyncio.run(in_another_loop())


def test_asyncio_run_ends_a_host_that_nobody_closed() -> None:
    seen: list[str] = []
    kept: list[Any] = []

    async def main() -> None:
        manager = open_host()
        host = await manager.__aenter__()
        kept.append(manager)
        host.observe(lambda _, events: seen.extend(event.type for event in events))
        session = await host.create_session(model=ScriptedModel([hang()]))
        await session.send("never answered")

    asyncio.run(main())
    assert seen[-1] == "session.shutdown"
    assert not trio.lowlevel.in_trio_run()


def test_a_handle_in_another_loop_or_thread_says_so() -> None:
    async def main() -> None:
        async with open_host() as host:
            session = await host.create_session(model=ScriptedModel(["x"]))
            errors: list[Exception] = []

            async def elsewhere() -> None:
                for use in (session.send("x"), host.create_session(model=ScriptedModel([]))):
                    try:
                        await use
                    except WrongEventLoop as error:
                        errors.append(error)
                try:
                    session.statistics()
                except WrongEventLoop as error:
                    errors.append(error)

            def run() -> None:
                asyncio.run(elsewhere())

            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            assert len(errors) == 3

            from_there = asyncio.run_coroutine_threadsafe
            loop = asyncio.get_running_loop()
            future: Any = None

            def ask() -> None:
                nonlocal future
                future = from_there(session.send_and_wait("x"), loop)

            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
            assert (await asyncio.wrap_future(future)).content == "x"

    asyncio.run(main())


def test_two_loops_in_two_threads_have_a_host_each() -> None:
    contents: list[str] = []
    both = threading.Barrier(2, timeout=30)

    async def main(name: str) -> None:
        async with open_host() as host:
            session = await host.create_session(model=ScriptedModel([name]))
            both.wait()  # on purpose: both are open
            contents.append((await session.send_and_wait("x")).content)

    threads = [threading.Thread(target=asyncio.run, args=(main(name),)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(contents) == ["a", "b"]


def test_a_thread_in_which_trio_runs_already_is_refused() -> None:
    async def inside_trio() -> None:
        loop = asyncio.new_event_loop()
        try:
            with pytest.raises(TrioAlreadyRunning, match=r"exeunt\.open_host"):
                loop.run_until_complete(open_host().__aenter__())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    trio.run(inside_trio)


def test_another_open_loop_of_the_thread_is_refused() -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    manager = open_host()
    first.run_until_complete(manager.__aenter__())
    with pytest.raises(TrioAlreadyRunning, match="another event loop"):
        second.run_until_complete(open_host().__aenter__())
    first.run_until_complete(manager.__aexit__(None, None, None))
    first.close()
    second.close()


def test_calls_under_way_end_when_the_run_does() -> None:
    async def main() -> None:
        async with open_host() as host:

            async def for_ever() -> None:
                await trio.sleep_forever()

            waiting = asyncio.create_task(host.run_trio(for_ever))
            await asyncio.sleep(1)
        with pytest.raises(SessionClosed, match="before it had answered"):
            await waiting

    run_virtual(main)


def test_a_cancelled_wait_for_an_event_loses_none() -> None:
    async def main() -> None:
        async with open_host() as host:
            session = await host.create_session(model=ScriptedModel([], default="x"))
            async with session.events() as events:
                got: list[exeunt.Event] = []
                for _ in range(20):
                    reading = asyncio.create_task(anext(events))
                    await asyncio.sleep(0)
                    await session.send("x")
                    reading.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        got.append(await reading)
                await session.send_and_wait("x")
                last = (await session.get_events())[-1].seq
                while not got or got[-1].seq < last:
                    got.append(await anext(events))
        numbers = [event.seq for event in got if not event.ephemeral]
        assert numbers == list(range(2, last + 1))

    run_virtual(main)
