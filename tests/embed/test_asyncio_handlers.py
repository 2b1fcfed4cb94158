"""Handlers in a host on asyncio: which loop runs them, and what crosses between the loops."""

import asyncio
import functools
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import sniffio
import trio

import exeunt
from exeunt import InvalidConfiguration, ModelDelta, ModelRequest, ModelResponse, TurnAborted
from exeunt.embed.asyncio import (
    HookInvocation,
    ToolInvocation,
    approve_all,
    asyncio_model,
    from_asyncio,
    open_host,
    runs_on_trio,
    tool,
)
from exeunt.embed.asyncio.virtual_time import run_virtual
from exeunt.policies import clear_context_tool
from exeunt.testing import ScriptedModel, call


def on_asyncio(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time on asyncio."""

    def run() -> None:
        run_virtual(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def on_asyncio_in_real_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on asyncio that has threads of its own, over which virtual time would jump. It takes none."""

    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def talk(model: ScriptedModel, *tools: Any, **options: Any) -> exeunt.Reply:
    async with open_host() as host:
        session = await host.create_session(
            model=model, tools=tools, on_permission_request=approve_all, **options
        )
        return await session.send_and_wait("go")


@on_asyncio
async def test_a_coroutine_runs_in_an_asyncio_task_of_its_own() -> None:
    seen: list[Any] = []

    @tool
    async def work() -> str:
        await asyncio.sleep(1)
        seen.append((asyncio.current_task(), sniffio.current_async_library()))
        return "worked"

    await talk(ScriptedModel([call("work"), "done"]), work)
    ((task, library),) = seen
    assert task is not asyncio.current_task()
    assert library == "asyncio"


@on_asyncio
async def test_a_marked_coroutine_runs_on_trio_and_has_the_session_of_the_trio_api() -> None:
    seen: list[Any] = []

    @tool
    @runs_on_trio
    async def work(invocation: exeunt.ToolInvocation) -> str:
        await trio.sleep(1)
        seen.append((sniffio.current_async_library(), type(invocation.session)))
        return "worked"

    @runs_on_trio
    async def before(data: Any, invocation: exeunt.HookInvocation) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(type(invocation.session))

    await talk(ScriptedModel([call("work"), "done"]), work, on_pre_tool_use=before)
    assert seen == [exeunt.Session, ("trio", exeunt.Session)]


class Methods:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @runs_on_trio
    async def on_trio(self) -> str:
        """Run."""
        self.seen.append(sniffio.current_async_library())
        return "x"

    async def on_asyncio(self, which: int) -> str:
        """Run."""
        self.seen.append(f"{sniffio.current_async_library()} {which}")
        return "x"


@on_asyncio
async def test_methods_and_partials_follow_the_same_rule() -> None:
    methods = Methods()
    tools = [tool(methods.on_trio), tool("part")(functools.partial(methods.on_asyncio, which=7))]
    await talk(ScriptedModel([call("on_trio"), call("part"), "done"]), *tools)
    assert methods.seen == ["trio", "asyncio 7"]


def test_what_cannot_be_marked_is_refused() -> None:
    not_a_handler: Any = "work"
    with pytest.raises(InvalidConfiguration, match="must be callable"):
        runs_on_trio(not_a_handler)
    with pytest.raises(InvalidConfiguration, match="cannot be marked"):
        runs_on_trio(len)


@on_asyncio
async def test_a_synchronous_hook_runs_in_the_loop_and_may_begin_tasks() -> None:
    seen: list[Any] = []

    def before(data: Any, invocation: HookInvocation) -> None:
        seen.append((threading.current_thread(), invocation.session.session_id))
        seen.append(asyncio.get_running_loop().create_task(asyncio.sleep(5, "slept")))

    @tool
    async def work() -> str:
        return "worked"

    async with open_host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "done"]),
            tools=[work],
            on_permission_request=approve_all,
            on_pre_tool_use=before,
            session_id="ada",
        )
        await session.send_and_wait("go")
    assert seen[0] == (threading.current_thread(), "ada")
    assert await seen[1] == "slept"


