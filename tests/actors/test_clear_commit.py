"""The commit: one handler run, one slice of the journal, no request in between; and why the clearing turn ended."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import HostOptions, SessionHost, Tool, ToolInvocation, ToolResult
from exeunt.actors.events import Event
from exeunt.supervisor.journal import MemoryJournal, MemoryLog
from exeunt.testing import ScriptedModel, Sleepy, after, call, checked_host, say
from tests.actors.clear_support import (
    clear_context,
    clear_softly,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    read,
    seeds,
    settled,
    submit,
    tool_of,
    turns_counted,
    types,
    watch,
)


class SlicingLog(MemoryLog):
    """Keeps what was appended together."""

    __slots__ = ("slices",)

    def __init__(self) -> None:
        super().__init__()
        self.slices: list[list[str]] = []

    def append(self, events: Sequence[Event]) -> None:
        super().append(events)
        self.slices.append([event.type for event in events])


class SlicingJournal(MemoryJournal):
    """A journal of one session, whose slices can be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.log = SlicingLog()

    async def create(self, session_id: str) -> MemoryLog:
        await super().create(session_id)
        return self.log


async def test_outcome_turn_end_and_boundary_are_one_slice_of_the_journal(autojump_clock: MockClock) -> None:
    """A crash of the process finds all of it, or nothing."""
    journal = SlicingJournal()
    model = ScriptedModel([[call("clear_context", prompt="FRESH"), call("slow")], "ok"])
    async with checked_host(journal=journal) as host:
        session = await open_session(host, model, clear_context, plain_tool("slow", Sleepy(5)))
        await session.send_and_wait("start over")
    (commit,) = [part for part in journal.log.slices if "session.context_cleared" in part]
    first = commit.index("session.context_cleared")
    assert commit[first - 3 : first + 1] == [
        "tool.execution_complete",
        "assistant.turn_end",
        "turn.end",
        "session.context_cleared",
    ]
    model.verify()


