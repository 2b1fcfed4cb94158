"""Handlers and callers in a host for threads."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import exeunt
from exeunt import HandlerCancelled, HostLoopClosed, SessionClosed, WouldBlockHost
from exeunt.embed.threads import HookInvocation, SessionHost, approve_all, open_host, tool
from exeunt.embed.threads.runtime import Runtime
from exeunt.testing import ScriptedModel, call, hang

PATIENCE = 30.0
"""Seconds after which a test that waits for another thread is wrong."""


@contextmanager
def host_whose_clock_stands() -> Generator[SessionHost]:
    """A host in which no time-out passes."""
    Runtime.clock = MockClock()
    try:
        with open_host() as host:
            yield host
    finally:
        Runtime.clock = None


def test_many_threads_use_one_host_and_one_session_at_once() -> None:
    errors: list[BaseException] = []
    with host_whose_clock_stands() as host:
        shared = host.create_session(model=ScriptedModel([], default="shared"), session_id="shared")

        def work(number: int) -> None:
            try:
                own = host.create_session(model=ScriptedModel([], default=str(number)))
                for _ in range(10):
                    assert own.send_and_wait("x").content == str(number)
                    assert shared.send_and_wait("x").content == "shared"
            except BaseException as error:  # noqa: ASYNC103, BLE001 - shown by the test
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert shared.statistics().status == "live"
        turns = [event for event in shared.get_events() if event.type == "turn.end"]
        assert len(turns) == 160


def test_eight_threads_that_open_a_host_at_once_share_one_thread() -> None:
    together, names = threading.Barrier(8, timeout=PATIENCE), set[int]()

    def work() -> None:
        with open_host() as host:
            together.wait()

            async def ident() -> int:
                return threading.get_ident()

            names.add(host.run_trio(ident))
            together.wait()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 1
    assert "exeunt host" not in [thread.name for thread in threading.enumerate()]


def test_synchronous_hooks_and_approvals_may_block() -> None:
    seen: list[tuple[str, str]] = []

    def before(data: Any, invocation: HookInvocation) -> None:
        other = host.get_session("other")
        seen.append((threading.current_thread().name, other.send_and_wait("x").content))

    def answer(request: Any, invocation: HookInvocation) -> str:
        seen.append((threading.current_thread().name, invocation.session.statistics().phase))
        return "approved"

    @tool
    def work() -> str:
        """Work."""
        return "worked"

    with host_whose_clock_stands() as host:
        host.create_session(model=ScriptedModel(["from the other"]), session_id="other")
        session = host.create_session(
            model=ScriptedModel([call("work"), "done"]),
            tools=[work],
            on_permission_request=answer,
            on_pre_tool_use=before,
        )
        assert session.send_and_wait("go").content == "done"
    assert [text for _, text in seen] == ["from the other", "tools"]
    assert threading.current_thread().name not in [name for name, _ in seen]
    assert "exeunt host" not in [name for name, _ in seen]


def test_a_coroutine_runs_on_trio_in_the_thread_of_the_host() -> None:
    seen: list[Any] = []

    @tool
    async def work(invocation: exeunt.ToolInvocation) -> str:
        """Work."""
        await trio.lowlevel.checkpoint()
        seen.append((threading.current_thread().name, type(invocation.session)))
        return "worked"

    with host_whose_clock_stands() as host:
        session = host.create_session(
            model=ScriptedModel([call("work"), "done"]), tools=[work], on_permission_request=approve_all
        )
        session.send_and_wait("go")
    assert seen == [("exeunt host", exeunt.Session)]


def test_a_slow_synchronous_handler_does_not_delay_other_sessions() -> None:
    entered, go_on = threading.Event(), threading.Event()

    @tool
    def work() -> str:
        """Work."""
        entered.set()
        assert go_on.wait(PATIENCE)
        return "worked"

    with host_whose_clock_stands() as host:
        slow = host.create_session(
            model=ScriptedModel([call("work"), "done"]), tools=[work], on_permission_request=approve_all
        )
        slow.send("go")
        assert entered.wait(PATIENCE)
        quick = host.create_session(model=ScriptedModel([], default="quick"))
        for _ in range(100):
            assert quick.send_and_wait("x").content == "quick"
        assert slow.statistics().in_flight == ("work",)
        go_on.set()
        with slow.events(from_seq=1) as events:
            answer = next(event for event in events if event.type == "turn.end")
        assert answer.payload()["reason"] == "completed"


def test_the_end_of_its_call_ends_what_a_handler_waits_for() -> None:
    entered, seen = threading.Event(), list[BaseException]()

    @tool
    def ask() -> str:
        """Ask."""
        entered.set()
        try:
            return host.get_session("silent").send_and_wait("x", timeout=None).content
        except HandlerCancelled as error:
            seen.append(error)
            raise
        finally:
            left.set()

    left = threading.Event()
    with host_whose_clock_stands() as host:
        host.create_session(model=ScriptedModel([hang()]), session_id="silent")
        session = host.create_session(
            model=ScriptedModel([call("ask"), "next"]), tools=[ask], on_permission_request=approve_all
        )
        session.send("go")
        assert entered.wait(PATIENCE)
        while host.get_session("silent").statistics().phase != "model":
            pass
        assert session.abort().tools_cancelled == ("call_1",)
        assert left.wait(PATIENCE)
        assert len(seen) == 1
        assert session.send_and_wait("on").content == "next"


def test_a_call_that_blocks_is_refused_in_the_hosts_own_thread() -> None:
    seen: list[Exception] = []

    def subscriber(event: exeunt.Event) -> None:
        try:
            session.statistics()
        except WouldBlockHost as error:
            seen.append(error)
            unsubscribe()

    with host_whose_clock_stands() as host:
        session = host.create_session(model=ScriptedModel(["x"]))
        unsubscribe = session.on(subscriber)
        session.send_and_wait("x")
    assert len(seen) == 1


def test_a_thread_that_has_failed_is_named_and_nobody_hangs() -> None:
    class Broken(BaseException):
        pass

    async def fail() -> None:
        raise Broken("of its own")

    def body() -> None:
        with open_host() as host:
            session = host.create_session(model=ScriptedModel([hang()]))
            host.run_trio(_in_nursery, host, fail)
            with pytest.raises((SessionClosed, HostLoopClosed)):
                session.send_and_wait("x", timeout=None)
            with pytest.raises((SessionClosed, HostLoopClosed)):
                host.create_session(model=ScriptedModel([]))

    async def _in_nursery(host: SessionHost, function: Any) -> None:
        host.trio_host.nursery.start_soon(function)

    with pytest.RaisesGroup(Broken, flatten_subgroups=True):
        body()
    with open_host() as again:
        assert again.create_session(model=ScriptedModel(["x"])).send_and_wait("x").content == "x"


def test_calls_under_way_end_when_the_host_does() -> None:
    seen: list[Exception] = []
    waiting = threading.Event()

    def wait(session: Any) -> None:
        waiting.set()
        try:
            session.send_and_wait("x", timeout=None)
        except (SessionClosed, exeunt.TurnAborted) as error:
            seen.append(error)

    with open_host() as host:
        model = ScriptedModel([hang()])
        session = host.create_session(model=model)
        thread = threading.Thread(target=wait, args=(session,))
        thread.start()
        assert waiting.wait(PATIENCE)
        while not model.in_flight:
            session.statistics()
    thread.join()
    assert len(seen) == 1


def test_what_cannot_be_opened_raises_and_leaves_nothing() -> None:
    with pytest.raises(exeunt.InvalidConfiguration), open_host(journal="nowhere://x"):
        pass  # pragma: no cover
    assert "exeunt host" not in [thread.name for thread in threading.enumerate()]
