"""When a context is too large, what a policy is made of, and that no generation is handed off twice."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from exeunt import InvalidConfiguration, Media, Message, ToolResult, Usage, Waits, tool
from exeunt.actors.sizes import tokens_of_media
from exeunt.policies import Mark, messages, share, summary_by, tokens
from exeunt.policies.summaries import Said, transcript
from exeunt.testing import (
    ScriptedModel,
    call,
    checked_host,
    run_virtual,
    say,
)
from tests.actors.media_support import PIXEL
from tests.actors.session_support import logged, settled
from tests.policies.handoff_support import policy
from tests.policies.policy_support import broken, handoffs, look, looks, open_session


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


@pytest.mark.parametrize(("mark", "reminded"), [(1_400, True), (1_600, False)])
async def test_a_picture_counts_as_the_tokens_that_it_takes(
    mark: int, reminded: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([call("look"), say("done")])
    async with checked_host() as host:
        made = policy(at=tokens(mark), force_after=None).extend(tools=[look])
        session = await open_session(host, model, **made)
        # The archive is named only, and so takes nothing.
        await session.send_and_wait("hi", attachments=[PIXEL, Media("application/zip", b"z" * 100_000)])
        assert await handoffs(session) == ([("reminded", "tokens")] if reminded else [])


def test_documents_count_by_their_length() -> None:
    assert tokens_of_media(Media("text/plain", b"x" * 400)) == 100
    assert tokens_of_media(Media("application/pdf", b"x" * 400)) == 10


def test_a_transcript_names_what_was_shown() -> None:
    said = Said("user", "look", media=(PIXEL,))
    assert transcript([said]) == "user: look\n\nuser shows pixel.png, image/png, 70 bytes"


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
