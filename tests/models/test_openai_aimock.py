"""The door against a stand-in for model APIs that others wrote: `@copilotkit/aimock`, run by Node.

The package is installed into `.cache/aimock` when it is not there yet. Without Node the tests are skipped.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from exeunt.actors.models import ModelError, ModelErrorKind, ModelRequest, ToolDefinition
from exeunt.models.openai import OpenAIModel
from tests.models.aimock_server import needs_node, open_aimock
from tests.models.openai_support import Said, streamed

pytestmark = needs_node

FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "limit"},
            "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
        },
        {
            "match": {"userMessage": "cut"},
            "response": {"content": "A long answer that is cut off. " * 20},
            "truncateAfterChunks": 3,
        },
        {
            "match": {"userMessage": "long"},
            "response": {"content": "Gr\u00fc\u00dfe \u6771\u4eac \U0001f600! " * 50},
        },
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
        {"match": {"userMessage": "hello"}, "response": {"content": "Hello! How can I help you?"}},
    ]
}
WEATHER = ToolDefinition(
    "get_weather", "Weather of a city.", {"type": "object", "properties": {"city": {"type": "string"}}}
)


@asynccontextmanager
async def aimock(folder: Path) -> AsyncGenerator[OpenAIModel]:
    async with open_aimock(folder, FIXTURES) as address:
        model = OpenAIModel("gpt-test", base_url=f"{address}/v1", api_key="k", trust_env=False)
        try:
            yield model
        finally:
            await model.aclose()


def said(text: str) -> ModelRequest:
    return ModelRequest([Said("system", "Be brief."), Said("user", text)], (WEATHER,))


async def test_a_server_of_others_understands_us_and_we_it(tmp_path: Path) -> None:
    async with aimock(tmp_path) as model:
        answer = await model.complete(said("hello"))
        assert (answer.content, answer.finish_reason) == ("Hello! How can I help you?", "stop")
        deltas, answer = await streamed(model, said("long"))
        assert answer.content == "Gr\u00fc\u00dfe \u6771\u4eac \U0001f600! " * 50
        assert "".join(delta.text for delta in deltas) == answer.content
        assert answer.usage is not None
        assert answer.usage.output_tokens > 0

        for call in (model.complete(said("weather")), streamed(model, said("weather"))):
            result = await call
            answer = result[1] if isinstance(result, tuple) else result
            assert [each.arguments for each in answer.tool_calls] == [
                {"city": "Oslo"},
                {"city": "\u6771\u4eac"},
            ]
            assert {each.name for each in answer.tool_calls} == {"get_weather"}
        results = [Said("tool", "cold", (), each.id) for each in answer.tool_calls]
        history = [*said("weather").messages, Said("assistant", "", answer.tool_calls), *results]
        assert (await model.complete(ModelRequest(history, (WEATHER,)))).content == "Cold in both."

        with pytest.raises(ModelError) as caught:
            await model.complete(said("limit"))
        assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.RATE_LIMITED, True)
        with pytest.raises(ModelError) as caught:
            await streamed(model, said("cut"))
        assert caught.value.kind in (ModelErrorKind.CONNECTION_LOST, ModelErrorKind.TRUNCATED_STREAM)

        # A server closes its connections after a few idle seconds; fifty calls at once share what is open.
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(streamed, model, said(("hello", "long")[number % 2]))
        statistics = model.statistics()
        assert (statistics.calls, statistics.failures, statistics.in_flight) == (57, 2, 0)
        assert statistics.pool.in_use == 0
