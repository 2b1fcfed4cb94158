"""Messages and results that bring media: to the model, through a restart, a clear and a snapshot."""

from typing import Any

import pytest

from exeunt import InvalidMedia, MailboxFull, Media, MediaLimits, MediaTooLarge, ToolResult
from exeunt.actors.state import SessionState
from exeunt.actors.state.snapshot import dump, load
from exeunt.testing import Gate, ScriptedModel, call, checked_host, crash_session, say
from tests.actors.media_support import NOTES, PAPER, PIXEL, PNG
from tests.actors.session_support import logged, open_session, plain_tool, reach, settled


def result(value: Any) -> Any:
    async def give() -> Any:
        return value

    return give


def shown(model: ScriptedModel, request: int = -1) -> list[tuple[str, tuple[Media, ...]]]:
    """Role and media of the messages of a request that bring any."""
    return [(message.role, message.media) for message in model.requests[request].messages if message.media]


async def test_what_is_attached_is_in_the_models_request_and_once_in_the_log() -> None:
    model = ScriptedModel([say("a pixel"), say("still")])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("what is this?", attachments=[PIXEL, PAPER])
        await session.send_and_wait("and now?")
        assert shown(model, 0) == shown(model, 1) == [("user", (PIXEL, PAPER))]
        (accepted, other) = await logged(session, "message.accepted")
        assert (accepted.media, other.media) == ((PIXEL, PAPER), ())
        assert [event.media for event in await logged(session, "user.message")] == [(), ()]


async def test_a_message_that_steers_brings_its_attachments(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait"), say("ok")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("wait", gate))
        await session.send("go")
        await reach(session, "tools")
        await session.send("look", mode="immediate", attachments=(PIXEL,))
        gate.open()
        await settled(session)
        assert shown(model) == [("user", (PIXEL,))]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (PIXEL, ""),
        (["here:", PIXEL], "here:"),
        (ToolResult("drawn", media=[PIXEL]), "drawn"),  # type: ignore[arg-type]
        ({"textResultForLlm": "drawn", "binaryResultsForLlm": [PIXEL]}, "drawn"),
        (
            {
                "text_result_for_llm": "drawn",
                "binary_results_for_llm": [
                    {
                        "data": PIXEL.base64,
                        "mimeType": "image/png",
                        "type": "image",
                        "description": "pixel.png",
                    }
                ],
            },
            "drawn",
        ),
    ],
)
async def test_a_tool_may_show_the_model_something(value: Any, text: str) -> None:
    model = ScriptedModel([call("draw"), say("nice")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("draw", result(value)))
        await session.send_and_wait("draw")
        assert shown(model) == [("tool", (PIXEL,))]
        (complete,) = await logged(session, "tool.execution_complete")
        assert (complete.content, complete.media) == (text, (PIXEL,))


async def test_a_result_that_is_no_media_tells_the_model_why() -> None:
    value = {"textResultForLlm": "drawn", "binaryResultsForLlm": [{"data": "?", "mimeType": "image/png"}]}
    model = ScriptedModel([call("draw"), say("hm")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("draw", result(value)))
        await session.send_and_wait("draw")
        (complete,) = await logged(session, "tool.execution_complete")
        assert complete.success
        assert complete.content.startswith(
            "drawn\n[binary result left out: the data of 'image/png' are no base64"
        )


async def test_a_call_of_the_host_gets_the_media_of_its_result() -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), plain_tool("draw", result(PIXEL)))
        outcome = await session.call_tool("draw")
        assert outcome.media == (PIXEL,)


async def test_media_above_the_limits_are_refused_and_leave_nothing() -> None:
    limits = {"item": 100, "message": 150}
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]), media_limits=limits)
        with pytest.raises(MediaTooLarge, match=r"x\.png, image/png, 101 bytes is more than the 100 bytes"):
            await session.send("look", attachments=[Media("image/png", b"x" * 101, "x.png")])
        with pytest.raises(MediaTooLarge, match="the attachments have 200 bytes"):
            await session.send("look", attachments=[Media("image/png", b"x" * 100)] * 2)
        assert await logged(session, "message.accepted") == []


@pytest.mark.parametrize("attachments", ["x.png", b"x", PIXEL, 5, None, ["x.png"], [{"type": "blob"}]])
async def test_attachments_that_are_no_media_are_refused(attachments: Any) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        with pytest.raises(InvalidMedia, match="attachments are"):
            await session.send("look", attachments=attachments)
        assert await logged(session, "message.accepted") == []


async def test_attachments_that_wait_are_bounded_in_bytes(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("wait")], default=say("ok"))
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("wait", gate), media_limits=MediaLimits(session=100)
        )
        await session.send("go")
        await reach(session, "tools")
        await session.send("one", attachments=[PIXEL])
        with pytest.raises(MailboxFull, match="70 bytes of attachments that wait, and may hold 100 bytes"):
            await session.send("two", attachments=[PIXEL])
        await session.send("three")
        gate.open()
        await settled(session)
        await session.send("two", attachments=[PIXEL])
        await settled(session)
        assert len(await logged(session, "message.accepted")) == 4