@on_asyncio
async def test_an_abort_cancels_the_task_and_waits_for_its_end() -> None:
    entered, seen = asyncio.Event(), list[str]()

    @tool
    async def work() -> str:
        entered.set()
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.5)  # noqa: ASYNC102 - less than the grace
            seen.append("cleaned up")
        return ""

    async with open_host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
        )
        waiting = asyncio.create_task(session.send_and_wait("go"))
        await entered.wait()
        await session.abort()
        assert seen == ["cleaned up"]
        with pytest.raises(TurnAborted):
            await waiting
        (end,) = [e for e in await session.get_events() if e.type == "tool.execution_complete"]
        assert end.payload()["outcome"] == "cancelled"


@on_asyncio
async def test_a_task_that_swallows_its_cancellation_is_left_behind() -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> str:
        entered.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:  # noqa: ASYNC103 - which is what is tested
                continue  # noqa: ASYNC104
        return "late"

    async with open_host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "next"]), tools=[work], on_permission_request=approve_all
        )
        await session.send("go")
        await entered.wait()
        await session.abort()
        assert host.statistics().stuck_handlers == 1
        assert (await session.send_and_wait("on")).content == "next"
        stale = asyncio.Event()
        session.on(lambda event: stale.set() if event.type == "tool.result_stale" else None)
        go_on.set()
        await stale.wait()
        assert host.statistics().stuck_handlers == 0


@on_asyncio
async def test_a_task_that_somebody_else_cancels_is_a_failure_and_no_end_of_the_host() -> None:
    model = ScriptedModel([call("work"), "I see"])

    @tool
    async def work() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
        return ""

    reply = await talk(model, work)
    assert reply.content == "I see"
    assert "not by the session" in model.requests[1].results["call_1"]


def test_an_interrupt_in_a_handler_leaves_the_loop_once_and_the_host_ends_in_order() -> None:
    """As with any asyncio task: the loop stops, `asyncio.run` cancels what is there, and the interrupt is raised."""
    seen: list[str] = []

    @tool
    async def work() -> str:
        raise KeyboardInterrupt

    async def main() -> None:
        async with open_host() as host:
            host.observe(lambda _, events: seen.extend(event.type for event in events))
            session = await host.create_session(
                model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
            )
            await session.send_and_wait("go")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert seen[-1] == "session.shutdown"


@on_asyncio
async def test_an_eager_task_factory_does_not_run_handlers_in_trios_turn() -> None:
    loop = asyncio.get_running_loop()
    libraries: list[str] = []

    def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        libraries.append(sniffio.thread_local.name or "none")
        return asyncio.Task(coroutine, loop=loop, **options)

    loop.set_task_factory(factory)

    @tool
    async def work() -> str:
        return "worked"

    await talk(ScriptedModel([call("work"), "done"]), work)
    assert libraries
    assert set(libraries) == {"none"}


@on_asyncio_in_real_time
async def test_invocation_run_awaits_on_asyncio_from_a_worker_thread() -> None:
    loop_thread, seen = threading.current_thread(), list[threading.Thread]()

    async def in_loop(word: str) -> str:
        await asyncio.sleep(0)
        seen.append(threading.current_thread())
        return word

    @tool
    def work(invocation: ToolInvocation) -> str:
        return invocation.run(in_loop, "from the loop")

    async with open_host() as host:
        session = await host.create_session(
            model=ScriptedModel([]), tools=[work], on_permission_request=approve_all
        )
        outcome = await session.call_tool("work")
    assert seen == [loop_thread]
    assert outcome.content == "from the loop"


class AsyncioClient:
    """A model client that is written for asyncio."""

    provider = "own"
    model = "mine"

    def __init__(self) -> None:
        self.closed = 0

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        await asyncio.sleep(1)
        return ModelResponse(f"answer to {request.messages[-1].content}")

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        try:
            for piece in ("one ", "two"):
                await asyncio.sleep(1)
                yield ModelDelta(piece)
            if request.messages[-1].content == "hang":
                await asyncio.sleep(10_000)
            yield ModelResponse("one two")
        finally:
            await asyncio.sleep(0.1)  # noqa: ASYNC102 - as a connection that is closed
            self.closed += 1