async def test_no_request_is_made_between_a_clear_and_its_seed(autojump_clock: MockClock) -> None:
    """Also by a tool that is not terminal, after which the model would otherwise be called again."""
    model = ScriptedModel([call("clear_softly", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_softly)
        reply = await session.send_and_wait("start over")
        assert [turn.reason for turn in reply.turns] == ["context_cleared", "completed"]
        assert [request.contents for request in model.requests] == [("start over",), ("FRESH",)]
        assert turns_counted(host) == {"context_cleared": 1, "completed": 1}
        log = types(list(await session.get_events()))
        boundary = log.index("session.context_cleared")
        assert log[boundary + 1 : boundary + 3] == ["user.message", "assistant.turn_start"]
    model.verify()


BATCHES: list[tuple[list[Any], str, str]] = [
    # calls, reason, content of the turn
    ([call("clear_context", prompt="FRESH")], "terminal_tool", "Cleared 2 messages."),
    ([call("clear_softly", prompt="FRESH")], "context_cleared", ""),
    ([call("clear_softly", prompt="FRESH"), call("read")], "context_cleared", ""),
    ([call("clear_softly", prompt="FRESH"), call("submit")], "terminal_tool", "handed in"),
    ([call("submit"), call("clear_context", prompt="FRESH")], "terminal_tool", "handed in"),
    ([call("clear_context", prompt="FRESH"), call("submit")], "terminal_tool", "Cleared 2 messages."),
    ([call("clear_softly", prompt="FRESH"), call("submit_badly")], "context_cleared", ""),
]


@pytest.mark.parametrize(("calls", "reason", "content"), BATCHES)
async def test_a_clearing_turn_ends_by_its_terminal_calls_or_else_by_the_clear(
    autojump_clock: MockClock, calls: list[Any], reason: str, content: str
) -> None:
    """Its text is that of the first terminal call that succeeded, in call order, though the owner settles last."""

    async def fail() -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("it broke")

    model = ScriptedModel([calls, "ok"])
    async with checked_host() as host:
        tools: list[Tool[..., Any]] = [
            clear_context,
            clear_softly,
            read,
            submit,
            plain_tool("submit_badly", fail, is_terminal=True),
        ]
        session = await open_session(host, model, *tools)
        reply = await session.send_and_wait("start over")
        assert [(turn.reason, turn.content) for turn in reply.turns] == [
            (reason, content),
            ("completed", "ok"),
        ]
        assert turns_counted(host) == {reason: 1, "completed": 1}
    model.verify()


async def test_a_terminal_sibling_does_not_commit_a_clear_that_failed(autojump_clock: MockClock) -> None:
    """The turn ends by the terminal call; the context stays, and the next message finds it."""

    async def clear(invocation: ToolInvocation) -> ToolResult:
        await invocation.session.history.clear_context("FRESH")
        return ToolResult("no", "failure")

    model = ScriptedModel([[call("clear"), call("submit")], "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear), submit)
        reply = await session.send_and_wait("start over")
        assert (reply.content, reply.reason) == ("handed in", "terminal_tool")
        assert clears_counted(host) == {"rolled_back": 1}
        await session.send_and_wait("hello")
        assert model.requests[1].roles == ("user", "assistant", "tool", "tool", "user")
    model.verify()


@pytest.mark.parametrize("name", ["clear_context", "clear_softly"])
async def test_a_clear_in_the_last_allowed_step_is_no_limit(autojump_clock: MockClock, name: str) -> None:
    model = ScriptedModel([call(name, prompt="FRESH"), call("read"), "unreached"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, clear_softly, read, limits={"steps": 1})
        reply = await session.send_and_wait("start over")
        assert [turn.reason for turn in reply.turns][1:] == ["limit"]
        assert reply.turns[0].reason in ("terminal_tool", "context_cleared")
        assert await seeds(session) == ["FRESH"]
    model.verify(all_given=False)


async def test_no_idle_and_no_other_work_comes_between_a_clear_and_its_seeded_turn(
    autojump_clock: MockClock,
) -> None:
    """The seeded turn keeps its predecessor's slot: a session that waits for one does not overtake it."""
    model = ScriptedModel.per_session(
        lambda name: (
            [after(5, call("clear_context", prompt="FRESH")), after(5, say("ok"))]
            if name == "one"
            else ["hi"]
        )
    )
    order: list[tuple[str, str]] = []

    def note(host: SessionHost) -> None:
        host.observe(lambda name, events: order.extend((name, event.type) for event in events))

    async with checked_host(options=HostOptions(running_turns=1)) as host:
        note(host)
        one = await open_session(host, model, clear_context, session_id="one")
        two = await open_session(host, model, session_id="two")
        await one.send("start over")
        await two.send("hello")
        await settled(one)
        await settled(two)
        log = [(name, kind) for name, kind in order if kind in ("turn.end", "session.idle")]
        assert log == [
            ("one", "turn.end"),
            ("one", "turn.end"),
            ("one", "session.idle"),
            ("two", "turn.end"),
            ("two", "session.idle"),
        ]
    model.verify()


async def test_the_boundary_says_how_much_it_cleared_and_with_what(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt=" FRESH "), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        await session.send_and_wait("start over")
        (boundary,) = only(events, "session.context_cleared")
        assert boundary.payload() == {
            "messages_cleared": 2,
            "initial_message": " FRESH ",
            "generation": 1,
            "only_clears": False,
            "trigger": "",
        }
        assert not boundary.ephemeral
        assert [e.generation for e in await logged(session, "turn.end")] == [0, 1]
    model.verify()


async def test_the_text_of_the_clearing_turn_is_the_one_after_the_post_hook(
    autojump_clock: MockClock,
) -> None:

    async def clear(invocation: ToolInvocation) -> ToolResult:
        await invocation.session.history.clear_context("FRESH")
        return ToolResult("half done")

    def polish(_: Any, __: Any) -> dict[str, Any]:
        return {"modified_result": ToolResult("all done")}

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("clear", clear, is_terminal=True), on_post_tool_use=polish
        )
        reply = await session.send_and_wait("start over")
        assert reply.turns[0].content == "all done"
        assert await outcomes(session) == [("clear", "success")]
    model.verify()


async def test_the_last_step_and_the_next_turn_follow_in_the_same_moment(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear_context", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        began = trio.current_time()
        await session.send_and_wait("start over")
        assert trio.current_time() == began
        assert await ends(session) == ["terminal_tool", "completed"]
    model.verify()
