"""Against a stand-in for model APIs that others wrote: `@copilotkit/aimock`, run by Node.

The package is installed into `.cache/aimock` when it is not there yet. Without Node the tests are skipped.
"""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from exeunt.actors.models import ModelError, ModelErrorKind, ModelRequest, ToolDefinition
from exeunt.models.openai import OpenAIModel
from tests.models.openai_support import Said, streamed

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="Node is not installed"
)

CACHE = Path(__file__).parents[2] / ".cache" / "aimock"
PACKAGE = "@copilotkit/aimock@1.43.0"
LARGEST_INSTALL = 50.0
"""Seconds. It is one package without dependencies; the time limit of a test is a minute."""

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


def installed() -> Path:
    """Install the package if it is not there; return its program."""
    program = CACHE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(CACHE), PACKAGE],
            check=True,
            capture_output=True,
            timeout=LARGEST_INSTALL,
        )
    return program


@asynccontextmanager
async def aimock(folder: Path) -> AsyncGenerator[OpenAIModel]:
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    # A port that is free now: the program prints the one it was given, so it cannot choose.
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    listener.close()
    program = await trio.to_thread.run_sync(installed)
    command = [
        "node",
        str(program),
        "-p",
        str(port),
        "-f",
        str(fixtures),
        "--log-level",
        "silent",
        "--latency",
        "1",
    ]
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(trio.run_process, command)
        with trio.fail_after(15):
            while True:
                try:
                    await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    assert process.poll() is None
                    await trio.sleep(0.05)
        model = OpenAIModel("gpt-test", base_url=f"http://127.0.0.1:{port}/v1", api_key="k", trust_env=False)
        try:
            yield model
        finally:
            await model.aclose()
            nursery.cancel_scope.cancel()


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
