"""The budget of a turn: asked before a further request, never before a terminal tool."""

from typing import Any

import pytest
from trio.testing import MockClock

from exeunt import InvalidConfiguration, Limits, Reject, Usage, tool
from exeunt.testing import ScriptedModel, call, checked_host, say
from exeunt.testing.replies import Reply
from tests.actors.turn_support import broken, ends, open_session, outcomes, read, submit, turns_counted


async def test_s6_a_terminal_tool_on_the_last_allowed_step_ends_the_turn_as_itself(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("submit", answer=42)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, limits={"steps": 1})
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("accepted 42", "terminal_tool")
        assert turns_counted(host) == {"terminal_tool": 1}
    model.verify()


async def test_s6_an_ordinary_tool_on_the_last_allowed_step_ends_the_turn_by_limit(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[say("Reading."), call("read")], "goes on"])
    async with checked_host() as host:
        session = await open_session(host, model, read, limits={"steps": 1})
        reply = await session.send_and_wait("read it")

        assert (reply.content, reply.reason) == ("Reading.", "limit")
        assert await outcomes(session) == [("read", "success")]
        assert turns_counted(host) == {"limit": 1}

        # The context can be sent (the model refuses it otherwise), and the next turn has a budget of its own.
        reply = await session.send_and_wait("and?")
        assert (reply.content, reply.reason) == ("goes on", "completed")
        assert model.requests[1].results == {"call_1": "what was read"}
    model.verify()


async def test_a_failed_terminal_tool_on_the_last_allowed_step_ends_the_turn_by_limit(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([call("submit", answer=41)])
    async with checked_host() as host:
        session = await open_session(host, model, submit, limits={"steps": 1})
        reply = await session.send_and_wait("solve it")

        assert (reply.content, reply.reason) == ("", "limit")
        assert await outcomes(session) == [("submit", "failure")]
    model.verify()


async def test_an_answer_on_the_last_allowed_step_completes_the_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("read"), "done"])
    async with checked_host() as host:
        session = await open_session(host, model, read, limits={"steps": 2})

        assert (await session.send_and_wait("read it")).reason == "completed"
    model.verify()


async def reason_of(replies: list[Reply], limits: dict[str, int], **options: Any) -> tuple[str, int]:
    """The reason of a turn with these replies, and how many of them it used."""
    model = ScriptedModel(replies)
    async with checked_host() as host:
        session = await open_session(host, model, submit, read, broken, limits=limits, **options)
        await session.send_and_wait("go")
        (reason,) = await ends(session)
    model.verify(all_given=False)
    return reason, model.calls


async def test_batches_in_which_all_fail_end_the_turn_at_the_limit(autojump_clock: MockClock) -> None:
    failed: list[Reply] = [call("broken"), call("broken", more=1), call("nothing"), "never asked for"]

    assert await reason_of(failed, {"failed_batches": 3}) == ("limit", 3)


async def test_a_success_begins_the_count_of_failed_batches_anew(autojump_clock: MockClock) -> None:
    replies: list[Reply] = [
        call("broken"),
        call("broken"),
        [call("broken"), call("read")],
        call("broken"),
        call("broken"),
        "in time",
    ]

    assert await reason_of(replies, {"failed_batches": 3}) == ("completed", 6)


async def test_denials_and_rejections_do_not_count_as_failed_batches(autojump_clock: MockClock) -> None:
    def never(request: Any, invocation: Any) -> Any:
        return Reject("no") if request.tool_name == "read" else {"kind": "user-not-available"}

    replies: list[Reply] = [
        call("read"),
        call("broken"),
        [call("read"), call("broken")],
        call("read"),
        "I see.",
    ]

    assert await reason_of(replies, {"failed_batches": 1}, on_permission_request=never) == ("completed", 5)


async def test_denials_between_failures_do_not_begin_the_count_anew(autojump_clock: MockClock) -> None:
    def no_reading(hook_input: Any, invocation: Any) -> Any:
        return {"permission_decision": "deny"} if hook_input.tool_name == "read" else None

    replies: list[Reply] = [call("broken"), call("read"), call("broken"), "never asked for"]

    assert await reason_of(replies, {"failed_batches": 2}, on_pre_tool_use=no_reading) == ("limit", 3)


async def test_one_failure_among_denials_counts(autojump_clock: MockClock) -> None:
    def no_reading(hook_input: Any, invocation: Any) -> Any:
        return {"permission_decision": "deny"} if hook_input.tool_name == "read" else None

    replies: list[Reply] = [[call("read"), call("broken")], "never asked for"]

    assert await reason_of(replies, {"failed_batches": 1}, on_pre_tool_use=no_reading) == ("limit", 1)


async def test_tokens_of_all_steps_together_end_the_turn(autojump_clock: MockClock) -> None:
    def used(request: Any) -> Reply:
        return [say("reading", usage=Usage(60, 15)), call("read")]

    assert await reason_of([used, used, "never asked for"], {"tokens": 150}) == ("limit", 2)
    assert await reason_of([used, used, "enough"], {"tokens": 151}) == ("completed", 3)


async def test_a_terminal_success_beats_a_spent_budget_of_tokens(autojump_clock: MockClock) -> None:
    replies: list[Reply] = [[say("done", usage=Usage(1000, 1000)), call("submit", answer=42)]]

    assert await reason_of(replies, {"tokens": 1}) == ("terminal_tool", 1)


async def test_a_terminal_success_beats_the_limit_of_failed_batches(autojump_clock: MockClock) -> None:
    replies: list[Reply] = [[call("broken"), call("submit", answer=42), call("nothing")]]

    assert await reason_of(replies, {"failed_batches": 1}) == ("terminal_tool", 1)


def test_the_limits_are_200_steps_10_failed_batches_and_no_tokens_unless_given() -> None:
    assert Limits() == Limits(steps=200, failed_batches=10, tokens=None)


@pytest.mark.parametrize("limits", [{"steps": 0}, {"failed_batches": -1}, {"tokens": 0}, {"turns": 3}])
async def test_limits_that_cannot_work_are_refused(autojump_clock: MockClock, limits: dict[str, int]) -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration):
            await open_session(host, ScriptedModel([]), limits=limits)
        assert host.actors() == []


async def test_the_default_limit_of_failed_batches_stops_a_model_that_never_learns(
    autojump_clock: MockClock,
) -> None:
    @tool(is_terminal=True)
    async def never(wish: str) -> str:
        raise LookupError(wish)

    model = ScriptedModel([], default=call("never", wish="x"))
    async with checked_host() as host:
        session = await open_session(host, model, never)
        reply = await session.send_and_wait("go")

        assert (reply.reason, model.calls) == ("limit", 10)
    model.verify()