async def test_results_above_the_limits_are_left_out_and_the_model_is_told() -> None:
    model = ScriptedModel([call("draw"), say("ok")])
    big = Media("image/png", PNG + b"x" * 50, "big.png")
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("draw", result(["drawn", big, PIXEL])), media_limits={"item": 100}
        )
        await session.send_and_wait("draw")
        assert shown(model) == [("tool", (PIXEL,))]
        (complete,) = await logged(session, "tool.execution_complete")
        assert complete.content == (
            "drawn\n[image left out: big.png, image/png, 120 bytes; larger than 100 bytes]"
        )


async def test_media_are_there_after_a_crash_and_out_of_a_snapshot(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([call("draw"), say("one"), call("wait"), say("two"), say("three")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("draw", result(PIXEL)), plain_tool("wait", gate))
        await session.send_and_wait("draw", attachments=[PAPER])
        await session.send("wait")
        await reach(session, "tools")
        await session.send("next", attachments=[NOTES])
        state = SessionState.replay(await session.get_events())
        assert state.last_id is not None
        loaded = load(dump(state, state.last_id))
        assert loaded is not None
        assert loaded.summary() == state.summary()
        crash_session(session)
        gate.open()
        await settled(session)
        assert shown(model) == [("user", (PAPER,)), ("tool", (PIXEL,)), ("user", (NOTES,))]


async def test_a_snapshot_between_two_results_knows_that_media_have_come(autojump_clock: object) -> None:
    gate = Gate()
    model = ScriptedModel([[call("draw"), call("wait")], say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("draw", result(PIXEL)), plain_tool("wait", gate))
        await session.send("draw")
        await gate.entered()
        log = await session.get_events()
        assert "tool.execution_complete" in [event.type for event in log]
        state = SessionState.replay(log)
        assert state.last_id is not None
        loaded = load(dump(state, state.last_id))
        assert loaded is not None
        assert loaded.media_came
        assert loaded.summary() == state.summary()
        gate.open()
        await settled(session)


async def test_media_leave_the_context_with_the_message_that_brought_them_and_come_back_with_it() -> None:
    model = ScriptedModel([say("one"), say("two"), say("three"), say("four")])
    async with checked_host() as host:
        session = await open_session(host, model)
        await session.send_and_wait("one")
        first = (await logged(session, "turn.end"))[-1].id
        await session.send_and_wait("look", attachments=[PIXEL])
        second = (await logged(session, "turn.end"))[-1].id
        await session.history.truncate(first)
        await session.send_and_wait("three")
        assert shown(model) == []
        await session.history.truncate(second)
        await session.send_and_wait("four")
        assert shown(model) == [("user", (PIXEL,))]


async def test_the_oldest_media_leave_a_context_that_holds_too_much(autojump_clock: object) -> None:
    script = [call("draw")] * 5
    model = ScriptedModel([*script, say("done"), say("again")])
    async with checked_host() as host:
        session = await open_session(
            host, model, plain_tool("draw", result(["drawn", PIXEL])), media_limits={"session": 250}
        )
        await session.send_and_wait("go", attachments=[PAPER])
        # One paper of 77 bytes and pictures of 70 each: with the third, half of 250 is made free.
        assert [len(request_media(model, number)) for number in range(6)] == [1, 2, 3, 1, 2, 3]
        removed = await logged(session, "session.media_removed")
        assert [(event.removed, event.bytes_removed) for event in removed] == [(3, 217)]
        told = [message.content for message in model.requests[5].messages]
        why = "newer ones have taken its place]"
        assert told[0] == f"go\n\n[document left out: paper.pdf, application/pdf, 77 bytes; {why}"
        assert told[2] == f"drawn\n\n[image left out: pixel.png, image/png, 70 bytes; {why}"
        crash_session(session)
        await session.send_and_wait("again")
        assert [message.content for message in model.requests[6].messages][: len(told)] == told
        assert host.metrics.registry.get_sample_value("exeunt_media_removed_total") == 3


async def test_the_newest_media_stay_whatever_came_before(autojump_clock: object) -> None:
    model = ScriptedModel([], default=say("ok"))
    async with checked_host() as host:
        session = await open_session(host, model, media_limits={"session": 80})
        await session.send_and_wait("one", attachments=[PIXEL])
        await session.send_and_wait("two", attachments=[PAPER])
        assert shown(model) == [("user", (PAPER,))]
        await session.send_and_wait("three")
        assert shown(model) == [("user", (PAPER,))]
        assert len(await logged(session, "session.media_removed")) == 1


def request_media(model: ScriptedModel, request: int) -> list[Media]:
    return [media for message in model.requests[request].messages for media in message.media]
