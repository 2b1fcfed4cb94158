"""Where the words of each hook go: never between a call and its result, and never into the log as something else."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import HookInvocation, PromptBlocked, TurnAborted, TurnFailed, Waits
from exeunt.actors.events import HookEnd, HookStart, SessionWarning, UserMessage
from exeunt.testing import ScriptedModel, call, checked_host, fail
from tests.actors.turn_support import (
    answering,
    broken,
    ends,
    logged,
    open_session,
    outcomes,
    read,
    submit,
    watch,
)


async def test_the_context_of_a_pre_hook_follows_the_results_of_the_batch(autojump_clock: MockClock) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"additional_context": f"about {hook_input.tool_call_id}"}

    model = ScriptedModel([[call("read"), call("broken")], "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, broken, on_pre_tool_use=guide)
        await session.send_and_wait("go")

        request = model.requests[1]
        assert request.roles == ("user", "assistant", "tool", "tool", "user", "user")
        assert request.contents[4:] == (
            "Additional context from preToolUse hook:\nabout call_1",
            "Additional context from preToolUse hook:\nabout call_2",
        )
        assert [m.delivery for m in await logged(session, UserMessage)] == ["idle", "hook", "hook"]
    model.verify()


async def test_the_words_of_both_hooks_of_a_failed_call_stand_in_order(autojump_clock: MockClock) -> None:
    hooks = {
        "on_pre_tool_use": answering({"additional_context": "before"}),
        "on_post_tool_use_failure": answering({"additional_context": "after"}),
    }
    model = ScriptedModel([call("broken"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, broken, hooks=hooks)
        await session.send_and_wait("go")

        assert model.requests[1].contents[3:] == (
            "Additional context from preToolUse hook:\nbefore",
            'Tool "broken" failed. Additional guidance from postToolUseFailure hooks:\nafter',
        )
    model.verify()


async def test_the_context_of_a_pre_hook_stays_when_a_terminal_tool_ends_the_turn(
    autojump_clock: MockClock,
) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"additional_context": "mind this"}

    model = ScriptedModel([call("submit", answer=42), "next turn"])
    async with checked_host() as host:
        session = await open_session(host, model, submit, on_pre_tool_use=guide)
        await session.send_and_wait("go")
        await session.send_and_wait("and?")

        assert model.requests[1].roles == ("user", "assistant", "tool", "user", "user")
        assert await ends(session) == ["terminal_tool", "completed"]
    model.verify()


async def test_the_context_of_a_prompt_hook_ends_the_prompt(autojump_clock: MockClock) -> None:
    def guide(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"additional_context": "It is Monday."}

    model = ScriptedModel(["done"])
    async with checked_host() as host:
        session = await open_session(host, model, on_user_prompt_submitted=guide)
        await session.send_and_wait("go")

        text = "go\n\n<system_reminder>\nIt is Monday.\n</system_reminder>"
        assert model.requests[0].contents == (text,)
        (message,) = await logged(session, UserMessage)
        assert (message.content, message.prompt) == (text, "go")
    model.verify()


async def test_a_prompt_hook_may_change_the_prompt_and_add_to_it(autojump_clock: MockClock) -> None:
    def rewrite(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {"modified_prompt": hook_input.prompt.upper(), "additional_context": "loud"}

    model = ScriptedModel(["done"])
    async with checked_host() as host:
        session = await open_session(host, model, on_user_prompt_submitted=rewrite)
        await session.send_and_wait("go")

        assert model.requests[0].contents == ("GO\n\n<system_reminder>\nloud\n</system_reminder>",)
    model.verify()


async def test_the_context_of_the_start_hook_is_a_message_before_the_first_prompt_only(
    autojump_clock: MockClock,
) -> None:
    seen: list[tuple[str, str]] = []

    def greet(hook_input: Any, invocation: Any) -> dict[str, str]:
        seen.append((hook_input.source, hook_input.initial_prompt))
        return {"additional_context": "The user is Ada."}

    model = ScriptedModel(["one", "two"])
    async with checked_host() as host:
        session = await open_session(host, model, on_session_start=greet, system_message="Be brief.")
        await session.send_and_wait("first")
        await session.send_and_wait("second")

        assert model.requests[0].roles == ("system", "user", "user")
        assert model.requests[1].contents == ("Be brief.", "The user is Ada.", "first", "one", "second")
        assert seen == [("new", "first")]
    model.verify()


async def test_a_prompt_that_a_hook_blocks_reaches_no_model_and_its_sender_is_told(
    autojump_clock: MockClock,
) -> None:
    def block(hook_input: Any, invocation: Any) -> dict[str, str] | None:
        if "secret" in hook_input.prompt:
            return {"decision": "block", "reason": "it holds a secret"}
        return None

    model = ScriptedModel(["fine"])
    async with checked_host() as host:
        session = await open_session(host, model, on_user_prompt_submitted=block)
        warnings = watch(session, SessionWarning)
        with pytest.raises(PromptBlocked, match="it holds a secret"):
            await session.send_and_wait("my secret")

        assert [(w.warning_type, w.message) for w in warnings] == [("policy_blocked", "it holds a secret")]
        assert (await session.send_and_wait("hello")).content == "fine"
        assert model.requests[0].contents == ("hello",)
    model.verify()


@pytest.mark.parametrize("name", ["on_session_start", "on_user_prompt_submitted", "on_session_end"])
@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_hooks_around_a_turn_that_fail_are_noted_and_ignored(
    autojump_clock: MockClock, name: str, how: str
) -> None:
    async def fails(hook_input: Any, invocation: Any) -> None:
        if how == "raises":
            raise LookupError("gone")
        await trio.sleep_forever()

    model = ScriptedModel(["one", "two"])
    async with checked_host() as host:
        session = await open_session(host, model, hooks={name: fails}, waits=Waits(hook=7))
        await session.send_and_wait("first")
        await session.send_and_wait("second")
        await trio.sleep(10)

        hook_ends = await logged(session, HookEnd)
        assert len(hook_ends) == (1 if name == "on_session_start" else 2)
        error = "LookupError: gone" if how == "raises" else "the hook did not return within 7 s"
        assert {(end.success, end.error) for end in hook_ends} == {(False, error)}
    model.verify()


async def test_the_end_hook_is_told_how_a_turn_ended(autojump_clock: MockClock) -> None:
    told: list[tuple[str, str | None, str | None]] = []

    def note(hook_input: Any, invocation: Any) -> None:
        told.append((hook_input.reason, hook_input.final_message, hook_input.error))

    async def stop(hook_input: Any, invocation: HookInvocation) -> None:
        await invocation.session.abort()

    model = ScriptedModel(["fine", call("submit", answer=42), fail("bad_request", "no"), call("read")])
    async with checked_host() as host:
        session = await open_session(host, model, submit, read, on_session_end=note, on_error_occurred=None)
        await session.send_and_wait("one")
        await session.send_and_wait("two")
        with pytest.raises(TurnFailed):
            await session.send_and_wait("three")
        other = await open_session(host, model, read, on_session_end=note, on_post_tool_use=stop)
        with pytest.raises(TurnAborted):
            await other.send_and_wait("four")

        assert told == [
            ("complete", "fine", None),
            ("complete", "accepted 42", None),
            ("error", None, "no"),
            ("abort", None, None),
        ]
    model.verify()


async def test_hooks_of_a_call_are_bracketed_by_events_in_order(autojump_clock: MockClock) -> None:
    def silent(hook_input: Any, invocation: Any) -> None:
        assert hook_input["session_id"] == hook_input.session_id == invocation.session_id

    names = ["on_session_start", "on_user_prompt_submitted", "on_pre_tool_use", "on_post_tool_use"]
    hooks = dict.fromkeys([*names, "on_post_tool_use_failure", "on_error_occurred", "on_session_end"], silent)
    model = ScriptedModel([call("read"), call("broken"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, broken, hooks=hooks)
        await session.send_and_wait("go")

        starts, hook_ends = await logged(session, HookStart), await logged(session, HookEnd)
        assert [(e.hook_type, e.tool_call_id) for e in starts] == [
            ("sessionStart", None),
            ("userPromptSubmitted", None),
            ("preToolUse", "call_1"),
            ("postToolUse", "call_1"),
            ("preToolUse", "call_2"),
            ("errorOccurred", "call_2"),
            ("postToolUseFailure", "call_2"),
            ("sessionEnd", None),
        ]
        assert [e.hook_invocation_id for e in hook_ends] == [e.hook_invocation_id for e in starts]
        assert all(end.success for end in hook_ends)
        assert await outcomes(session) == [("read", "success"), ("broken", "failure")]
    model.verify()


async def test_half_a_surrogate_pair_from_a_hook_does_not_brick_the_session(
    autojump_clock: MockClock,
) -> None:
    def half(hook_input: Any, invocation: Any) -> dict[str, str]:
        return {
            "additional_context": "a\ud83d",
            "permission_decision_reason": "b\ud83d",
            "permission_decision": "deny",
        }

    hooks = {"on_pre_tool_use": half, "on_user_prompt_submitted": half, "on_session_start": half}
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, hooks=hooks)
        await session.send_and_wait("go")

        assert model.requests[1].results == {"call_1": "Denied by preToolUse hook: b\ufffd"}
        assert model.requests[1].contents[-1] == "Additional context from preToolUse hook:\na\ufffd"
    model.verify()


async def test_a_hook_sees_each_prompt_as_it_is_to_enter_the_context_and_may_change_it(
    autojump_clock: MockClock,
) -> None:
    seen: list[tuple[str, str]] = []

    def transform(hook_input: Any, invocation: Any) -> dict[str, str]:
        seen.append((hook_input.prompt, hook_input.transformed_prompt))
        return {"modified_transformed_prompt": hook_input.transformed_prompt.upper()}

    hooks: dict[str, Any] = {
        "on_user_prompt_submitted": answering({"modified_prompt": "b", "additional_context": "c"}),
        "on_user_prompt_transformed": transform,
    }
    model = ScriptedModel(["one"])
    async with checked_host() as host:
        session = await open_session(host, model, hooks=hooks)
        await session.send_and_wait("a")
        added = "b\n\n<system_reminder>\nc\n</system_reminder>"
        assert seen == [("b", added)]
        assert model.requests[0].contents == (added.upper(),)
        (message,) = await logged(session, UserMessage)
        assert message.prompt == "b"
    model.verify()
