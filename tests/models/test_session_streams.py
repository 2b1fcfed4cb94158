"""Streams through a session: what is shown, what an abort ends, and how sessions share connections."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import Session, TurnAborted
from exeunt.actors.events import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantReasoningDelta,
    AssistantTurnRetry,
    Event,
)
from exeunt.models.http import PoolLimits
from exeunt.testing.checked_host import checked_host
from exeunt.testing.http_double import HttpDouble, HttpReply, HttpRequest, event_stream, open_http_double
from tests.models.openai_session_support import QUICK, Toolbox, provider, talking_to
from tests.models.openai_support import chunk, completion, model_at
from tests.models.strict_server import RECOVERED, recovered

WORDS = ["Gr\u00fc", "\u00dfe", " ", "\U0001f600", "\n\n", "end"]


def words(*, then: dict[str, object] | None = None, finish: str = "stop") -> HttpReply:
    """A streamed answer in pieces, with its reasoning before it."""
    thoughts = [chunk({"reasoning_content": each}) for each in ("hm", ", so")]
    said = [chunk({"content": each}) for each in WORDS]
    return event_stream(*thoughts, *said, *([chunk(then)] if then else []), chunk({}, finish))


def hanging() -> HttpReply:
    """The begin of an answer, and then nothing."""
    begin = event_stream(chunk({"content": "Half an"}), done=False).packets
    return HttpReply(body=[*begin, 1e6], content_type="text/event-stream", framing="chunked")


def slow(clock: MockClock) -> None:
    """Let the bytes cross the sockets before the clock jumps."""
    clock.autojump_threshold = 0.02


async def shown(session: Session) -> None:
    """Return when a piece of an answer has been shown."""
    async with session.events() as events:
        async for event in events:
            if isinstance(event, AssistantMessageDelta):
                return


async def closed(double: HttpDouble, left: int) -> None:
    """See that all connections are closed but *left*, once all bytes have arrived."""
    await wait_all_tasks_blocked(0.01)
    assert double.open_connections == left


# --- What is shown -----------------------------------------------------------------------------------------------


async def test_the_pieces_come_in_order_and_make_up_the_message() -> None:
    async with open_http_double(words()) as double, talking_to(double, streaming=True) as watched:
        reply = await watched.ask()

        assert reply.content == "".join(WORDS)
        deltas = watched.seen(AssistantMessageDelta)
        assert [each.delta_content for each in deltas] == WORDS
        assert [each.delta_content for each in watched.seen(AssistantReasoningDelta)] == ["hm", ", so"]
        (message,) = watched.seen(AssistantMessage)
        assert (message.content, message.reasoning) == (reply.content, "hm, so")
        assert {each.message_id for each in deltas} == {message.message_id}
        assert watched.events.index(deltas[-1]) < watched.events.index(message)


async def test_text_before_a_call_is_shown_and_stays_with_the_call() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    box = Toolbox()
    async with (
        open_http_double(words(then={"tool_calls": [call]}, finish="tool_calls")) as double,
        talking_to(double, streaming=True, tools=box.tools()) as watched,
    ):
        assert (await watched.ask()).content == RECOVERED
        assert box.calls == [("get_weather", {"city": "Oslo"})]
        first, second = watched.seen(AssistantMessage)
        assert (first.content, second.content) == ("".join(WORDS), RECOVERED)
        assert first.message_id != second.message_id
        sent = double.requests[1].json["messages"][1]
        assert (sent["content"], sent["tool_calls"][0]["id"]) == ("".join(WORDS), "c1")


async def test_what_a_cut_stream_has_shown_is_void_and_under_another_id() -> None:
    cut = HttpReply(
        body=words().packets[:5],
        content_type="text/event-stream",
        framing="chunked",
        last_chunk=False,
        end="close",
    )
    async with open_http_double(cut, words()) as double, talking_to(double, streaming=True) as watched:
        reply = await watched.ask()

        assert reply.content == "".join(WORDS)
        (retry,) = watched.seen(AssistantTurnRetry)
        assert retry.reason == "connection_lost"
        (message,) = watched.seen(AssistantMessage)
        deltas = watched.seen(AssistantMessageDelta)
        void = [each.delta_content for each in deltas if each.message_id != message.message_id]
        assert void == WORDS[:3]
        assert [each.delta_content for each in deltas[3:]] == WORDS
        assert {each.message_id for each in deltas[3:]} == {message.message_id}


# --- Aborts ------------------------------------------------------------------------------------------------------


async def test_an_abort_closes_the_connection_of_its_stream_and_no_other(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    begin = event_stream(chunk({"content": "Half an"}), done=False).packets
    rest = event_stream(chunk({"content": " answer."}), chunk({}, "stop")).packets
    paused = HttpReply(body=[*begin, 30.0, *rest], content_type="text/event-stream", framing="chunked")
    async with (
        open_http_double(hanging(), paused) as double,
        talking_to(double, streaming=True) as watched,
    ):
        other = await watched.host.create_session(**watched.options)

        async def aborted() -> None:
            with pytest.raises(TurnAborted):
                await watched.session.send_and_wait("Go.", timeout=None)

        async def undisturbed() -> None:
            assert (await other.send_and_wait("Go.", timeout=None)).content == "Half an answer."

        async with trio.open_nursery() as nursery:
            nursery.start_soon(aborted)
            await shown(watched.session)
            nursery.start_soon(undisturbed)
            await shown(other)
            await watched.session.abort()
            assert watched.model.statistics().pool.in_use == 1
            await closed(double, 1)
            assert trio.current_time() < 30
        assert (await watched.ask("And now?")).content == RECOVERED
        assert (await other.send_and_wait("And now?", timeout=None)).content == RECOVERED
        # Both on the connection that the abort left alone; what was said by half is in no context.
        assert [request.connection for request in double.requests] == [1, 2, 2, 2]
        assert [each["role"] for each in double.requests[2].json["messages"]] == ["user", "user"]


@pytest.mark.parametrize("how", ["disconnect", "delete", "end of the host"])
async def test_a_session_that_goes_takes_its_stream_along(how: str) -> None:
    async with open_http_double(hanging()) as double:
        async with checked_host(settled=how != "end of the host") as host:
            session = await host.create_session(
                model="m", provider=provider(double), streaming=True, retries=QUICK
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(shown, session)
                await wait_all_tasks_blocked()
                await session.send("Go.")
            assert double.open_connections == 1
            if how == "disconnect":
                await session.disconnect()
                await closed(double, 0)
            elif how == "delete":
                await host.delete_session(session.session_id)
                await closed(double, 0)
        await closed(double, 0)
        assert len(double.requests) == 1


# --- Many --------------------------------------------------------------------------------------------------------

SESSIONS = 100
CONNECTIONS = 8


async def test_a_hundred_sessions_share_a_pool_of_eight_connections() -> None:
    most = 0

    async with open_http_double() as double:

        def echo(request: HttpRequest) -> HttpReply:
            """Answer with the question, so that no session can take another's answer for its own."""
            nonlocal most
            most = max(most, double.open_connections)
            asked = request.json["messages"][-1]["content"]
            pieces = [chunk({"content": each}) for each in asked]
            return event_stream(*pieces, chunk({}, "stop"))

        double.otherwise = echo
        model = model_at(double, limits=PoolLimits(max_connections=CONNECTIONS))
        async with checked_host() as host:
            sessions = [
                await host.create_session(model=model, streaming=True, retries=QUICK) for _ in range(SESSIONS)
            ]

            async def talk(session: Session, number: int) -> None:
                said: list[Event] = []
                session.on(said.append)
                for turn in range(2):
                    asked = f"{number}: {turn}"
                    assert (await session.send_and_wait(asked, timeout=30)).content == asked
                deltas = [each.delta_content for each in said if isinstance(each, AssistantMessageDelta)]
                assert "".join(deltas) == f"{number}: 0{number}: 1"

            async with trio.open_nursery() as nursery:
                for number, session in enumerate(sessions):
                    nursery.start_soon(talk, session, number)
        pool = model.statistics().pool
        await model.aclose()
    assert most == CONNECTIONS
    assert double.connections == CONNECTIONS
    assert len(double.requests) == 2 * SESSIONS
    assert (pool.opened, pool.in_use, pool.waiting, pool.refused) == (CONNECTIONS, 0, 0, 0)


