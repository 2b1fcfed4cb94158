"""A context that grows past its mark hands off: by the model, or by the policy when the model ignores it."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt import InvalidConfiguration, Message, Session, ToolResult, Usage, Waits, tool
from exeunt.policies import HandoffPolicy, Mark, messages, share, summary_by, tokens
from exeunt.testing import (
    Gate,
    ScriptedModel,
    call,
    checked_host,
    crash_session,
    fail,
    hang,
    run_virtual,
    say,
)
from tests.actors.session_support import ends, logged, outcomes, plain_tool, settled
from tests.policies.policy_support import broken, handoffs, look, looks, open_session, submit, triggers

STEP = 2
"""Messages that one tool call adds to a context."""


def policy(**options: Any) -> HandoffPolicy:
    """A policy whose mark is passed by the second tool call, and that reminds at every call."""
    chosen: dict[str, Any] = {"at": messages(3), "remind_every": 1, "force_after": 2, **options}
    return HandoffPolicy(**chosen)


async def test_below_its_mark_a_context_is_left_alone(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([])
    model = ScriptedModel([*looks(2), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(at=messages(100), summarize=summary).extend(tools=[look])
        )
        await session.send_and_wait("go")
        assert (await handoffs(session), await triggers(session)) == ([], [])
        assert summary.calls == 0
        assert "reminder" not in "".join(model.requests[-1].contents)


async def test_past_its_mark_the_model_is_asked_and_hands_off_by_the_tool(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(2), call("clear_context", prompt="NOTE"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy().extend(tools=[look]))
        assert (await session.send_and_wait("go")).content == "done"
        asked = model.requests[2].results["call_2"]
        assert "[handoff reminder 1]" in asked
        assert "Call the tool `clear_context`" in asked
        assert model.requests[-1].contents == ("NOTE",)
        assert await handoffs(session) == [("reminded", "messages")]
        assert await triggers(session) == ["tool"]
        assert host.metrics.value("exeunt_handoffs_total", action="reminded", trigger="messages") == 1
    model.verify()


async def test_a_model_that_ignores_it_is_handed_off_with_a_summary(autojump_clock: MockClock) -> None:
    summary = ScriptedModel(["SUMMARY"])
    model = ScriptedModel([*looks(4), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, system_message="Be terse.", **policy(summarize=summary).extend(tools=[look])
        )
        reply = await session.send_and_wait("go")
        assert reply.content == "done"
        assert [turn.reason for turn in reply.turns] == ["context_cleared", "completed"]
        assert model.requests[-1].contents == ("Be terse.", "SUMMARY")
        assert await handoffs(session) == [("reminded", "messages")] * 2 + [("forced", "messages")]
        assert await triggers(session) == ["handoff_messages"]
        assert host.metrics.value("exeunt_context_clear_triggers_total", trigger="handoff_messages") == 1
        (asked,) = summary.requests
        assert asked.roles == ("system", "user")
        # With the result of the call after which it happens, which the model never gets to read.
        assert "line 3" in asked.contents[1]
        assert "Be terse." not in asked.contents[1]
    model.verify()
    summary.verify()


async def test_reminders_keep_their_distance(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(9), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(remind_every=3, force_after=None).extend(tools=[look])
        )
        await session.send_and_wait("go")
        reminded = [
            number
            for number, result in enumerate(model.requests[-1].results.values(), 1)
            if "reminder" in result
        ]
        assert reminded == [2, 5, 8]
        assert "[handoff reminder 3]" in model.requests[-1].results["call_8"]


async def test_without_a_summarizer_it_only_reminds(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(8), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy().extend(tools=[look]))
        await session.send_and_wait("go")
        assert await triggers(session) == []
        assert await handoffs(session) == [("reminded", "messages")] * 7


async def test_a_user_s_message_is_a_reminder_too(autojump_clock: MockClock) -> None:
    model = ScriptedModel([], default=say("well"))
    async with checked_host() as host:
        session = await open_session(host, model, **policy(remind_every=2).extend())
        for number in range(6):
            await session.send_and_wait(f"message {number}")
        reminded = [
            number for number, text in enumerate(model.requests[-1].contents[::2]) if "reminder" in text
        ]
        assert reminded == [2, 4]


class Fails:
    """A summarizer that fails in one way, a few times, and then works."""

    def __init__(self, *ways: Any) -> None:
        self.ways = list(ways)

    async def __call__(self, conversation: Sequence[Message], invocation: Any) -> str:
        way = self.ways.pop(0) if self.ways else "SUMMARY"
        if isinstance(way, Exception):
            raise way
        if way == "hangs":
            await trio.sleep_forever()
        return way


@pytest.mark.parametrize(
    ("way", "detail"),
    [
        (RuntimeError("broken"), "RuntimeError: broken"),
        ("hangs", "no summary within 45 s"),
        ("  ", "no text"),
        (None, "no text"),
        (7, "no text"),
        ("x" * 101, "at most 100"),
    ],
)
async def test_a_summary_that_fails_changes_nothing_and_is_tried_again(
    autojump_clock: MockClock, way: Any, detail: str
) -> None:
    model = ScriptedModel([*looks(6), say("done")])
    kept = policy(summarize=Fails(way, way), longest_seed=100)
    async with checked_host() as host:
        session = await open_session(host, model, **kept.extend(tools=[look]))
        reply = await session.send_and_wait("go", None)
        assert reply.content == "done"
        assert await handoffs(session) == [
            ("reminded", "messages"),
            ("reminded", "messages"),
            ("summary_failed", "messages"),
            ("reminded", "messages"),
            ("summary_failed", "messages"),
            ("reminded", "messages"),
            ("forced", "messages"),
        ]
        failed = [e.detail for e in await logged(session, "session.handoff") if e.action == "summary_failed"]
        assert all(detail in text for text in failed)
        assert [str(outcome) for _, outcome in await outcomes(session)] == ["success"] * 6
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_a_summary_model_that_fails_is_not_asked_twice_for_one_handoff(
    autojump_clock: MockClock,
) -> None:
    summary = ScriptedModel([fail("server_error"), hang(), "", "SUMMARY"])
    model = ScriptedModel([*looks(7), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send_and_wait("go", None)
        assert summary.calls == 4
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_siblings_are_not_forgotten_by_a_handoff(autojump_clock: MockClock) -> None:
    gate = Gate()
    summary = ScriptedModel(["SUMMARY"])
    model = ScriptedModel([*looks(3), [call("look"), call("slow")], say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=summary).extend(tools=[look, plain_tool("slow", gate)])
        )
        await session.send("go")
        await gate.entered()
        await trio.sleep(1)
        assert summary.calls == 0
        gate.open()
        await settled(session)
        assert model.requests[-1].contents == ("SUMMARY",)
        assert "passed" in summary.requests[0].contents[1]


async def test_a_terminal_tool_s_success_ends_the_work_and_is_no_reason_to_hand_off(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([*looks(3), call("submit"), say("never")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=ScriptedModel([])).extend(tools=[look, submit])
        )
        assert (await session.send_and_wait("go")).reason == "terminal_tool"
        assert await ends(session) == ["terminal_tool"]
        assert await triggers(session) == []


async def test_a_tool_that_fails_cannot_own_a_handoff(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(3), call("broken"), call("look"), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(summarize=ScriptedModel(["SUMMARY"])).extend(tools=[look, broken])
        )
        await session.send_and_wait("go")
        assert await outcomes(session) == [
            *[("look", "success")] * 3,
            ("broken", "failure"),
            ("look", "success"),
        ]
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_a_clear_of_the_tool_itself_goes_first(autojump_clock: MockClock) -> None:
    @tool
    async def fresh(prompt: str) -> str:
        """Begin anew."""
        await session.history.clear_context(prompt)
        return "fresh"

    summary = ScriptedModel([])
    model = ScriptedModel([*looks(3), call("fresh", prompt="MINE"), say("done")])
    async with checked_host() as host:
        session: Session = await open_session(
            host, model, **policy(summarize=summary).extend(tools=[look, fresh])
        )
        await session.send_and_wait("go")
        assert model.requests[-1].contents == ("MINE",)
        assert await triggers(session) == [""]


async def test_a_clear_that_comes_during_the_summary_is_not_doubled(autojump_clock: MockClock) -> None:
    async def slow(conversation: Sequence[Message], invocation: Any) -> str:
        await invocation.session.history.clear_context("FIRST")
        return "SECOND"

    model = ScriptedModel([*looks(4), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=slow).extend(tools=[look]))
        await session.send_and_wait("go")
        assert (await handoffs(session))[-1] == ("refused", "messages")
        assert model.requests[-1].contents == ("FIRST",)


async def test_a_crash_during_the_summary_loses_nothing_that_was_said(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([hang(), "SUMMARY"])
    model = ScriptedModel([*looks(4), call("look", line=9), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send("go")
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not summary.in_flight:  # noqa: ASYNC110
                await trio.sleep(0.01)
        crash_session(session)
        await settled(session)
        assert await ends(session) == ["interrupted"]
        # The next turn goes on from the reminders that stand in the context.
        assert (await session.send_and_wait("and?")).content == "done"
        assert await triggers(session) == ["handoff_messages"]
        assert model.requests[-1].contents == ("SUMMARY",)


async def test_an_abort_during_the_summary_leaves_the_context_as_it_was(autojump_clock: MockClock) -> None:
    summary = ScriptedModel([hang()])
    model = ScriptedModel(looks(4))
    async with checked_host() as host:
        session = await open_session(host, model, **policy(summarize=summary).extend(tools=[look]))
        await session.send("go")
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not summary.in_flight:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await session.abort()
        assert await triggers(session) == []
        assert session.statistics().generation == 0


async def test_what_the_provider_reports_counts(autojump_clock: MockClock) -> None:
    def used(count: int) -> Any:
        return say("", usage=Usage(count, 10))

    model = ScriptedModel(
        [[used(10), call("look")], [used(80), call("look")], [used(95), call("look")], say("done")]
    )
    async with checked_host() as host:
        session = await open_session(
            host, model, **policy(at=tokens(100), force_after=None).extend(tools=[look])
        )
        await session.send_and_wait("go")
        assert await handoffs(session) == [("reminded", "tokens")]
        assert "reminder" in model.requests[-1].results["call_3"]


async def test_a_share_of_the_window_is_a_mark(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("long"), say("done")])

    @tool
    async def long() -> str:
        """Be long."""
        return "x" * 4_000

    async with checked_host() as host:
        made = policy(at=share(0.5, window=1_000), force_after=None).extend(tools=[long])
        session = await open_session(host, model, **made)
        await session.send_and_wait("y" * 2_200)
        # Nothing was reported, so tokens are guessed: of what is in the context, which the new result is not yet.
        assert await handoffs(session) == [("reminded", "share")]


async def test_a_new_generation_begins_with_no_reminder(autojump_clock: MockClock) -> None:
    model = ScriptedModel([*looks(2), call("clear_context", prompt="NOTE"), *looks(3), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, **policy(force_after=None).extend(tools=[look]))
        await session.send_and_wait("go")
        assert [(e.action, e.generation) for e in await logged(session, "session.handoff")] == [
            ("reminded", 0),
            ("reminded", 1),
            ("reminded", 1),
        ]
        assert "[handoff reminder 2]" in model.requests[-1].contents[-1]


async def test_the_hooks_of_the_host_are_called_first(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def after_tool(hook_input: Any, invocation: Any) -> Any:
        seen.append(hook_input.tool_result.text_result_for_llm)
        return {"modified_result": ToolResult("CHANGED"), "additional_context": "MINE"}

    async def before_prompt(hook_input: Any, invocation: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return {"modified_prompt": f"<{hook_input.prompt}>"}

    model = ScriptedModel([*looks(2), say("done"), say("again")])
    async with checked_host() as host:
        options = policy(force_after=None).extend(
            tools=[look], hooks={"on_post_tool_use": after_tool}, on_user_prompt_submitted=before_prompt
        )
        session = await open_session(host, model, **options)
        await session.send_and_wait("go")
        assert seen == ["line 0", "line 1"]
        result = model.requests[2].results["call_2"]
        assert result.startswith("CHANGED")
        assert result.index("MINE") < result.index("[handoff reminder 1]")
        await session.send_and_wait("more")
        assert model.requests[-1].contents[-1].startswith("<more>")
        assert "[handoff reminder 2]" in model.requests[-1].contents[-1]


def test_a_tool_of_the_host_s_own_is_used() -> None:
    @tool("clear_context", is_terminal=True)
    async def own(prompt: str) -> str:
        """Begin anew."""
        return prompt

    assert policy().extend(tools=[own])["tools"] == (own,)
    assert [one.name for one in policy(tool_name="fresh").extend(tools=[own])["tools"]] == [
        "clear_context",
        "fresh",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"at": 7},
        {"remind_every": 0},
        {"remind_every": 1.5},
        {"force_after": -1},
        {"summary_timeout": 0},
        {"template": "no field"},
        {"longest_seed": 0},
    ],
)
def test_what_could_not_work_is_refused_when_the_policy_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        policy(**options)


@pytest.mark.parametrize("waits", [Waits(hook=45), {"hook": 30}])
def test_a_summary_must_be_done_before_its_hook_is_given_up(waits: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="summary_timeout"):
        policy(summarize=ScriptedModel([])).extend(waits=waits)
    assert policy().extend(waits=waits)


def test_marks_are_checked() -> None:
    for wrong in (0, -1, True, "many", float("inf")):
        with pytest.raises(InvalidConfiguration):
            messages(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidConfiguration):
            tokens(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration):
        share(1.5, window=100)
    assert share(0.5, window=100) == Mark("share", 50)


async def test_a_transcript_is_cut_in_its_middle(autojump_clock: MockClock) -> None:
    summary = ScriptedModel(["SUMMARY"])
    model = ScriptedModel([*looks(4), say("done")])
    kept = policy(summarize=summary_by(summary, instructions="Sum up.", longest=60))
    async with checked_host() as host:
        session = await open_session(host, model, **kept.extend(tools=[look]))
        await session.send_and_wait("go")
        system, text = summary.requests[0].contents
        assert system == "Sum up."
        assert text.startswith("user: go")
        assert "characters are left out" in text
        assert len(text) < 120


MOVES = st.lists(
    st.sampled_from(["look", "look", "look", "both", "broken", "obey", "say"]), min_size=1, max_size=24
)


@settings(max_examples=60)
@given(MOVES, st.integers(1, 4), st.integers(0, 3), st.lists(st.booleans(), max_size=8))
def test_no_generation_is_handed_off_twice_whatever_the_model_does(
    moves: list[str], every: int, force_after: int, fails: list[bool]
) -> None:
    async def play() -> None:
        outcomes_of_summary = iter(fails)

        async def summarize(conversation: Sequence[Message], invocation: Any) -> str:
            await trio.sleep(1)
            if next(outcomes_of_summary, False):
                raise RuntimeError("broken")
            return "SUMMARY"

        replies: dict[str, Any] = {
            "look": call("look"),
            "both": [call("look"), call("look", line=1)],
            "broken": call("broken"),
            "obey": call("clear_context", prompt="NOTE"),
            "say": say("well"),
        }
        model = ScriptedModel([replies[move] for move in moves], default=say("well"))
        made = policy(at=messages(4), remind_every=every, force_after=force_after, summarize=summarize)
        async with checked_host() as host:
            session = await open_session(host, model, **made.extend(tools=[look, broken]))
            for number in range(1 + moves.count("say")):
                await session.send_and_wait(f"message {number}", None)
            await settled(session)
            clears = await logged(session, "session.context_cleared")
            assert [event.generation for event in clears] == list(range(1, len(clears) + 1))
            steps = await logged(session, "session.handoff")
            for generation in range(len(clears) + 1):
                here = [event.action for event in steps if event.generation == generation]
                assert here.count("forced") <= 1
                if "forced" in here:
                    assert here[-1] == "forced"
                    assert here.count("reminded") >= force_after
                    assert clears[generation].trigger == "handoff_messages"
            forced = [event for event in clears if event.trigger.startswith("handoff_")]
            assert len(forced) == sum(event.action == "forced" for event in steps)
        model.verify()

    run_virtual(play)
