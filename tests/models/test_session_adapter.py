"""The host's own `AsyncOpenAI` object as the model of a session."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
import trio
from trio.testing import MockClock

from exeunt import Session, TurnAborted, TurnFailed, Waits, approve_all
from exeunt.actors.events import AssistantMessageDelta, AssistantTurnRetry, Event, SessionError
from exeunt.models.openai.adapter import OpenAIClientModel
from exeunt.testing.checked_host import checked_host
from exeunt.testing.http_double import HttpDouble, HttpReply, Script, event_stream, open_http_double
from tests.models.openai_session_support import KEY, QUICK, Toolbox
from tests.models.openai_support import chunk
from tests.models.strict_server import RECOVERED, recovered, refusals

CALL = {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
HANGING = HttpReply(
    body=[*event_stream(chunk({"content": "Half an"}), done=False).packets, 1e6],
    content_type="text/event-stream",
    framing="chunked",
)


@asynccontextmanager
async def adapted(
    *replies: Script, **options: Any
) -> AsyncGenerator[tuple[HttpDouble, Session, list[Event]]]:
    """A session behind the official client; all that it sends must be what a strict server takes."""
    async with open_http_double(*replies) as double:
        double.otherwise = recovered
        url = f"http://127.0.0.1:{double.port}/v1"
        async with openai.AsyncOpenAI(api_key=KEY, base_url=url) as client, checked_host() as host:
            session = await host.create_session(
                model=OpenAIClientModel(client, "m"),
                retries=QUICK,
                on_permission_request=approve_all,
                **options,
            )
            events: list[Event] = []
            session.on(events.append)
            yield double, session, events
        for request in double.requests:
            assert refusals(request.body) == []


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_session_calls_tools_and_retries_as_with_its_own_door(streaming: bool) -> None:
    limit = HttpReply(
        status=429, body=b'{"error":{"message":"slow down"}}', headers=[("Retry-After", "0.01")]
    )
    box = Toolbox()
    # A stream, also for who asked for none: the door reads what comes.
    called = event_stream(chunk({"content": "So"}), chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"))
    async with adapted(limit, called, streaming=streaming, tools=box.tools()) as (double, session, events):
        reply = await session.send_and_wait("Go.", timeout=20)

        assert (reply.content, reply.reason) == (RECOVERED, "completed")
        assert box.calls == [("get_weather", {"city": "Oslo"})]
        assert [(e.reason, e.delay) for e in events if isinstance(e, AssistantTurnRetry)] == [
            ("rate_limited", 0.01)
        ]
        assert len(double.requests) == 3
        assert [each["role"] for each in double.requests[2].json["messages"]] == ["user", "assistant", "tool"]
        shown = [each.delta_content for each in events if isinstance(each, AssistantMessageDelta)]
        assert shown == (["So", RECOVERED] if streaming else [])


async def test_an_abort_and_a_refused_key_leave_the_client_usable() -> None:
    refused = HttpReply(status=401, body=b'{"error":{"message":"Incorrect API key"}}')
    async with adapted(HANGING, refused, streaming=True) as (double, session, events):
        async with trio.open_nursery() as nursery:

            async def aborted() -> None:
                with pytest.raises(TurnAborted):
                    await session.send_and_wait("Go.", timeout=20)

            nursery.start_soon(aborted)
            async with session.events() as stream:
                async for event in stream:
                    if isinstance(event, AssistantMessageDelta):
                        break
            await session.abort()
        with pytest.raises(TurnFailed):
            await session.send_and_wait("Go on.", timeout=20)
        (error,) = [each for each in events if isinstance(each, SessionError)]
        assert (error.error_type, error.status_code) == ("authentication", 401)
        assert (await session.send_and_wait("And now?", timeout=20)).content == RECOVERED
        assert len(double.requests) == 3


async def test_a_model_that_writes_arguments_is_not_silent(autojump_clock: MockClock) -> None:
    autojump_clock.autojump_threshold = math.inf
    pieces = [{"index": 0, "function": {"arguments": each}} for each in ('{"city"', ":", '"Oslo"', "}")]
    head = {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": ""}}
    packets: list[bytes | float] = []
    for each in event_stream(
        *(chunk({"tool_calls": [p]}) for p in (head, *pieces)), chunk({}, "tool_calls")
    ).packets:
        packets += (8.0, each)
    slow = HttpReply(body=packets, content_type="text/event-stream", framing="chunked")
    box = Toolbox()
    waits = Waits(model_first=10, model_gap=10)
    async with adapted(recovered, slow, streaming=True, tools=box.tools(), waits=waits) as (
        _,
        session,
        events,
    ):
        # The client's first call looks at the machine, in a thread, for which the clock would not wait.
        await session.send_and_wait("Hello.", timeout=None)
        autojump_clock.autojump_threshold = 0.05
        assert (await session.send_and_wait("Go.", timeout=None)).content == RECOVERED
        assert box.calls == [("get_weather", {"city": "Oslo"})]
        assert not [each for each in events if isinstance(each, AssistantTurnRetry)]
