"""An answer in several choices, as some providers split it."""

import json

from exeunt.models.openai.answers import CompletionReader


def test_a_text_and_its_calls_in_a_choice_each_are_one_answer() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}}]
    choices = [
        {"index": 0, "message": {"role": "assistant", "content": "I look."}, "finish_reason": "stop"},
        {
            "index": 1,
            "message": {"role": "assistant", "content": None, "tool_calls": calls},
            "finish_reason": "tool_calls",
        },
    ]
    reader = CompletionReader({"look"})
    assert list(reader.feed(json.dumps({"choices": choices}).encode())) == []
    response = reader.result()
    assert response.content == "I look."
    assert [(call.id, call.name) for call in response.tool_calls] == [("c1", "look")]
    assert response.finish_reason == "tool_calls"
