"""A clear that is refused: which error, in which order of checks, what is counted, and that nothing changed."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    ClearAlreadyStaged,
    ClearRefused,
    EmptySeedPrompt,
    ExeuntError,
    HookInvocation,
    InvalidConfiguration,
    InvalidPrompt,
    NoToolCallInFlight,
    RemoteSessionError,
    ToolInvocation,
)
from exeunt.testing import Gate, LoopbackTransport, ScriptedModel, after, call, checked_host, say
from tests.actors.clear_support import (
    Attempt,
    attempt,
    clear_context,
    clears_counted,
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


async def test_s2_a_session_of_another_process_refuses_before_it_looks_at_the_seed(
    autojump_clock: MockClock,
) -> None:
    async with checked_host() as host:
        remote = host.attach_remote("elsewhere", LoopbackTransport(host))
        shown: list[tuple[str, str]] = []
        host.observe(lambda name, events: shown.extend((name, event.type) for event in events))
        for prompt in ["FRESH", "", None]:
            with pytest.raises(RemoteSessionError) as caught:
                await remote.history.clear_context(prompt)
            assert isinstance(caught.value, ClearRefused)
        assert shown == [("elsewhere", "session.clear_refused")] * 3
        assert clears_counted(host) == {"remote": 3}


NOT_TEXT: list[Any] = [None, 5, b"FRESH", ["FRESH"], {"prompt": "FRESH"}]
BLANK = ["", " ", " \n\t\r", "\u00a0\u2003"]


async def test_s2_an_idle_session_refuses_to_be_cleared(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, system_message="terse")
        events = watch(session)
        newborn = await attempt(session)
        await session.send_and_wait("hello")
        idle = await attempt(session)

        assert [newborn.refused, idle.refused] == [NoToolCallInFlight] * 2
        assert [e.cause for e in only(events, "session.clear_refused")] == ["no_tool_call"] * 2
        assert clears_counted(host) == {"no_tool_call": 2}
        assert await seeds(session) == []
    model.verify()


@pytest.mark.parametrize("streaming", [False, True])
async def test_s2_a_timer_cannot_clear_while_the_model_answers(
    autojump_clock: MockClock, streaming: bool
) -> None:
    model = ScriptedModel([say("a long answer", delay=2, gap=2)])
    attempts: list[Attempt] = []
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context, streaming=streaming)

        async def clear_later() -> None:
            await trio.sleep(1)
            assert session.statistics().phase == "model"
            attempts.append(await attempt(session))

        nursery.start_soon(clear_later)
        reply = await session.send_and_wait("hello")
        assert reply.content == "a long answer"
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()


HOOKS = ["on_session_start", "on_user_prompt_submitted", "on_session_end"]


@pytest.mark.parametrize("hook", HOOKS)
async def test_s2_a_hook_around_a_turn_cannot_clear(autojump_clock: MockClock, hook: str) -> None:
    """Only the hooks of a tool call run while that call is in flight."""
    attempts: list[Attempt] = []

    async def clear_in_hook(_: Any, invocation: HookInvocation) -> None:
        attempts.append(await attempt(invocation.session))

    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, **{hook: clear_in_hook})
        await session.send_and_wait("hello")
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()


async def test_a_hook_of_a_steered_message_cannot_clear_between_two_batches(
    autojump_clock: MockClock,
) -> None:
    attempts: list[Attempt] = []

    async def clear_in_hook(given: Any, invocation: HookInvocation) -> None:
        if given.prompt == "by the way":
            attempts.append(await attempt(invocation.session))

    async def steer(invocation: ToolInvocation) -> str:
        await invocation.session.send("by the way", mode="immediate")
        return "sent"

    model = ScriptedModel([call("steer"), "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("steer", steer), on_user_prompt_submitted=clear_in_hook
        )
        await session.send_and_wait("hello")
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
    model.verify()


async def test_a_disconnected_session_refuses_to_be_cleared(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        await session.send_and_wait("hello")
        await session.disconnect()
        assert (await attempt(session)).refused is NoToolCallInFlight
    model.verify()


async def test_a_turn_that_is_being_aborted_cannot_be_cleared_any_more(autojump_clock: MockClock) -> None:
    """The handler has its second to clean up; a clear that is asked for meanwhile could only be rolled back."""

    async def cleans_up(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)

    model = ScriptedModel([call("slow"), "hi"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("slow", cleans_up))
        await session.send("hello")
        await trio.sleep(1)
        nursery.start_soon(session.abort)
        await trio.sleep(0.1)
        assert session.statistics().in_flight == ("slow",)
        assert (await attempt(session)).refused is NoToolCallInFlight
        await settled(session)
        await session.send_and_wait("again")
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()


async def test_a_call_of_the_host_that_is_being_aborted_cannot_be_cleared_any_more(
    autojump_clock: MockClock,
) -> None:
    async def cleans_up(_: ToolInvocation) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)

    model = ScriptedModel([])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("slow", cleans_up))
        nursery.start_soon(session.call_tool, "slow")
        await trio.sleep(1)
        nursery.start_soon(session.abort)
        await trio.sleep(0.1)
        assert session.statistics().in_flight == ("slow",)
        assert (await attempt(session)).refused is NoToolCallInFlight
        await settled(session)
        assert await outcomes(session) == [("slow", "cancelled")]
    model.verify()


async def test_a_session_that_restarts_cannot_be_cleared(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("hello")
        await gate.entered()
        host.actors()[0].crash("test", RuntimeError("x"))
        assert session.statistics().status == "restarting"
        with pytest.raises(NoToolCallInFlight):
            await session.history.clear_context("FRESH")
        await settled(session)
        assert clears_counted(host) == {"no_tool_call": 1}
    model.verify()


@pytest.mark.parametrize("prompt", [*NOT_TEXT, *BLANK])
async def test_a_seed_that_is_no_text_or_blank_is_refused_inside_a_tool(
    autojump_clock: MockClock, prompt: Any
) -> None:
    attempts: list[Attempt] = []

    async def clear(invocation: ToolInvocation) -> str:
        attempts.append(await attempt(invocation.session, prompt))
        return "went on"

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        events = watch(session)
        reply = await session.send_and_wait("start over")
        assert [tried.refused for tried in attempts] == [EmptySeedPrompt]
        assert isinstance(attempts[0].error, ValueError)
        assert [e.cause for e in only(events, "session.clear_refused")] == ["empty_prompt"]
        assert clears_counted(host) == {"empty_prompt": 1}
        assert (reply.content, await outcomes(session)) == ("hi", [("clear", "success")])
        assert session.statistics().generation == 0
    model.verify()


async def test_the_seed_is_looked_at_before_anything_else(autojump_clock: MockClock) -> None:
    """A blank seed is told as such where several things are wrong: while idle, while a clear is staged."""
    attempts: list[Attempt] = []

    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        attempts.append(await attempt(invocation.session, " "))
        return "cleared"

    model = ScriptedModel([call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        attempts.append(await attempt(session, ""))
        await session.send_and_wait("start over")
        assert [tried.refused for tried in attempts] == [EmptySeedPrompt] * 2
        assert clears_counted(host) == {"empty_prompt": 2, "committed": 1}
    model.verify()


async def test_a_caller_whose_call_is_over_is_told_that_and_not_that_a_clear_is_staged(
    autojump_clock: MockClock,
) -> None:
    """The check for a call in flight comes before the check for a staged clear."""
    attempts: list[Attempt] = []
    gate = Gate()

    async def clear(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("FRESH")
        nursery.start_soon(clear_again, invocation)
        return "cleared"

    async def clear_again(invocation: ToolInvocation) -> None:
        await trio.sleep(1)
        assert invocation.session.statistics().clear_staged
        attempts.append(await attempt(invocation.session))

    model = ScriptedModel([[call("clear"), call("wait")], "ok"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("clear", clear), plain_tool("wait", gate))
        await session.send("start over")
        await trio.sleep(2)
        gate.open()
        await settled(session)
        assert [tried.refused for tried in attempts] == [NoToolCallInFlight]
        assert clears_counted(host) == {"committed": 1, "no_tool_call": 1}
    model.verify()


async def test_a_staged_clear_is_told_before_a_loop_of_clears(autojump_clock: MockClock) -> None:
    attempts: list[Attempt] = []

    async def clear(invocation: ToolInvocation) -> str:
        attempts.append(await attempt(invocation.session))
        attempts.append(await attempt(invocation.session))
        return "tried"

    model = ScriptedModel([call("clear"), call("clear"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear), max_consecutive_clears=1)
        await session.send_and_wait("start over")
        staged, second = attempts[0], attempts[1]
        assert (staged.error, second.refused) == (None, ClearAlreadyStaged)
        assert attempts[3].refused is ClearAlreadyStaged
    model.verify()


@pytest.mark.parametrize("siblings", ["", "kill", None.__class__, 1])
async def test_an_unknown_policy_for_siblings_is_bad_input_and_no_refusal(
    autojump_clock: MockClock, siblings: Any
) -> None:
    seen: list[Any] = []

    async def clear(invocation: ToolInvocation) -> str:
        before = await picture(invocation.session)
        with pytest.raises(InvalidConfiguration, match="'wait' or 'cancel'"):
            await invocation.session.history.clear_context("FRESH", siblings=siblings)
        seen.append(await picture(invocation.session) == before)
        return "went on"

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        events = watch(session)
        await session.send_and_wait("start over")
        assert seen == [True]
        assert only(events, "session.clear_refused") == []
        assert clears_counted(host) == {}
    model.verify()


async def test_a_seed_that_no_model_could_be_sent_is_bad_input(autojump_clock: MockClock) -> None:
    """Half a surrogate pair cannot be encoded: such a seed would make every later request of the session fail."""
    seen: list[Any] = []

    async def clear(invocation: ToolInvocation) -> str:
        before = await picture(invocation.session)
        with pytest.raises(InvalidPrompt, match="surrogate"):
            await invocation.session.history.clear_context("FRESH \ud83d")
        seen.append(await picture(invocation.session) == before)
        return "went on"

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("clear", clear))
        assert (await session.send_and_wait("start over")).content == "hi"
        assert seen == [True]
        assert clears_counted(host) == {}
    model.verify()


async def test_a_cancelled_caller_has_changed_nothing(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("hello")
        await gate.entered()
        before = await picture(session)
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.history.clear_context("FRESH")
        assert scope.cancelled_caught
        assert await picture(session) == before
        gate.open()
        await settled(session)
        assert clears_counted(host) == {}
    model.verify()


async def test_a_refusal_names_its_session_its_cause_and_what_to_do(autojump_clock: MockClock) -> None:
    model = ScriptedModel([])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        with pytest.raises(ClearRefused, match=r"call_tool") as caught:
            await session.history.clear_context("FRESH")
        assert isinstance(caught.value, ExeuntError)
        assert caught.value.session_id == session.session_id
        assert caught.value.cause == "no_tool_call"
    model.verify()


async def test_a_refused_event_is_shown_and_never_logged(autojump_clock: MockClock) -> None:
    model = ScriptedModel([])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        events = watch(session)
        assert (await attempt(session)).refused is NoToolCallInFlight
        (shown,) = events
        assert (shown.type, shown.ephemeral) == ("session.clear_refused", True)
        assert shown.payload() == {"cause": "no_tool_call"}
        assert shown not in await session.get_events()
    model.verify()


async def test_a_refused_handler_may_go_on_and_a_later_batch_may_clear(autojump_clock: MockClock) -> None:
    async def clear_badly(invocation: ToolInvocation) -> str:
        await invocation.session.history.clear_context("")
        return "never"

    model = ScriptedModel([call("clear_badly"), call("clear_context", prompt="FRESH"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, tool_of("clear_badly", clear_badly))
        reply = await session.send_and_wait("start over")
        assert reply.content == "ok"
        (result,) = model.requests[1].results.values()
        assert "seed prompt is blank" in result
        assert await outcomes(session) == [("clear_badly", "failure"), ("clear_context", "success")]
        assert clears_counted(host) == {"empty_prompt": 1, "committed": 1}
    model.verify()


async def test_messages_that_wait_are_not_touched_by_a_refusal(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(5, call("read")), "first", "second"])
    async with checked_host() as host:
        session = await open_session(host, model, read)
        await session.send("hello")
        await session.send("later")
        await session.send("by the way", mode="immediate")
        assert (await attempt(session)).refused is NoToolCallInFlight
        now = session.statistics()
        assert (now.queued, now.steered) == (1, 1)
        await settled(session)
        assert model.requests[1].contents[-1] == "by the way"
        assert model.requests[2].contents[-1] == "later"
    model.verify()
