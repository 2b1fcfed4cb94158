"""The turn of a seed: fresh budgets, hooks that see it, what an abort or an error leaves behind."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    HookInvocation,
    PromptBlocked,
    ReplyTimeout,
    SessionHost,
    ToolInvocation,
    TurnAborted,
    TurnFailed,
    Usage,
)
from exeunt.testing import Gate, ScriptedModel, call, checked_host, fail, hang, say
from tests.actors.clear_support import (
    clear_context,
    clears_counted,
    ends,
    logged,
    only,
    open_session,
    plain_tool,
    read,
    seeds,
    settled,
    tool_of,
    watch,
)

CLEAR = call("clear_context", prompt="FRESH")


# --- Budgets ---------------------------------------------------------------------------------------------------


async def test_the_steps_of_the_clearing_turn_do_not_count_for_the_seeded_one(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("read"), call("read"), CLEAR, call("read"), call("read"), "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, read, limits={"steps": 3})
        reply = await session.send_and_wait("start over")
        assert (reply.content, reply.reason) == ("ok", "completed")
        assert [event.steps for event in await logged(session, "turn.end")] == [3, 3]
    model.verify()


async def test_failed_batches_of_the_clearing_turn_do_not_count_for_the_seeded_one(
    autojump_clock: MockClock,
) -> None:
    async def broken() -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("it broke")

    model = ScriptedModel([call("broken"), CLEAR, call("broken"), "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, plain_tool("broken", broken), limits={"failed_batches": 2}
        )
        assert (await session.send_and_wait("start over")).content == "ok"
    model.verify()


async def test_the_tokens_of_the_clearing_turn_do_not_count_for_the_seeded_one(
    autojump_clock: MockClock,
) -> None:
    dear = Usage(input_tokens=90, output_tokens=20)
    model = ScriptedModel(
        [
            [say("I start over.", usage=dear), CLEAR],
            [say("Let me look.", usage=Usage(input_tokens=40, output_tokens=20)), call("read")],
            [say("And again.", usage=Usage(input_tokens=40, output_tokens=20)), call("read")],
            "unreached",
        ]
    )
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, read, limits={"tokens": 100})
        reply = await session.send_and_wait("start over")
        assert [turn.reason for turn in reply.turns] == ["terminal_tool", "limit"]
        assert len(model.requests) == 3
    model.verify(all_given=False)


# --- Hooks -----------------------------------------------------------------------------------------------------


async def test_the_prompt_hook_sees_the_seed_and_may_change_it(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def watchful(given: Any, _: HookInvocation) -> dict[str, str]:
        seen.append(given.prompt)
        return {"modified_prompt": given.prompt.lower(), "additional_context": "be kind"}

    model = ScriptedModel([CLEAR, "ok", "still ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, on_user_prompt_submitted=watchful)
        await session.send_and_wait("START OVER")
        assert seen == ["START OVER", "FRESH"]
        changed = "fresh\n\n<system_reminder>\nbe kind\n</system_reminder>"
        assert model.requests[1].contents == (changed,)
        # The boundary keeps what was asked for; the message says what became of it, and from what.
        assert await seeds(session) == ["FRESH"]
        seed = (await logged(session, "user.message"))[1]
        assert (seed.content, seed.prompt, seed.delivery) == (changed, "fresh", "seed")
        await session.send_and_wait("AND NOW?")
        assert model.requests[2].contents[0] == changed
    model.verify()


@pytest.mark.parametrize("failure", ["raises", "hangs"])
async def test_a_prompt_hook_that_fails_leaves_the_seed_as_it_is(
    autojump_clock: MockClock, failure: str
) -> None:
    async def fails(given: Any, _: HookInvocation) -> None:
        if given.prompt == "FRESH":
            if failure == "hangs":
                await trio.sleep_forever()
            raise RuntimeError("it broke")

    model = ScriptedModel([CLEAR, "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, on_user_prompt_submitted=fails)
        assert (await session.send_and_wait("start over", timeout=None)).content == "ok"
        assert model.requests[1].contents == ("FRESH",)
        assert [e.success for e in await logged(session, "hook.end")] == [True, False]
    model.verify()


async def test_a_seed_that_a_hook_blocks_never_reaches_a_model(autojump_clock: MockClock) -> None:
    """The clear stays; its turn ends, who waited is told, and later requests do not hold the blocked text."""

    def block(given: Any, _: HookInvocation) -> dict[str, str]:
        return {"decision": "block", "reason": "a secret"} if given.prompt == "FRESH" else {}

    model = ScriptedModel([CLEAR, "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, system_message="terse", on_user_prompt_submitted=block
        )
        events = watch(session)
        with pytest.raises(PromptBlocked, match="a secret"):
            await session.send_and_wait("start over")
        assert [e.warning_type for e in only(events, "session.warning")] == ["policy_blocked"]
        assert await ends(session) == ["terminal_tool", "aborted"]
        assert clears_counted(host) == {"committed": 1}
        assert len(model.requests) == 1

        await session.send_and_wait("hello")
        # A context begins with a user message, so something stands in the seed's place.
        withheld = "[The first message of this context was withheld.]"
        assert model.requests[1].contents == ("terse", withheld, "hello")
        assert session.statistics().generation == 1
    model.verify()


async def test_messages_steered_behind_a_blocked_seed_get_a_turn_of_their_own(
    autojump_clock: MockClock,
) -> None:
    def block(given: Any, _: HookInvocation) -> dict[str, str]:
        return {"decision": "block", "reason": "a secret"} if given.prompt == "FRESH" else {}

    async def steer_and_clear(invocation: ToolInvocation) -> str:
        await invocation.session.send("by the way", mode="immediate")
        await invocation.session.history.clear_context("FRESH")
        return "cleared"

    model = ScriptedModel([call("clear"), "hi"])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("clear", steer_and_clear), on_user_prompt_submitted=block
        )
        await session.send("start over")
        await settled(session)
        assert model.requests[1].contents[-1] == "by the way"
    model.verify()


async def test_the_hook_after_a_turn_is_called_for_the_clearing_turn_and_for_the_seeded_one(
    autojump_clock: MockClock,
) -> None:
    """The first of them returns before anything of the seeded turn begins."""
    order: list[tuple[str, Any]] = []

    async def on_end(given: Any, _: HookInvocation) -> None:
        await trio.sleep(1)
        order.append((given.reason, given.final_message))

    def on_prompt(given: Any, _: HookInvocation) -> None:
        order.append(("prompt", given.prompt))

    model = ScriptedModel([CLEAR, "ok"])
    async with checked_host() as host:
        session = await open_session(
            host, model, clear_context, on_session_end=on_end, on_user_prompt_submitted=on_prompt
        )
        await session.send_and_wait("start over")
        await settled(session)
        assert order == [
            ("prompt", "start over"),
            ("complete", "Cleared 2 messages."),
            ("prompt", "FRESH"),
            ("complete", "ok"),
        ]
    model.verify()


async def test_a_clear_does_not_start_the_session_again(autojump_clock: MockClock) -> None:
    """The hook of the session's start has greeted already, and its text is not put in front of a seed."""
    sources: list[str] = []

    def greet(given: Any, _: HookInvocation) -> dict[str, str]:
        sources.append(given.source)
        return {"additional_context": "welcome"}

    model = ScriptedModel([CLEAR, "ok"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, on_session_start=greet)
        await session.send_and_wait("start over")
        assert sources == ["new"]
        assert model.requests[1].contents == ("FRESH",)
    model.verify()


# --- Abort, errors, time-outs ----------------------------------------------------------------------------------


async def _abort_in(seconds: float, host: SessionHost, **options: Any) -> Any:
    session = host.get_session("one")
    await trio.sleep(seconds)
    return await session.abort(**options)


async def test_an_abort_of_the_seeded_turn_leaves_the_clear_and_its_unanswered_seed(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([CLEAR, hang(), "hi"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, clear_context, session_id="one")
        nursery.start_soon(_abort_in, 1, host)
        with pytest.raises(TurnAborted):
            await session.send_and_wait("start over")
        assert await ends(session) == ["terminal_tool", "aborted"]
        assert [m.content for m in session.history.messages()] == ["FRESH"]
        assert clears_counted(host) == {"committed": 1}
        await session.send_and_wait("hello")
        assert model.requests[2].contents == ("FRESH", "hello")
    model.verify()


async def test_an_abort_while_hooks_look_at_the_seed_leaves_it_unanswered(autojump_clock: MockClock) -> None:
    async def slow(given: Any, _: HookInvocation) -> None:
        await trio.sleep(10 if given.prompt == "FRESH" else 0)

    model = ScriptedModel([CLEAR, "hi"])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(
            host, model, clear_context, session_id="one", on_user_prompt_submitted=slow
        )
        nursery.start_soon(_abort_in, 1, host)
        with pytest.raises(TurnAborted):
            await session.send_and_wait("start over")
        assert await ends(session) == ["terminal_tool", "aborted"]
        await session.send_and_wait("hello")
        assert model.requests[1].contents == ("FRESH", "hello")
    model.verify()


@pytest.mark.parametrize("queued", ["drop", "keep"])
async def test_an_abort_of_the_seeded_turn_drops_or_keeps_what_waits(
    autojump_clock: MockClock, queued: str
) -> None:
    model = ScriptedModel([CLEAR, hang(), "on the question"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, session_id="one")
        events = watch(session)
        await session.send("start over")
        await session.send("a question")
        receipt = await _abort_in(1, host, queued=queued)
        assert (receipt.queued, receipt.tools_cancelled) == (1, ())
        await settled(session)
        assert [e.cause for e in only(events, "message.dropped")] == (["aborted"] if queued == "drop" else [])
        if queued == "keep":
            assert model.requests[2].contents == ("FRESH", "a question")
    model.verify(all_given=queued == "keep")


async def test_a_tool_call_of_an_aborted_seeded_turn_has_its_result_in_the_next_request(
    autojump_clock: MockClock,
) -> None:
    gate = Gate()
    model = ScriptedModel([CLEAR, call("wait"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context, plain_tool("wait", gate), session_id="one")
        await session.send("start over")
        await _abort_in(1, host)
        await session.send_and_wait("hello")
        assert model.requests[2].roles == ("user", "assistant", "tool", "user")
    model.verify()


async def test_an_error_of_the_model_in_the_seeded_turn_leaves_the_clear(autojump_clock: MockClock) -> None:
    model = ScriptedModel([CLEAR, fail("bad_request"), "hi"])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        with pytest.raises(TurnFailed):
            await session.send_and_wait("start over")
        assert await ends(session) == ["terminal_tool", "error"]
        await session.send_and_wait("hello")
        assert model.requests[2].contents == ("FRESH", "hello")
    model.verify()


async def test_a_wait_that_ends_early_lets_the_seeded_turn_go_on(autojump_clock: MockClock) -> None:
    model = ScriptedModel([CLEAR, say("ok", delay=100)])
    async with checked_host() as host:
        session = await open_session(host, model, clear_context)
        with pytest.raises(ReplyTimeout) as caught:
            await session.send_and_wait("start over", timeout=10)
        assert (caught.value.phase, caught.value.in_flight) == ("model", ())
        await settled(session)
        assert [m.content for m in session.history.messages()] == ["FRESH", "ok"]
    model.verify()
