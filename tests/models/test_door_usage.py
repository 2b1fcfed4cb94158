"""Numbers of tokens that no answer can have, from all doors alike."""

import json
from typing import Any

import pytest

from exeunt import Usage
from exeunt.actors.models import MOST_TOKENS
from exeunt.models.anthropic.answers import MessageReader
from exeunt.models.door import AnswerReader
from exeunt.models.openai.answers import CompletionReader
from exeunt.models.responses.answers import ResponseReader


def completion(tokens: Any) -> tuple[AnswerReader, Any]:
    message = {"role": "assistant", "content": "hi"}
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
    return CompletionReader(), {"choices": [{"message": message}], "usage": usage}


def response(tokens: Any) -> tuple[AnswerReader, Any]:
    item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    usage = {"input_tokens": tokens, "output_tokens": tokens}
    return ResponseReader(), {"status": "completed", "output": [item], "usage": usage}


def message(tokens: Any) -> tuple[AnswerReader, Any]:
    usage = {"input_tokens": tokens, "output_tokens": tokens}
    return MessageReader(), {"content": [{"type": "text", "text": "hi"}], "usage": usage}


@pytest.mark.parametrize("door", [completion, response, message])
@pytest.mark.parametrize(
    ("said", "counted"),
    [(7, 7), (10**30, MOST_TOKENS), (-3, 0), (True, 0), ("7", 0), (None, 0), (float("inf"), 0)],
)
def test_what_a_server_says_of_tokens_is_a_number_that_can_be_counted(
    door: Any, said: Any, counted: int
) -> None:
    reader, answer = door(said)
    assert list(reader.feed(json.dumps(answer).encode())) == []
    found = reader.result().usage
    assert (found or Usage()) == Usage(counted, counted)
