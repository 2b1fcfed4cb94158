"""Messages, requests and answers of the tests of the OpenAI door."""

from typing import Any

import msgspec

from exeunt.actors.models import ModelDelta, ModelRequest, ModelResponse, Role, ToolCall, ToolDefinition
from exeunt.models.door.answers import STILL_AT_WORK
from exeunt.models.openai import OpenAIModel
from exeunt.testing.http_double import HttpDouble


class Said(msgspec.Struct, frozen=True):
    """A message."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


def tool(name: str) -> ToolDefinition:
    """A tool that takes anything."""
    return ToolDefinition(name, f"The tool {name}.", {"type": "object", "properties": {}})


HELLO = ModelRequest([Said("system", "Be brief."), Said("user", "Hello")])


def completion(content: str | None = "Hi.", **message: Any) -> bytes:
    """The body of a whole answer."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    return msgspec.json.encode({"object": "chat.completion", "choices": [choice], "usage": usage})


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """One event of a streamed answer."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def model_at(double: HttpDouble, **settings: Any) -> OpenAIModel:
    """A client of the double that ignores the environment's proxies."""
    settings = {"base_url": f"http://127.0.0.1:{double.port}/v1", "trust_env": False, **settings}
    return OpenAIModel("test-model", **settings)


async def streamed(model: Any, request: ModelRequest = HELLO) -> tuple[list[ModelDelta], ModelResponse]:
    """Play a stream to its end; check that the response is its last item. Pieces that show nothing are left out."""
    deltas: list[ModelDelta] = []
    answer: ModelResponse | None = None
    async for piece in model.stream(request):
        assert answer is None
        if isinstance(piece, ModelResponse):
            answer = piece
        elif piece != STILL_AT_WORK:
            deltas.append(piece)
    assert answer is not None
    return deltas, answer
