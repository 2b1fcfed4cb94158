"""A clear whose owner does not succeed: the context is as it was, the model sees why, and can try again."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ClearResult,
    ClearRolledBack,
    HookInvocation,
    Reject,
    Session,
    ToolInvocation,
    ToolResult,
    TurnAborted,
    Waits,
)
from exeunt.testing import Gate, ScriptedModel, Shielded, SilentApprover, Sleepy, call, checked_host
from tests.actors.clear_support import (
    attempt,
    clear_context,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    picture,
    plain_tool,
    read,
    seeds,
    settled,
    tool_of,
    watch,
)

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."


async def _clear_and_raise(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    raise RuntimeError("changed my mind")


async def _clear_and_report(result_type: Any, invocation: ToolInvocation) -> ToolResult:
    await invocation.session.history.clear_context("FRESH")
    return ToolResult("not done", result_type, error="the disk is full")


async def _clear_and_sleep(invocation: ToolInvocation) -> str:
    await invocation.session.history.clear_context("FRESH")
    await trio.sleep_forever()
    return "never"


WAYS = ["raises", "failure", "rejected", "denied", "timeout", "times out", "post hook"]


def _failing_tool(way: str) -> Any:
    async def clear(invocation: ToolInvocation) -> Any:
        if way == "raises":
            return await _clear_and_raise(invocation)
        if way == "times out":
            return await _clear_and_sleep(invocation)
        return await _clear_and_report("success" if way == "post hook" else way, invocation)

    return tool_of("clear", clear, is_terminal=True, timeout=5)


def _fail_it(given: Any, _: HookInvocation) -> dict[str, Any]:
    bad = ToolResult("the hook says no", "failure", error="policy")
    return {"modified_result": bad} if given.tool_name == "clear" else {}


OUTCOME = {"raises": "failure", "times out": "timeout", "post hook": "failure"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("siblings", ["wait", "cancel"])
async def test_an_owner_that_fails_rolls_back_and_the_model_may_clear_in_the_next_step(
    autojump_clock: MockClock, way: str, siblings: Any
) -> None:
    model = ScriptedModel([[call("clear"), call("slow")], call("clear_context", prompt="AGAIN"), "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            _failing_tool(way),
            clear_context,
            plain_tool("slow", Sleepy(10)),
            siblings=siblings,
            on_post_tool_use=_fail_it if way == "post hook" else None,
        )
        events = watch(session)
        reply = await session.send_and_wait("start over")

        outcome = OUTCOME.get(way, way)
        # A failing owner cancels nobody: the sibling ends by itself, with either policy.
        assert await outcomes(session) == [
            ("clear", outcome),
            ("slow", "success"),
            ("clear_context", "success"),
        ]
        (rolled_back,) = only(events, "session.clear_rolled_back")
        assert (rolled_back.cause, rolled_back.call_id, rolled_back.ephemeral) == (outcome, "call_1", True)
        assert model.requests[1].roles == ("user", "assistant", "tool", "tool")
        assert list(model.requests[1].results) == ["call_1", "call_2"]
        assert model.requests[2].contents == ("AGAIN",)
        assert await seeds(session) == ["AGAIN"]
        assert (reply.content, [turn.reason for turn in reply.turns]) == (
            "ok",
            ["terminal_tool", "completed"],
        )
        assert clears_counted(host) == {"rolled_back": 1, "committed": 1}
    model.verify()


async def test_the_model_sees_why_the_owner_failed(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear"), "never mind"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", _clear_and_raise))
        await session.send_and_wait("start over")
        assert "RuntimeError: changed my mind" in model.requests[1].results["call_1"]
    model.verify()


async def test_a_roll_back_comes_at_once_and_frees_the_place_for_another_clear(
    autojump_clock: MockClock,
) -> None:
    """Not at the end of the batch: a sibling may take the place while it still runs."""
    gate = Gate()
    model = ScriptedModel([[call("clear"), call("wait")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("clear", _clear_and_raise), plain_tool("wait", gate)
        )
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        assert len(only(events, "session.clear_rolled_back")) == 1
        assert not session.statistics().clear_staged
        second = await attempt(session, "SECOND")
        assert second.error is None
        gate.open()
        await settled(session)
        assert await seeds(session) == ["SECOND"]
    model.verify()


async def test_a_rolled_back_clear_leaves_the_context_as_if_it_had_never_been_asked_for(
    autojump_clock: MockClock,
) -> None:
    async def fails(_: ToolInvocation) -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("changed my mind")

    seen: list[Any] = []
    for handler in (fails, _clear_and_raise):
        model = ScriptedModel(["hi", call("clear"), "never mind"])
        async with checked_host() as host:
            session = await open_session(host, model, tool_of("clear", handler), system_message="terse")
            await session.send_and_wait("hello")
            await session.send_and_wait("start over")
            context = [(m.role, m.content, m.tool_calls, m.tool_call_id) for m in session.history.messages()]
            seen.append((context, [event.type for event in await session.get_events()]))
            assert session.statistics().generation == 0
        model.verify()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("decision", ["deny", "reject"])
async def test_a_clear_from_a_hook_or_approval_that_then_says_no_is_rolled_back(
    autojump_clock: MockClock, decision: str
) -> None:
    async def deny(_: Any, invocation: HookInvocation) -> dict[str, str]:
        await invocation.session.history.clear_context("FRESH")
        return {"permission_decision": "deny", "permission_decision_reason": "not today"}

    async def reject(_: Any, invocation: HookInvocation) -> Reject:
        await invocation.session.history.clear_context("FRESH")
        return Reject("not today")

    options: dict[str, Any] = (
        {"on_pre_tool_use": deny} if decision == "deny" else {"on_permission_request": reject}
    )
    model = ScriptedModel([call("ask"), "never mind"])
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("ask", Sleepy(1), skip_permission=False), **options
        )
        events = watch(session)
        await session.send_and_wait("go")
        outcome = {"deny": "denied", "reject": "rejected"}[decision]
        assert await outcomes(session) == [("ask", outcome)]
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == [outcome]
        assert "not today" in model.requests[1].results["call_1"]
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_a_clear_during_an_approval_that_nobody_answers_is_rolled_back(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("ask"), "never mind"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            plain_tool("ask", Sleepy(1), skip_permission=False),
            on_permission_request=SilentApprover(),
            waits=Waits(approval=60),
        )
        events = watch(session)
        await session.send("go")
        await trio.sleep(1)
        assert (await attempt(session)).error is None
        await settled(session)
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["denied"]
        assert [e.kind for e in await logged(session, "permission.completed")] == ["timeout"]
    model.verify()


async def test_a_post_hook_that_is_cut_off_does_not_undo_the_owners_success(
    autojump_clock: MockClock,
) -> None:
    """The work is done; only a hook that looks at it did not return."""

    async def hangs(_: Any, __: HookInvocation) -> None:
        await trio.sleep_forever()

    model = ScriptedModel([call("clear_context", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, on_post_tool_use=hangs, waits=Waits(hook=5))
        assert (await session.send_and_wait("start over")).content == "ok"
        assert clears_counted(host) == {"committed": 1}
    model.verify()


# --- Abort and stop --------------------------------------------------------------------------------------------


async def test_an_abort_while_the_owner_runs_rolls_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", _clear_and_sleep))
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        receipt = await session.abort()
        assert receipt.tools_cancelled == ("call_1",)
        assert await ends(session) == ["aborted"]
        assert await outcomes(session) == [("clear", "cancelled")]
        assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["aborted"]
        await session.send_and_wait("hello")
        assert model.requests[1].roles == ("user", "assistant", "tool", "user")
        assert model.requests[1].results == {"call_1": INTERRUPTED}
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_an_abort_while_only_a_sibling_runs_rolls_back(autojump_clock: MockClock) -> None:
    """The owner has succeeded, its success is held back; now it is cancelled, and says what really happened."""
    model = ScriptedModel([[call("clear_context", prompt="FRESH"), call("slow")], "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, plain_tool("slow", Sleepy()))
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        receipt = await session.abort()
        assert sorted(receipt.tools_cancelled) == ["call_1", "call_2"]
        assert sorted(await outcomes(session)) == [("clear_context", "cancelled"), ("slow", "cancelled")]
        assert await ends(session) == ["aborted"]
        assert [(e.cause, e.call_id) for e in only(events, "session.clear_rolled_back")] == [
            ("aborted", "call_1")
        ]
        await session.send_and_wait("hello")
        assert model.requests[1].results == {
            "call_1": "The tool finished, but its clear was rolled back: aborted.",
            "call_2": INTERRUPTED,
        }
        assert await seeds(session) == []
    model.verify()


async def test_an_owner_that_swallows_its_abort_does_not_clear_after_all(autojump_clock: MockClock) -> None:
    async def clear_and_swallow(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        with trio.CancelScope(shield=True):
            await trio.sleep(1.5)
        return "Cleared."

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_swallow))
        await session.send("start over")
        await trio.sleep(1)
        await session.abort()
        await session.send_and_wait("hello")
        # It had its success ready within the grace: the model is told what became of it.
        assert model.requests[1].results == {
            "call_1": "The tool finished, but its clear was rolled back: aborted."
        }
        assert clears_counted(host) == {"rolled_back": 1}
        assert session.statistics().generation == 0
    model.verify()


async def test_an_owner_that_is_fenced_after_an_abort_is_stale_and_clears_nothing(
    autojump_clock: MockClock,
) -> None:
    async def clear_and_shield(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        return await Shielded(60)()

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_shield))
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        await session.abort()
        await session.send_and_wait("hello")
        await trio.sleep(120)
        assert len(only(events, "tool.result_stale")) == 1
        assert await outcomes(session) == [("clear", "cancelled")]
        assert clears_counted(host) == {"rolled_back": 1}
    model.verify()


async def test_who_waits_for_an_aborted_clear_is_told_that_the_turn_was_aborted(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("clear")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", _clear_and_sleep))

        async def wait_for_it() -> None:
            with pytest.raises(TurnAborted):
                await session.send_and_wait("start over")

        nursery.start_soon(wait_for_it)
        await trio.sleep(1)
        await session.abort()
    model.verify()


async def test_a_handler_that_clears_and_aborts_its_own_turn_has_aborted_it(
    autojump_clock: MockClock,
) -> None:
    async def clear_and_abort(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        await invocation.session.abort()
        return "done"

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_abort))
        await session.send("start over")
        await settled(session)
        assert await ends(session) == ["aborted"]
        assert await seeds(session) == []
        assert clears_counted(host) == {"rolled_back": 1}
        await session.send_and_wait("hello")
    model.verify()


@pytest.mark.parametrize("how", ["disconnect", "own handler", "host"])
async def test_a_stop_before_the_commit_rolls_back(autojump_clock: MockClock, how: str) -> None:
    async def clear_and_leave(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        if how == "own handler":
            await invocation.session.disconnect()
        await trio.sleep_forever()
        return "never"

    model = ScriptedModel([call("clear")])
    events = []
    async with checked_host(settled=False) as host:
        session: Session = await open_session(host, model, tool_of("clear", clear_and_leave))
        events = watch(session)
        await session.send("start over")
        await trio.sleep(1)
        if how == "disconnect":
            await session.disconnect()
        elif how == "own handler":
            await trio.sleep(10)
    assert [e.cause for e in only(events, "session.clear_rolled_back")] == ["stopped"]
    assert only(events, "session.context_cleared") == []
    assert [e.outcome for e in only(events, "tool.execution_complete")] == ["cancelled"]
    assert [e.reason for e in only(events, "turn.end")] == ["aborted"]
    model.verify()


async def test_a_roll_back_keeps_what_was_steered_and_queued_in_order(autojump_clock: MockClock) -> None:
    async def clear_late_and_fail(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        await trio.sleep(5)
        raise RuntimeError("changed my mind")

    model = ScriptedModel([call("clear"), "first", "second"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_late_and_fail))
        await session.send("start over")
        await trio.sleep(1)
        await session.send("queued")
        await session.send("steered", mode="immediate")
        await settled(session)
        assert model.requests[1].roles == ("user", "assistant", "tool", "user")
        assert model.requests[1].contents[-1] == "steered"
        assert model.requests[2].contents[-1] == "queued"
    model.verify()


async def test_another_sessions_clear_is_not_touched_by_a_roll_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel.per_session(
        lambda name: (
            [call("clear"), "never mind"] if name == "one" else [call("clear_context", prompt="A"), "ok"]
        )
    )
    async with checked_host() as host:
        one = await open_session(host, model, tool_of("clear", _clear_and_raise), session_id="one")
        two = await open_session(host, model, clear_context, read, session_id="two")
        await one.send_and_wait("start over")
        await two.send_and_wait("start over")
        assert (one.statistics().generation, two.statistics().generation) == (0, 1)
    model.verify()


async def test_nothing_of_a_staged_clear_is_left_after_its_roll_back(autojump_clock: MockClock) -> None:
    """The next turn knows nothing of it: it can be cleared again, and its clear is its own."""
    results: list[ClearResult] = []

    async def clear_and_fail(invocation: ToolInvocation) -> str:
        results.append(await invocation.session.history.clear_context("LOST"))
        raise RuntimeError("changed my mind")

    model = ScriptedModel([call("clear"), "never mind", call("clear_context", prompt="KEPT"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear_and_fail), clear_context)
        await session.send_and_wait("start over")
        before = await picture(session)
        with pytest.raises(ClearRolledBack):
            await results[0].settled()
        assert await picture(session) == before
        await session.send_and_wait("really")
        assert await seeds(session) == ["KEPT"]
    model.verify()
