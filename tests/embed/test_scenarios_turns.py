"""What sessions do in a program of any kind: turns, waiting, aborts, time-outs."""

import traceback
from functools import partial

import pytest

from exeunt import (
    InvalidMedia,
    InvalidPrompt,
    MailboxFull,
    Media,
    ModelError,
    ModelErrorKind,
    ReplyTimeout,
    SessionClosed,
    SessionExists,
    SessionNotFound,
    ToolInvocation,
    TurnAborted,
    TurnFailed,
)
from exeunt.testing import ScriptedModel, call, fail, hang, say
from tests.actors.media_support import NOTES, PAPER, PIXEL
from tests.embed.worlds import Cancelled, World, in_each_world


@in_each_world
async def test_a_message_gets_its_reply(world: World) -> None:
    model = ScriptedModel(["hello", "again"])
    async with world.host() as host:
        session = await host.create_session(model=model, system_message="Be brief.", session_id="ada")
        reply = await session.send_and_wait("hi")
        assert (reply.content, reply.reason, len(reply.turns)) == ("hello", "completed", 1)
        assert (await session.send_and_wait("hi again")).content == "again"
        assert [message.content for message in session.history.messages()] == [
            "Be brief.",
            "hi",
            "hello",
            "hi again",
            "again",
        ]
        assert session.session_id == "ada"
        assert session.statistics().phase == "idle"
    model.verify()


@in_each_world
async def test_every_way_to_send_brings_attachments_and_a_handler_may_show_something(world: World) -> None:
    async def draw() -> list[str | Media]:
        """Draw."""
        return ["drawn", PIXEL]

    model = ScriptedModel([call("draw"), "one", "two", "three", "four"])
    async with world.host() as host:
        session = await host.create_session(model=model, tools=[world.tool(draw)])
        await session.send_and_wait("1", attachments=[PAPER])
        await session.send("2", attachments=[NOTES])
        session.send_now("3", attachments=[PIXEL])
        await session.send_and_wait("4", attachments=())
        with pytest.raises(InvalidMedia):
            await session.send("5", attachments=["x.png"])  # type: ignore[list-item]
    media = [message.media for message in model.requests[-1].messages if message.role in ("user", "tool")]
    assert media == [(PAPER,), (PIXEL,), (NOTES,), (PIXEL,), ()]


@in_each_world
async def test_messages_that_are_sent_are_answered_in_order(world: World) -> None:
    model = ScriptedModel(["one", "two", "three"])
    async with world.host() as host:
        session = await host.create_session(model=model)
        first = await session.send("1")
        second = await session.send("2")
        assert first != second
        assert (await session.send_and_wait("3")).content == "three"
    assert [request.contents[-1] for request in model.requests] == ["1", "2", "3"]


@in_each_world
async def test_a_steered_message_joins_the_running_turn(world: World) -> None:
    entered, go_on = world.event(), world.event()

    async def work() -> str:
        """Work."""
        entered.set()
        await go_on.wait()
        return "worked"

    model = ScriptedModel([call("work"), "done"])
    async with world.host() as host:
        session = await host.create_session(model=model, tools=[world.tool(work)])
        waiting = world.start(session.send_and_wait, "go")
        await entered.wait()
        await session.send("and hurry", mode="immediate")
        go_on.set()
        assert (await waiting.result()).content == "done"
    assert model.requests[1].contents[-2:] == ("worked", "and hurry")


@in_each_world
async def test_an_abort_cancels_the_tool_and_tells_who_waits(world: World) -> None:
    entered = world.event()

    async def work(invocation: ToolInvocation) -> str:
        """Work."""
        entered.set()
        await world.until_cancelled(invocation)
        return "never seen"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "later"]), tools=[world.tool(work)]
        )
        waiting = world.start(session.send_and_wait, "go")
        await entered.wait()
        receipt = await session.abort()
        assert receipt.tools_cancelled == ("call_1",)
        with pytest.raises(TurnAborted):
            await waiting.result()
        assert [message.role for message in session.history.messages()] == ["user", "assistant", "tool"]
        assert (await session.send_and_wait("on")).content == "later"


@in_each_world
async def test_a_reply_that_takes_too_long_raises_and_the_turn_goes_on(world: World) -> None:
    entered, go_on = world.event(), world.event()

    async def work() -> str:
        """Work."""
        entered.set()
        await go_on.wait()
        return "worked"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "done", "next"]), tools=[world.tool(work)]
        )
        waiting = world.start(session.send_and_wait, "go", 5)
        await entered.wait()
        await world.advance(6)
        with pytest.raises(ReplyTimeout) as caught:
            await waiting.result()
        assert (caught.value.phase, caught.value.in_flight) == ("tools", ("work",))
        go_on.set()
        assert (await session.send_and_wait("next")).content == "next"


@in_each_world
async def test_a_tool_that_takes_too_long_is_an_outcome(world: World) -> None:
    entered = world.event()

    async def work(invocation: ToolInvocation) -> str:
        """Work."""
        entered.set()
        await world.until_cancelled(invocation)
        return "never seen"

    model = ScriptedModel([call("work"), "so be it"])
    async with world.host() as host:
        session = await host.create_session(model=model, tools=[world.tool(work, timeout=10)])
        waiting = world.start(session.send_and_wait, "go", None)
        await entered.wait()
        await world.advance(11)
        await world.advance(
            2
        )  # a handler in a thread does not end with its call: the fence comes after a grace
        assert (await waiting.result()).content == "so be it"
    assert model.requests[1].results == {"call_1": "The tool 'work' timed out after 10 s."}


