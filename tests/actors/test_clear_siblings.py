"""What becomes of the other calls of a batch in which one clears the context (scenario S3)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import ApproveOnce, HostOptions, ToolInvocation
from exeunt.testing import (
    Gate,
    ScriptedModel,
    Shielded,
    SilentApprover,
    Sleepy,
    Swallowing,
    call,
    checked_host,
)
from tests.actors.clear_support import (
    attempt,
    clear_context,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    outcomes,
    plain_tool,
    settled,
    tool_of,
    watch,
)


def _clear(siblings: Any = None, seconds: float = 0.0, **options: Any) -> Any:
    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH", siblings=siblings)
        await trio.sleep(seconds)
        return "cleared"

    return tool_of("clear", clear, is_terminal=True, **options)


async def test_s3_by_default_a_sibling_runs_to_its_outcome_and_is_wiped_with_its_generation(
    autojump_clock: MockClock,
) -> None:
    slow = Sleepy(5, "what the slow one found")
    model = ScriptedModel([[call("clear_context", prompt="FRESH"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, plain_tool("slow", slow))
        events = watch(session)
        began = trio.current_time()
        await session.send_and_wait("start over")

        (trace,) = slow.calls
        assert (trace.how, trio.current_time() - began) == ("returned", 5)
        # Logged in its old generation, before the boundary; it never reaches a model. Nothing is stale.
        assert await outcomes(session) == [("slow", "success"), ("clear_context", "success")]
        late = (await logged(session, "tool.execution_complete"))[0]
        (boundary,) = await logged(session, "session.context_cleared")
        assert (late.content, late.seq < boundary.seq) == ("what the slow one found", True)
        assert [request.contents for request in model.requests[1:]] == [("FRESH",)]
        assert only(events, "tool.result_stale") == []
        assert boundary.messages_cleared == 2
    model.verify()


async def test_the_owner_settles_last_whatever_the_order_of_the_calls(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("slow"), call("clear_context", prompt="FRESH"), call("slower")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, plain_tool("slow", Sleepy(5)), plain_tool("slower", Sleepy(7))
        )
        await session.send_and_wait("start over")
        assert await outcomes(session) == [
            ("slow", "success"),
            ("slower", "success"),
            ("clear_context", "success"),
        ]
        owner = (await logged(session, "tool.execution_complete"))[-1]
        assert owner.duration == 7
    model.verify()


async def test_a_sibling_keeps_its_own_time_out(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[call("clear_context", prompt="FRESH"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, plain_tool("slow", Sleepy(), timeout=30))
        began = trio.current_time()
        await session.send_and_wait("start over")
        assert trio.current_time() - began == 30
        assert await outcomes(session) == [("slow", "timeout"), ("clear_context", "success")]
    model.verify()


@pytest.mark.parametrize("siblings", ["wait", "cancel"])
async def test_a_sibling_that_fails_first_changes_nothing(autojump_clock: MockClock, siblings: Any) -> None:
    async def fail() -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("it broke")

    model = ScriptedModel([[call("broken"), call("clear"), call("unknown")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, _clear(siblings, 1), plain_tool("broken", fail))
        await session.send_and_wait("start over")
        assert [o for _, o in await outcomes(session)] == ["failure", "failure", "success"]
        assert clears_counted(host) == {"committed": 1}
    model.verify()


WAYS = ["argument", "option", "argument beats option"]


@pytest.mark.parametrize("way", WAYS)
async def test_siblings_can_be_cancelled_by_argument_or_by_a_sessions_option(
    autojump_clock: MockClock, way: str
) -> None:
    options: dict[str, Any] = {
        "option": {"siblings": "cancel"},
        "argument beats option": {"siblings": "wait"},
    }
    slow = Sleepy()
    model = ScriptedModel([[call("clear"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            _clear(None if way == "option" else "cancel", 1),
            plain_tool("slow", slow),
            **options.get(way, {}),
        )
        began = trio.current_time()
        await session.send_and_wait("start over")
        assert trio.current_time() - began == 1
        assert slow.calls[0].how == "cancelled"
        assert await outcomes(session) == [("slow", "cancelled"), ("clear", "success")]
        assert await ends(session) == ["terminal_tool", "completed"]
        assert model.requests[1].contents == ("FRESH",)
    model.verify()


async def test_an_argument_can_let_siblings_run_where_the_session_would_cancel_them(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[call("clear"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, _clear("wait"), plain_tool("slow", Sleepy(5)), siblings="cancel"
        )
        await session.send_and_wait("start over")
        assert await outcomes(session) == [("slow", "success"), ("clear", "success")]
    model.verify()


async def test_siblings_are_cancelled_when_the_owner_has_succeeded_and_not_before(
    autojump_clock: MockClock,
) -> None:
    """A call that ends while the owner still runs has its own outcome."""
    quick, slow = Sleepy(3), Sleepy()
    model = ScriptedModel([[call("clear"), call("quick"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, _clear("cancel", 5), plain_tool("quick", quick), plain_tool("slow", slow)
        )
        await session.send_and_wait("start over")
        assert (quick.calls[0].how, slow.calls[0].how) == ("returned", "cancelled")
        assert (slow.calls[0].ended or 0) - slow.calls[0].began == 5
        assert await outcomes(session) == [("quick", "success"), ("slow", "cancelled"), ("clear", "success")]
    model.verify()


async def test_a_cancelled_sibling_has_a_second_to_clean_up_and_cannot_hold_the_clear_up(
    autojump_clock: MockClock,
) -> None:
    """A handler that does not hear its cancellation is fenced; what it returns later is stale and dropped."""
    model = ScriptedModel([[call("clear"), call("shielded")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, _clear("cancel", 1), plain_tool("shielded", Shielded(60)))
        events = watch(session)
        began = trio.current_time()
        await session.send_and_wait("start over")
        assert trio.current_time() - began == 1 + 1
        await trio.sleep(100)
        (stale,) = only(events, "tool.result_stale")
        assert stale.tool_name == "shielded"
        assert host.metrics.registry.get_sample_value("exeunt_stale_results_total") == 1
        assert [m.content for m in session.history.messages()] == ["FRESH", "ok"]
    model.verify()


async def test_a_sibling_that_swallows_its_cancellation_is_cancelled_all_the_same(
    autojump_clock: MockClock,
) -> None:
    swallowing = Swallowing()
    model = ScriptedModel([[call("clear"), call("swallowing")], "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, _clear("cancel", 1), plain_tool("swallowing", swallowing))
        await session.send_and_wait("start over")
        assert swallowing.calls[0].how == "returned"
        assert (await outcomes(session))[0] == ("swallowing", "cancelled")
    model.verify()


async def test_with_cancel_an_approval_that_a_sibling_waits_for_is_withdrawn(
    autojump_clock: MockClock,
) -> None:
    approver = SilentApprover()
    model = ScriptedModel([[call("clear"), call("ask")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            _clear("cancel", 1),
            plain_tool("ask", Sleepy(1), skip_permission=False),
            on_permission_request=approver,
        )
        await session.send_and_wait("start over")
        assert approver.calls[0].how == "cancelled"
        assert [e.kind for e in await logged(session, "permission.completed")] == ["cancelled"]
        assert await outcomes(session) == [("ask", "cancelled"), ("clear", "success")]
    model.verify()


async def test_with_wait_the_clear_waits_for_a_siblings_approval(autojump_clock: MockClock) -> None:
    async def decide(_: Any, __: Any) -> ApproveOnce:
        await trio.sleep(600)
        return ApproveOnce()

    model = ScriptedModel([[call("clear"), call("ask")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            _clear("wait"),
            plain_tool("ask", Sleepy(1), skip_permission=False),
            on_permission_request=decide,
        )
        began = trio.current_time()
        await session.send_and_wait("start over", timeout=None)
        assert trio.current_time() - began == 601
        assert await outcomes(session) == [("ask", "success"), ("clear", "success")]
    model.verify()


@pytest.mark.parametrize("ending", ["approved", "denied"])
async def test_a_turn_that_gave_its_slot_back_for_a_siblings_approval_clears_all_the_same(
    autojump_clock: MockClock, ending: str
) -> None:
    """The only slot is taken by another session meanwhile: the seeded turn waits for it, and is not lost."""

    async def decide(_: Any, __: Any) -> Any:
        await trio.sleep(10)
        return "approve-once" if ending == "approved" else "reject"

    gate = Gate()
    model = ScriptedModel.per_session(
        lambda name: [[call("clear"), call("ask")], "ok"] if name == "one" else [call("wait"), "done"]
    )
    ended: list[str] = []

    def note_end(given: Any, _: Any) -> None:
        ended.append(given.final_message)

    async with checked_host(options=HostOptions(running_turns=1)) as host:
        one = await open_session(
            host,
            model,
            _clear("wait"),
            plain_tool("ask", Sleepy(1), skip_permission=False),
            on_permission_request=decide,
            on_session_end=note_end,
            session_id="one",
        )
        two = await open_session(host, model, plain_tool("wait", gate), session_id="two")
        await one.send("start over")
        await trio.sleep(1)
        await two.send("take the slot")
        await gate.entered()
        await trio.sleep(60)
        assert one.statistics().phase == "waiting"
        assert len(model.requests) == 2
        gate.open()
        await settled(one)
        await settled(two)
        assert await ends(one) == ["terminal_tool", "completed"]
        assert model.requests[-1].contents == ("FRESH",) or model.requests[-2].contents == ("FRESH",)
        # The hook after a turn hears of the clearing one too, also when the seeded turn had to wait.
        assert ended == ["cleared", "ok"]
    model.verify()


async def test_with_cancel_a_sibling_gives_up_its_place_in_the_queue_for_a_slot(
    autojump_clock: MockClock,
) -> None:
    """The owner has the only slot: one sibling is first in the queue when it is given back, one still waits."""

    async def after_the_owner(given: Any, _: Any) -> None:
        await trio.sleep(0.5 if given.tool_name == "sibling" else 0)

    sibling = Sleepy()
    model = ScriptedModel([[call("clear"), call("sibling"), call("sibling")], call("clear"), "ok"])
    async with checked_host(options=HostOptions(tool_slots=1)) as host:
        session = await open_session(
            host, model, _clear("cancel", 1), plain_tool("sibling", sibling), on_pre_tool_use=after_the_owner
        )
        await session.send_and_wait("start over")
        assert [o for _, o in (await outcomes(session))[:3]] == ["cancelled", "cancelled", "success"]
        assert [trace.how for trace in sibling.calls] in ([], ["cancelled"])
        slots = host.statistics().tools
        assert (slots.running, slots.waiting) == (0, 0)
    model.verify()


async def test_a_sequential_sibling_behind_the_owner_runs_before_the_commit(
    autojump_clock: MockClock,
) -> None:
    """The owner's handler has returned, so it holds up nobody; the clear waits for those behind it."""
    second = Sleepy(5)
    model = ScriptedModel([[call("clear"), call("second")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, _clear(sequential=True), plain_tool("second", second, sequential=True)
        )
        await session.send_and_wait("start over")
        assert second.calls[0].how == "returned"
        assert await outcomes(session) == [("second", "success"), ("clear", "success")]
    model.verify()


async def test_with_cancel_a_sequential_sibling_behind_the_owner_never_starts(
    autojump_clock: MockClock,
) -> None:
    second = Sleepy(5)
    model = ScriptedModel([[call("clear"), call("second")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, _clear("cancel", sequential=True), plain_tool("second", second, sequential=True)
        )
        await session.send_and_wait("start over")
        assert second.calls == []
        assert await outcomes(session) == [("second", "cancelled"), ("clear", "success")]
    model.verify()


async def test_with_cancel_the_other_owners_of_a_clear_are_spared(autojump_clock: MockClock) -> None:
    """The host asked from outside, so both calls own it: the first success does not cut the other one off."""
    model = ScriptedModel([[call("quick"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("quick", Sleepy(2)), plain_tool("slow", Sleepy(5))
        )
        await session.send("start over")
        await trio.sleep(1)
        assert (await attempt(session, siblings="cancel")).error is None
        await settled(session)
        assert sorted(await outcomes(session)) == [("quick", "success"), ("slow", "success")]
        assert clears_counted(host) == {"committed": 1}
    model.verify()


async def test_what_hooks_add_to_a_cleared_batch_does_not_reach_the_new_context(
    autojump_clock: MockClock,
) -> None:
    def advise(_: Any, __: Any) -> dict[str, str]:
        return {"additional_context": "mind what you read before"}

    model = ScriptedModel([[call("clear_context", prompt="FRESH"), call("slow")], "ok"])
    async with checked_host() as host:
        session = await open_session(
            host,
            model,
            clear_context,
            plain_tool("slow", Sleepy(1)),
            on_pre_tool_use=advise,
            on_post_tool_use=advise,
        )
        await session.send_and_wait("start over")
        assert model.requests[1].contents == ("FRESH",)
        assert [e.content for e in await logged(session, "user.message")] == ["start over", "FRESH"]
    model.verify()


async def test_a_sibling_may_send_and_steer_while_the_clear_waits_for_it(autojump_clock: MockClock) -> None:
    async def talk(invocation: ToolInvocation) -> str:
        await trio.sleep(1)
        assert invocation.session.statistics().clear_staged
        await invocation.session.send("steered", mode="immediate")
        await invocation.session.send("queued")
        return "sent"

    model = ScriptedModel([[call("clear"), call("talk")], "ok", "later"])
    async with checked_host() as host:
        session = await open_session(host, model, _clear(), tool_of("talk", talk))
        await session.send("start over")
        await settled(session)
        assert model.requests[1].contents == ("FRESH", "steered")
        assert model.requests[2].contents == ("FRESH", "steered", "ok", "queued")
    model.verify()
