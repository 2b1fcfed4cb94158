"""The date and the time before the message that begins a turn."""

from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration, SessionHost
from exeunt.testing import ScriptedModel, after, call, checked_host
from tests.actors.clear_support import clear_context
from tests.actors.turn_support import noting, open_session, read

BEGAN = datetime(2026, 11, 30, 16, 22, 48, tzinfo=UTC).timestamp()


def told(seconds: float, prompt: str) -> str:
    """What the model reads of a turn that begins so many seconds after the test."""
    moment = datetime.fromtimestamp(BEGAN + seconds, UTC)
    return f"<current_datetime>{moment:%Y-%m-%dT%H:%M:%S}+00:00</current_datetime>\n\n{prompt}"


def set_clock(host: SessionHost) -> None:
    """Let the host's time of day begin at a known moment."""
    began = trio.current_time()
    host.clock.wall = lambda: BEGAN + 0.25 + trio.current_time() - began


async def user_messages(session: Any) -> list[tuple[str, str, str | None]]:
    """How each came, what the model saw, and what was sent where that is something else."""
    found = [event for event in await session.get_events() if event.type == "user.message"]
    return [(event.delivery, event.content, event.prompt) for event in found]


async def test_each_turn_begins_with_its_own_time_and_steering_has_none(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(20, call("read")), after(70, "first"), after(30, "second")])
    async with checked_host() as host:
        set_clock(host)
        session = await open_session(host, model, read, current_datetime=True)
        await session.send("now")
        await trio.sleep(5)
        await session.send("aside", mode="immediate")
        await session.send_and_wait("later", timeout=None)
        seen = await user_messages(session)
    assert seen == [
        ("idle", told(0, "now"), "now"),
        ("steering", "aside", None),
        ("queued", told(90, "later"), "later"),
    ]
    # It says the same in each request of its turn.
    assert [request.messages[0].content for request in model.requests] == [told(0, "now")] * len(
        model.requests
    )


async def test_a_seed_has_the_time_too_and_the_log_has_it_as_it_was_given(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(60, call("clear_context", prompt="go on")), "done"])
    async with checked_host() as host:
        set_clock(host)
        session = await open_session(host, model, clear_context, current_datetime=True, system_message="SYS")
        await session.send_and_wait("begin", timeout=None)
        events = await session.get_events()
        (cleared,) = [event for event in events if event.type == "session.context_cleared"]
        assert cleared.payload()["initial_message"] == "go on"
        assert await user_messages(session) == [
            ("idle", told(0, "begin"), "begin"),
            ("seed", told(60, "go on"), "go on"),
        ]
    assert [message.content for message in model.requests[-1].messages] == ["SYS", told(60, "go on")]


async def test_the_hook_of_the_transformed_prompt_sees_the_time_and_has_the_last_word(
    autojump_clock: MockClock,
) -> None:
    submitted: list[Any] = []
    shown: list[Any] = []

    def replace(hook_input: Any, invocation: Any) -> dict[str, str] | None:
        shown.append(hook_input)
        return {"modified_transformed_prompt": "replaced"} if hook_input.prompt == "two" else None

    def remind(hook_input: Any, invocation: Any) -> dict[str, str]:
        noting(submitted)(hook_input, invocation)
        return {"additional_context": "be brief"}

    model = ScriptedModel(["1", "2"])
    async with checked_host() as host:
        set_clock(host)
        session = await open_session(
            host,
            model,
            current_datetime=True,
            on_user_prompt_submitted=remind,
            on_user_prompt_transformed=replace,
        )
        await session.send_and_wait("one")
        await session.send_and_wait("two")
        seen = await user_messages(session)
    reminder = "\n\n<system_reminder>\nbe brief\n</system_reminder>"
    assert [each.prompt for each in submitted] == ["one", "two"]
    assert [each.transformed_prompt for each in shown] == [
        told(0, f"one{reminder}"),
        told(0, f"two{reminder}"),
    ]
    assert seen == [("idle", told(0, f"one{reminder}"), "one"), ("idle", "replaced", "two")]


async def test_it_is_off_unless_it_is_asked_for(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("as it is")
        with pytest.raises(InvalidConfiguration, match="current_datetime must be True or False"):
            await open_session(host, model, current_datetime="yes")
    assert model.requests[0].messages[0].content == "as it is"