@in_each_world
async def test_a_failed_model_call_is_raised_with_its_cause(world: World) -> None:
    wrong = ModelError(ModelErrorKind.AUTHENTICATION, "no such key")
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel([fail(wrong), "now"]))
        with pytest.raises(TurnFailed, match="no such key") as caught:
            await session.send_and_wait("go")
        assert isinstance(caught.value.__cause__, ModelError)
        assert caught.value.__cause__.kind is ModelErrorKind.AUTHENTICATION
        assert (await session.send_and_wait("go")).content == "now"


@in_each_world
async def test_whoever_waits_can_be_cancelled_and_the_turn_goes_on(world: World) -> None:
    entered, go_on = world.event(), world.event()

    async def work() -> str:
        """Work."""
        entered.set()
        await go_on.wait()
        return "worked"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "done", "next"]), tools=[world.tool(work)]
        )
        waiting = world.start(session.send_and_wait, "go")
        await entered.wait()
        if world.cancels:
            waiting.cancel()
            with pytest.raises(Cancelled):
                await waiting.result()
        assert session.statistics().phase == "tools"
        go_on.set()
        assert (await session.send_and_wait("next")).content == "next"
        if not world.cancels:
            assert (await waiting.result()).content == "done"


@in_each_world
async def test_a_caller_that_is_cancelled_may_take_its_turn_along(world: World) -> None:
    entered = world.event()

    async def work() -> str:
        """Work."""
        entered.set()
        await world.event().wait()
        return "worked"

    if not world.cancels:
        return
    async with world.host() as host:
        model = ScriptedModel([call("work"), "next"])
        session = await host.create_session(model=model, tools=[world.tool(work)])
        waiting = world.start(partial(session.send_and_wait, "go", abort_on_cancel=True))
        await entered.wait()
        queued = world.start(partial(session.send_and_wait, "and this", abort_on_cancel=True))
        kept = world.start(session.send_and_wait, "next")
        await world.settled(host)
        queued.cancel()
        with pytest.raises(Cancelled):
            await queued.result()
        waiting.cancel()
        with pytest.raises(Cancelled):
            await waiting.result()
        assert (await kept.result()).content == "next"
        # The tool was cancelled, the context is valid, and who waits behind is not forgotten.
        seen = [(message.role, message.content) for message in model.requests[-1].messages]
        interrupted = "The execution of this tool, or a previous tool was interrupted."
        assert seen == [("user", "go"), ("assistant", ""), ("tool", interrupted), ("user", "next")]


@in_each_world
async def test_an_abort_ends_a_model_call(world: World) -> None:
    model = ScriptedModel([hang()])
    async with world.host() as host:
        session = await host.create_session(model=model)
        waiting = world.start(session.send_and_wait, "go")
        while not model.in_flight:
            await world.settled(host)
        assert (await session.abort(reason="enough")).turn is not None
        with pytest.raises(TurnAborted):
            await waiting.result()
    assert model.cancelled == 1


@in_each_world
async def test_refusals_have_their_types_and_change_nothing(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel([say("x")]), session_id="ada", mailbox_size=1)
        with pytest.raises(SessionExists):
            await host.create_session(model=ScriptedModel([]), session_id="ada")
        with pytest.raises(SessionNotFound):
            host.get_session("bob")
        not_a_text: str = None  # type: ignore[assignment]
        with pytest.raises(InvalidPrompt):
            await session.send(not_a_text)
        assert (await session.send_and_wait("hello")).content == "x"
        assert session.statistics().events == len(await session.get_events())


@in_each_world
async def test_a_full_mailbox_refuses(world: World) -> None:
    entered, go_on = world.event(), world.event()

    async def work() -> str:
        """Work."""
        entered.set()
        await go_on.wait()
        return "worked"

    async with world.host() as host:
        session = await host.create_session(
            model=ScriptedModel([call("work"), "done", "two"]), tools=[world.tool(work)], mailbox_size=1
        )
        await session.send("1")
        await entered.wait()
        waiting = world.start(session.send_and_wait, "2")
        while not session.statistics().queued:
            await world.settled(host)
        with pytest.raises(MailboxFull):
            await session.send("3")
        go_on.set()
        assert (await waiting.result()).content == "two"


@in_each_world
async def test_a_host_that_has_ended_says_so(world: World) -> None:
    async with world.host() as host:
        session = await host.create_session(model=ScriptedModel(["x"]))
        await session.send_and_wait("hello")
    with pytest.raises(SessionClosed):
        await session.send("too late")
    with pytest.raises(SessionClosed):
        await host.create_session(model=ScriptedModel([]))


@in_each_world
async def test_an_error_of_the_body_is_raised_as_it_is(world: World) -> None:
    class Own(Exception):
        pass

    error = Own("mine")

    async def body() -> None:
        async with world.host() as host:
            session = await host.create_session(model=ScriptedModel([hang()]))
            await session.send("never answered")
            raise error

    with pytest.raises(Own) as caught:
        await body()
    assert caught.value is error
    assert "body" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