async def test_sessions_with_equal_providers_share_their_connections() -> None:
    async with open_http_double() as double:
        double.otherwise = recovered
        async with checked_host() as host:
            for _ in range(5):
                session = await host.create_session(model="m", provider=provider(double), retries=QUICK)
                assert (await session.send_and_wait("Go.", timeout=20)).content == RECOVERED
            # Another model of the same server, too.
            session = await host.create_session(model="n", provider=provider(double), retries=QUICK)
            assert (await session.send_and_wait("Go.", timeout=20)).content == RECOVERED
            assert double.connections == 1
            # Another key is another account: nothing is shared.
            other = provider(double, api_key="sk-other")
            session = await host.create_session(model="m", provider=other, retries=QUICK)
            assert (await session.send_and_wait("Go.", timeout=20)).content == RECOVERED
            assert double.connections == 2


async def test_an_abort_while_all_connections_are_busy_leaves_the_queue(autojump_clock: MockClock) -> None:
    slow(autojump_clock)
    async with open_http_double(HttpReply(body=[30.0, completion("Late.")])) as double:
        double.otherwise = recovered
        model = model_at(double, limits=PoolLimits(max_connections=1))
        async with checked_host() as host:
            busy, waiting = [await host.create_session(model=model, retries=QUICK) for _ in range(2)]
            async with trio.open_nursery() as nursery:

                async def late() -> None:
                    assert (await busy.send_and_wait("Go.", timeout=None)).content == "Late."

                nursery.start_soon(late)
                await trio.sleep(1)
                await waiting.send("Go.")
                await trio.sleep(1)
                assert model.statistics().pool.waiting == 1
                await waiting.abort()
                pool = model.statistics().pool
                assert (pool.waiting, pool.in_use) == (0, 1)
            assert (await waiting.send_and_wait("And now?", timeout=None)).content == RECOVERED
        await model.aclose()
    assert double.connections == 1
    assert len(double.requests) == 2
