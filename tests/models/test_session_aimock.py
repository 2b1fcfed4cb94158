"""A conversation through a session with a stand-in for model APIs that others wrote: `@copilotkit/aimock`."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt import ToolInvocation, TurnFailed, approve_all, tool
from exeunt.actors.events import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantTurnRetry,
    AssistantUsage,
    ContextCleared,
    Event,
    SessionError,
)
from exeunt.testing.checked_host import checked_host
from tests.models.aimock_server import needs_node, open_aimock
from tests.models.openai_session_support import QUICK
from tests.models.strict_server import refusals

pytestmark = needs_node

GREETING = "Gr\u00fc\u00dfe \u6771\u4eac \U0001f600!"
FIXTURES: dict[str, Any] = {
    "fixtures": [
        {"match": {"userMessage": "hello"}, "response": {"content": GREETING * 20}},
        {
            "match": {"userMessage": "weather", "hasToolResult": False},
            "response": {
                "toolCalls": [
                    {"name": "get_weather", "arguments": {"city": "Oslo"}},
                    {"name": "get_weather", "arguments": {"city": "\u6771\u4eac"}},
                ]
            },
        },
        {
            "match": {"userMessage": "weather", "hasToolResult": True},
            "response": {"content": "Cold in both."},
        },
        {
            "match": {"userMessage": "start over"},
            "response": {
                "toolCalls": [{"name": "clear_context", "arguments": {"prompt": "Continue with step 2"}}]
            },
        },
        {"match": {"userMessage": "step 2"}, "response": {"content": "On step 2."}},
        {
            "match": {"userMessage": "limit"},
            "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
        },
        {
            "match": {"userMessage": "cut"},
            "response": {"content": "A long answer that is cut off. " * 20},
            "truncateAfterChunks": 3,
        },
    ]
}


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the conversation and start a fresh context window."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


async def requests_seen(address: str) -> list[Any]:
    """The bodies of the requests that the server took down."""

    def get() -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{address}/__aimock/journal", timeout=20) as answer:
            return json.load(answer)

    return [entry["body"] for entry in await trio.to_thread.run_sync(get)]


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_conversation_with_tools_a_clear_and_faults(tmp_path: Path, streaming: bool) -> None:
    cities: list[str] = []

    @tool
    async def get_weather(city: str) -> str:
        """Weather of a city."""
        cities.append(city)
        await trio.lowlevel.checkpoint()
        return "cold"

    async with open_aimock(tmp_path, FIXTURES) as address, checked_host() as host:
        session = await host.create_session(
            model="gpt-test",
            provider={"type": "openai", "base_url": f"{address}/v1", "api_key": "k", "trust_env": False},
            tools=[get_weather, clear_context],
            system_message="Be brief.",
            on_permission_request=approve_all,
            streaming=streaming,
            retries=QUICK,
        )
        events: list[Event] = []
        session.on(events.append)

        assert (await session.send_and_wait("hello", timeout=20)).content == GREETING * 20
        shown = "".join(each.delta_content for each in events if isinstance(each, AssistantMessageDelta))
        assert shown == (GREETING * 20 if streaming else "")
        assert all(each.output_tokens > 0 for each in events if isinstance(each, AssistantUsage))

        assert (await session.send_and_wait("the weather?", timeout=20)).content == "Cold in both."
        assert sorted(cities) == ["Oslo", "\u6771\u4eac"]

        reply = await session.send_and_wait("please start over", timeout=20)
        assert reply.content == "On step 2."
        assert [turn.reason for turn in reply.turns] == ["terminal_tool", "completed"]
        (cleared,) = [each for each in events if isinstance(each, ContextCleared)]
        assert cleared.initial_message == "Continue with step 2"
        # hello and its answer; weather, calls, two results, answer; start over and the call.
        assert cleared.messages_cleared == 9
        assert [message.role for message in session.history.messages()] == ["system", "user", "assistant"]
        last = (await requests_seen(address))[-1]["messages"]
        assert [(each["role"], each["content"]) for each in last] == [
            ("system", "Be brief."),
            ("user", "Continue with step 2"),
        ]

        for fault in ("limit", *(["cut"] if streaming else [])):
            before = len(events)
            with pytest.raises(TurnFailed):
                await session.send_and_wait(fault, timeout=20)
            new = events[before:]
            assert len([each for each in new if isinstance(each, AssistantTurnRetry)]) == QUICK.attempts
            assert len([each for each in new if isinstance(each, SessionError)]) == 1
            assert not [each for each in new if isinstance(each, AssistantMessage)]
        assert (await session.send_and_wait("hello again", timeout=20)).content == GREETING * 20
        for body in await requests_seen(address):
            assert refusals(json.dumps(body).encode()) == []
