"""The ready-made tool that clears a context."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration
from exeunt.policies import clear_context_tool
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.policies.policy_support import look, open_session, triggers


async def test_the_context_is_what_the_model_wrote_down(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("look"), call("clear_context", prompt="Go on with line 2."), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, tools=[look, clear_context_tool()], system_message="Be terse."
        )
        assert (await session.send_and_wait("go")).content == "done"
        assert model.requests[-1].contents == ("Be terse.", "Go on with line 2.")
        assert await triggers(session) == ["tool"]
        assert host.metrics.value("exeunt_context_clear_triggers_total", trigger="tool") == 1
    model.verify()


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_host_puts_its_own_state_around_the_note(autojump_clock: MockClock, is_async: bool) -> None:
    def state(invocation: Any) -> Mapping[str, Any]:
        return {"ticket": f"T-1 of {invocation.session_id}"}

    async def state_later(invocation: Any) -> Mapping[str, Any]:
        await trio.sleep(1)
        return state(invocation)

    made = clear_context_tool(
        name="start_over",
        template="Ticket {ticket}\n\n{prompt}\n{{kept}}",
        state=state_later if is_async else state,
    )
    model = ScriptedModel([call("start_over", prompt="{ticket} {0} {nothing}"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tools=[made], session_id="s1")
        await session.send_and_wait("go")
        assert model.requests[-1].contents == ("Ticket T-1 of s1\n\n{ticket} {0} {nothing}\n{kept}",)


@pytest.mark.parametrize(("prompt", "said"), [("x" * 11, "at most 10"), ("  ", "blank"), ("", "blank")])
async def test_a_note_that_cannot_be_a_seed_is_a_failure_that_the_model_reads(
    autojump_clock: MockClock, prompt: str, said: str
) -> None:
    model = ScriptedModel(
        [call("clear_context", prompt=prompt), call("clear_context", prompt="x" * 10), say("done")]
    )
    async with checked_host() as host:
        session = await open_session(host, model, tools=[clear_context_tool(longest_seed=10)])
        assert (await session.send_and_wait("go")).content == "done"
        assert said in model.requests[1].results["call_1"]
        assert model.requests[2].contents == ("x" * 10,)


async def test_a_tool_that_is_not_terminal_clears_too(autojump_clock: MockClock) -> None:
    made = clear_context_tool(is_terminal=False, trigger=lambda invocation: f"tool:{invocation.tool_call_id}")
    model = ScriptedModel([call("clear_context", prompt="anew"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tools=[made])
        reply = await session.send_and_wait("go")
        assert [turn.reason for turn in reply.turns] == ["context_cleared", "completed"]
        assert await triggers(session) == ["tool:call_1"]


@pytest.mark.parametrize(
    "options",
    [
        {"template": "no field"},
        {"template": "{prompt"},
        {"template": "{prompt} {ticket}"},
        {"template": 7},
        {"longest_seed": 0},
        {"longest_seed": "many"},
        {"name": "not a name"},
        {"description": 7},
    ],
)
def test_what_could_not_work_is_refused_when_the_tool_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        clear_context_tool(**options)


@pytest.mark.parametrize("trigger", [7, "x" * 65, "\ud83d"])
async def test_a_trigger_is_a_short_text(autojump_clock: MockClock, trigger: Any) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(InvalidConfiguration, match="trigger"):
            await session.history.clear_context("anew", trigger=trigger)
        assert host.metrics.value("exeunt_context_clears_total", outcome="no_tool_call") == 0
