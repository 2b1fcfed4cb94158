"""An abort in each phase of a turn: it ends, says so, and leaves a context that can be sent."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.lowlevel

from exeunt import HostOptions, Session, SessionHost, TurnAborted
from exeunt.testing import (
    Gate,
    ScriptedModel,
    SilentApprover,
    Sleepy,
    call,
    checked_host,
    fail,
    hang,
    say,
    stream_stall,
)
from tests.actors.session_support import (
    begin,
    count,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    reach,
    settled,
    tool_of,
    watch,
)

GRACE = 1.0


async def never(*_: object) -> None:
    """A hook that does not return by itself, but listens when it is cancelled."""
    await trio.sleep_forever()


@attrs.frozen
class Scene:
    """How a session gets into a phase."""

    phase: str
    script: list[Any]
    cancelled: int = 0
    """Calls that end by the abort."""
    options: dict[str, Any] = attrs.field(factory=dict[str, Any])
    host: HostOptions = attrs.field(factory=HostOptions)
    occupied: bool = False
    """Whether another session holds the only slot."""


def once(hook: Any) -> Any:
    """A hook that never returns the first time."""
    calls: list[object] = []

    async def wrapped(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            await hook(*arguments)

    return wrapped


SCENES: dict[str, Callable[[], Scene]] = {
    "waiting for a slot": lambda: Scene(
        "waiting", [say("hi")], host=HostOptions(running_turns=1), occupied=True
    ),
    "prompt hooks": lambda: Scene(
        "prompt_hooks", [say("hi")], options={"on_user_prompt_submitted": once(never)}
    ),
    "hook of the session's start": lambda: Scene(
        "prompt_hooks", [say("hi")], options={"on_session_start": once(never)}
    ),
    "model call": lambda: Scene("model", [hang(), say("hi")]),
    "streamed answer": lambda: Scene("model", [stream_stall(2), say("hi")], options={"streaming": True}),
    "back-off of a model call": lambda: Scene(
        "model", [fail("overloaded", retry=True, retry_after=400), say("hi")]
    ),
    "tools": lambda: Scene("tools", [[call("sleep"), call("sleep")], say("hi")], cancelled=2),
    "pre hook": lambda: Scene(
        "tools", [call("sleep"), say("hi")], cancelled=1, options={"on_pre_tool_use": once(never)}
    ),
    "approval": lambda: Scene(
        "tools",
        [call("asks"), say("hi")],
        cancelled=1,
        options={"on_permission_request": SilentApprover()},
    ),
    "post hook": lambda: Scene(
        "tools", [call("quick"), say("hi")], options={"on_post_tool_use": once(never)}
    ),
    "slot for tools": lambda: Scene(
        "tools", [[call("sleep"), call("sleep")], say("hi")], cancelled=2, host=HostOptions(tool_slots=1)
    ),
    "sequential calls": lambda: Scene("tools", [[call("alone"), call("alone")], say("hi")], cancelled=2),
}


async def put_into(host: SessionHost, scene: Scene) -> Session:
    """A session in the phase of *scene*."""
    if scene.occupied:
        other = await open_session(host, ScriptedModel([say("free", delay=100)]))
        await other.send("in the way")
    tools = [
        plain_tool("sleep", Sleepy()),
        plain_tool("quick", Sleepy(0, "quick")),
        plain_tool("alone", Sleepy(), sequential=True),
        plain_tool("asks", Sleepy(0), skip_permission=False),
    ]
    return await open_session(host, ScriptedModel(scene.script), *tools, **scene.options)


@pytest.mark.parametrize("queued", ["drop", "keep"])
@pytest.mark.parametrize("name", SCENES)
async def test_an_abort_ends_the_turn_in_every_phase(autojump_clock: object, name: str, queued: Any) -> None:
    scene = SCENES[name]()
    async with checked_host(options=scene.host) as host, trio.open_nursery() as nursery:
        session = await put_into(host, scene)
        events = watch(session)
        waiting = begin(nursery, session.send_and_wait, "A")
        await trio.lowlevel.checkpoint()
        await reach(session, scene.phase)
        turn_id = session.statistics().turn_id
        began = trio.current_time()
        receipt = await session.abort(queued)
        assert trio.current_time() - began < GRACE
        assert receipt.turn == turn_id
        assert len(receipt.tools_cancelled) == scene.cancelled
        assert receipt.queued == 0
        assert isinstance((await waiting.wait()).error, TurnAborted)
        assert await ends(session) == ["aborted"]
        assert (await logged(session, "turn.end"))[0].turn_id == turn_id
        assert count(events, "abort") == 1
        assert count(events, "session.idle") == 1
        assert events[-1].type == "session.idle"
        assert events[-1].data.aborted  # type: ignore[attr-defined]
        # The next request is one that a provider takes: the model of the kit checks it.
        assert (await session.send_and_wait("hello", timeout=500)).content in ("hi", "free")
        await settled(session)
        assert count(events, "session.idle") == 2


async def test_s8_abort_during_the_first_tool(autojump_clock: object) -> None:
    sleepy = Sleepy(60)
    model = ScriptedModel([call("sleepy"), say("hi")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, plain_tool("sleepy", sleepy))
        turn = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        receipt = await session.abort()
        (trace,) = sleepy.calls
        assert (trace.ended, trace.how) == (1.0, "cancelled")
        error = (await turn.wait()).error
        assert isinstance(error, TurnAborted)
        assert error.turn_id == receipt.turn
        assert receipt.tools_cancelled == ("call_1",)
        assert receipt.queued == 0
        assert await outcomes(session) == [("sleepy", "cancelled")]
        assert (await session.send_and_wait("hello")).content == "hi"
        assert model.requests[1].contents == (
            "A",
            "",
            "The execution of this tool, or a previous tool was interrupted.",
            "hello",
        )
    model.verify()


async def test_abort_between_a_batch_and_the_next_step(autojump_clock: object) -> None:
    """The turn had given its slot back, has its outcomes, and waits for a slot to go on."""
    answer = trio.Event()

    async def approve(*_: object) -> str:
        await answer.wait()
        return {"kind": "reject", "feedback": "no"}  # type: ignore[return-value]

    async with checked_host(options=HostOptions(running_turns=1)) as host:
        model = ScriptedModel([call("asks"), say("hi")])
        asks = plain_tool("asks", Sleepy(0), skip_permission=False)
        session = await open_session(host, model, asks, on_permission_request=approve)
        other = await open_session(host, ScriptedModel([say("late", delay=50)]))
        await session.send("A")
        await reach(session, "tools")
        await other.send("B")
        await trio.sleep(1)
        answer.set()
        await trio.sleep(1)
        assert session.statistics().in_flight == ()
        assert len(model.requests) == 1
        receipt = await session.abort()
        assert receipt.turn is not None
        assert receipt.tools_cancelled == ()
        assert await ends(session) == ["aborted"]
        assert await outcomes(session) == [("asks", "rejected")]
        assert host.statistics().turns.waiting == 0
        assert (await session.send_and_wait("hello", timeout=100)).content == "hi"
        await settled(other)


@pytest.mark.parametrize("hooked", [False, True])
async def test_abort_in_a_seeded_turn_leaves_the_seed_in_the_context(
    autojump_clock: object, hooked: bool
) -> None:
    async def hold(hook_input: Any, _: object) -> None:
        if hooked and hook_input.prompt == "FRESH":
            await trio.sleep_forever()

    async def clear(invocation: Any) -> str:
        await invocation.session.history.clear_context("FRESH")
        return "cleared"

    async with checked_host() as host, trio.open_nursery() as nursery:
        model = ScriptedModel([call("clear"), *([] if hooked else [hang()]), say("hi")])
        session = await open_session(
            host, model, tool_of("clear", clear, is_terminal=True), on_user_prompt_submitted=hold
        )
        events = watch(session)
        waiting = begin(nursery, session.send_and_wait, "A")
        await trio.sleep(1)
        assert session.statistics().generation == 1
        seeded = session.statistics().turn_id
        receipt = await session.abort()
        assert receipt.turn == seeded
        assert isinstance((await waiting.wait()).error, TurnAborted)
        assert await ends(session) == ["terminal_tool", "aborted"]
        assert count(events, "session.idle") == 1
        await session.send_and_wait("hello")
        assert model.requests[-1].contents == ("FRESH", "hello")
    model.verify()


async def test_abort_of_a_call_of_the_host(autojump_clock: object) -> None:
    sleepy = Sleepy()
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, ScriptedModel([say("hi")]), plain_tool("sleepy", sleepy))
        calling = begin(nursery, session.call_tool, "sleepy")
        await sleepy.entered()
        receipt = await session.abort()
        assert receipt.turn is None
        await calling.wait()
        assert receipt.tools_cancelled == (calling.value.tool_call_id,)
        assert calling.value.outcome == "cancelled"
        assert sleepy.calls[0].how == "cancelled"
        assert await ends(session) == []
        assert (await session.send_and_wait("hello")).content == "hi"


async def test_abort_while_the_hook_after_the_turn_runs(autojump_clock: object) -> None:
    gate = Gate()

    async def at_end(*_: object) -> None:
        await gate()

    async with checked_host() as host:
        model = ScriptedModel([say("one"), say("two")])
        session = await open_session(host, model, on_session_end=at_end)
        events = watch(session)
        await session.send("A")
        await reach(session, "session_end_hook")
        queued = await session.send("B")
        with trio.fail_after(GRACE):
            receipt = await session.abort()
        assert (receipt.turn, receipt.queued) == (None, 1)
        assert [e.message_id for e in only(events, "message.dropped")] == [queued]
        assert count(events, "session.idle") == 0
        gate.open()
        await settled(session)
        assert await ends(session) == ["completed"]
        assert count(events, "session.idle") == 1
        await session.send_and_wait("C")
        await settled(session)