@on_asyncio
async def test_a_model_of_asyncio_answers_whole_and_in_pieces() -> None:
    client: Any = AsyncioClient()
    async with open_host() as host:
        whole = await host.create_session(model=asyncio_model(client))
        assert (await whole.send_and_wait("x")).content == "answer to x"
        pieces = await host.create_session(model=asyncio_model(client), streaming=True)
        async with pieces.events() as events:
            assert (await pieces.send_and_wait("x")).content == "one two"
            types = [event.type async for event in _until_idle(events)]
        assert types.count("assistant.message_delta") == 2
        assert client.closed == 1
        await pieces.send("hang")
        await asyncio.sleep(5)
        await pieces.abort()
        assert client.closed == 2


async def _until_idle(events: Any) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.type == "session.idle":
            return


@on_asyncio
async def test_an_error_keeps_its_type_and_the_frames_of_both_loops() -> None:
    class Own(Exception):
        pass

    async def deep_in_trio() -> None:
        await trio.lowlevel.checkpoint()
        raise Own("mine")

    async def in_asyncio() -> None:
        await host.run_trio(deep_in_trio)

    async with open_host() as host:
        with pytest.raises(Own, match="mine") as caught:
            await in_asyncio()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames.index("in_asyncio") < frames.index("deep_in_trio")


@on_asyncio
async def test_a_resolver_of_asyncio_is_awaited_there_and_its_handlers_are_too() -> None:
    libraries: list[str] = []

    @tool(skip_permission=True)
    async def work() -> str:
        libraries.append(sniffio.current_async_library())
        return "worked"

    model = ScriptedModel(["first", call("work"), "second"])

    async def resolver(session_id: str, metadata: exeunt.SessionMetadata) -> exeunt.SessionOptions:
        await asyncio.sleep(1)
        libraries.append(sniffio.current_async_library())
        if session_id == "bob":
            raise LookupError("nobody knows bob")
        return exeunt.build_options(model=model, tools=[work])

    async with open_host(session_options=resolver, options=exeunt.HostOptions(remembered_options=0)) as host:
        for name in ("ada", "bob"):
            session = await host.create_session(model=ScriptedModel(["x"]), session_id=name)
            await session.send_and_wait("x")
            await session.disconnect()
        session = await host.resume_session("ada")
        assert (await session.send_and_wait("1")).content == "first"
        assert (await session.send_and_wait("2")).content == "second"
        with pytest.raises(LookupError, match="bob"):
            await host.resume_session("bob")
    assert libraries == ["asyncio"] * 3


@on_asyncio
async def test_a_function_of_asyncio_serves_what_runs_on_trio() -> None:
    async def state(invocation: Any) -> dict[str, str]:
        await asyncio.sleep(1)
        return {"library": sniffio.current_async_library()}

    model = ScriptedModel([call("clear_context", prompt="a note"), "fresh"])
    clear = clear_context_tool(template="{prompt} ({library})", state=from_asyncio(state))
    await talk(model, clear)
    assert model.requests[1].contents == ("a note (asyncio)",)


def test_another_thread_answers_through_the_loop() -> None:
    answered: list[str] = []

    @tool
    async def delete() -> str:
        return "deleted"

    async def main() -> None:
        async with open_host() as host:
            session = await host.create_session(
                model=ScriptedModel([call("delete"), "done"]),
                tools=[delete],
                on_permission_request=exeunt.leave_pending,
            )
            waiting = asyncio.create_task(session.send_and_wait("go"))
            asked = asyncio.Event()
            session.on(lambda event: asked.set() if event.type == "permission.requested" else None)
            await asked.wait()
            (request,) = session.pending_requests()

            def answer() -> None:
                host.run_from_thread(session.answer, request.request_id, "approved")
                answered.append(threading.current_thread().name)

            with pytest.raises(exeunt.WouldDeadlock):
                answer()
            thread = threading.Thread(target=answer, name="another")
            thread.start()
            assert (await waiting).content == "done"
            thread.join()
        with pytest.raises(exeunt.SessionClosed):
            await session.answer(request.request_id, "approved")

    asyncio.run(main())
    assert answered == ["another"]
