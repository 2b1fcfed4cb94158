"""What the answers of the Messages API become, whole and in pieces."""

import json
from typing import Any

import pytest

from exeunt.actors.citations import (
    CitableSource,
    CitationLocation,
    CitationReference,
    Citations,
    CitationSource,
    CitationSpan,
)
from exeunt.actors.models import (
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelResponse,
    ReasoningBlocks,
    ToolCall,
    Usage,
)
from exeunt.models.anthropic.answers import MessageReader
from tests.models.anthropic_support import answer, events, text, thought, use

TAG = "anthropic example.com m"


def read(*parts: bytes) -> tuple[list[ModelDelta], ModelResponse]:
    """What a reader shows of the bytes, and the answer."""
    reader = MessageReader({"look"}, tag=TAG)
    shown = [delta for part in parts for delta in reader.feed(part)]
    return shown, reader.result()


def stream(happened: list[dict[str, Any]]) -> bytes:
    """Events as bytes."""
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in happened)


def both(*blocks: dict[str, Any], **more: Any) -> list[ModelResponse]:
    """The answer with these blocks, whole and streamed."""
    whole = answer(*blocks, **more).body
    assert isinstance(whole, bytes)
    return [read(whole)[1], read(stream(events(*blocks, **more)))[1]]


def test_a_stream_cut_anywhere_gives_the_same() -> None:
    blocks = (thought("Hm, é."), text("I look 😀."), use("look", {"at": "é"}))
    data = stream(events(*blocks, stop="tool_use"))
    shown, whole = read(data)
    for at in range(0, len(data), 7):
        pieces, same = read(data[:at], data[at:])
        assert same == whole
        assert "".join(each.text for each in pieces) == whole.content == "I look 😀."
    assert "".join(each.reasoning for each in shown) == whole.reasoning == "Hm, é."
    assert whole.tool_calls == (ToolCall("toolu_1", "look", '{"at": "\\u00e9"}'),)
    assert whole.finish_reason == "tool_calls"


def test_whole_and_streamed_answers_keep_the_thoughts_as_they_were_written() -> None:
    secret = {"type": "redacted_thinking", "data": "xyz"}
    for response in both(thought("One."), text("ab"), secret, use("look", {}), stop="tool_use"):
        assert response.reasoning == "One."
        assert response.reasoning_blocks is not None
        assert response.reasoning_blocks.provider == TAG
        assert json.loads(response.reasoning_blocks.blocks) == [
            thought("One."),
            {"type": "text", "length": 2},
            secret,
        ]


def test_thoughts_without_a_signature_are_shown_and_not_given_back() -> None:
    for response in both(thought("One.", signature=""), text("ab")):
        assert (response.reasoning, response.reasoning_blocks) == ("One.", None)


def test_thoughts_that_are_kept_back_are_given_back() -> None:
    for response in both(thought("", signature="s"), text("ab")):
        assert response.reasoning == ""
        assert response.reasoning_blocks == ReasoningBlocks(
            TAG, '[{"type":"thinking","thinking":"","signature":"s"}]'
        )


def test_the_parts_of_the_input_are_one_number() -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    for response in both(text("ab"), usage=usage):
        assert response.usage == Usage(3210, 9, 3000, 200, 4)


@pytest.mark.parametrize(
    "usage", [None, {}, [], {"input_tokens": None, "output_tokens": "9"}, {"input_tokens": -3}]
)
def test_numbers_that_are_none_are_left_out(usage: Any) -> None:
    body = json.dumps({"content": [text("ab")], "stop_reason": "end_turn", "usage": usage}).encode()
    assert read(body)[1].usage is None


@pytest.mark.parametrize(
    ("stop", "blocks", "reason"),
    [
        ("end_turn", (text("a"),), "stop"),
        ("stop_sequence", (text("a"),), "stop"),
        ("pause_turn", (text("a"),), "stop"),
        ("something_new", (text("a"),), "stop"),
        ("tool_use", (text("a"),), "stop"),
        ("tool_use", (use("look", {"a": 1}),), "tool_calls"),
        ("max_tokens", (text("a"),), "length"),
        ("model_context_window_exceeded", (text("a"),), "length"),
        ("max_tokens", (use("look", {"a": 1}),), "length"),
    ],
)
def test_why_a_model_stopped_is_told_in_our_words(stop: str, blocks: Any, reason: str) -> None:
    for response in both(*blocks, stop=stop):
        assert response.finish_reason == reason


@pytest.mark.parametrize(
    ("stop", "blocks", "kind"),
    [
        ("refusal", (text("No."),), ModelErrorKind.CONTENT_FILTERED),
        ("max_tokens", (), ModelErrorKind.OUTPUT_LIMIT),
        ("max_tokens", (thought("Hm."),), ModelErrorKind.OUTPUT_LIMIT),
        ("end_turn", (), ModelErrorKind.EMPTY_ANSWER),
        ("end_turn", (text("  "),), ModelErrorKind.EMPTY_ANSWER),
    ],
)
def test_an_answer_of_no_use_is_an_error(stop: str, blocks: Any, kind: ModelErrorKind) -> None:
    for body in (answer(*blocks, stop=stop).body, stream(events(*blocks, stop=stop))):
        assert isinstance(body, bytes)
        with pytest.raises(ModelError) as caught:
            read(body)
        assert caught.value.kind == kind


def test_a_call_whose_input_has_not_begun_at_the_limit_was_cut_off() -> None:
    whole = answer(text("I look."), use("look", {}), stop="max_tokens").body
    begun = events(text("I look."), use("look", {}), stop="max_tokens")
    without_input = [each for each in begun if each.get("delta", {}).get("type") != "input_json_delta"]
    for body in (whole, stream(without_input)):
        assert isinstance(body, bytes)
        with pytest.raises(ModelError) as caught:
            read(body)
        assert caught.value.kind == ModelErrorKind.OUTPUT_LIMIT
    # One that has no input, and was not cut off.
    assert read(stream(begun))[1].tool_calls == (ToolCall("toolu_1", "look", "{}"),)


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "This is about germs."}
    body = answer(text("x"), stop="refusal", stop_details=details).body
    assert isinstance(body, bytes)
    with pytest.raises(ModelError, match=r"refused to go on: This is about germs\."):
        read(body)


def test_a_stream_that_ends_early_is_truncated() -> None:
    happened = events(text("abc"))
    for count in range(1, len(happened) - 2):
        with pytest.raises(ModelError) as caught:
            read(stream(happened[:count]))
        assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.TRUNCATED_STREAM, True)
    # With its stop reason the answer is complete.
    assert read(stream(happened[:-1]))[1].content == "abc"


@pytest.mark.parametrize("kind", ["error", "message"])
def test_an_error_in_the_stream_ends_it(kind: str) -> None:
    error = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
        "request_id": "r",
    }
    data = stream(events(text("abc"))[:3]) + f"event: {kind}\ndata: {json.dumps(error)}\n\n".encode()
    with pytest.raises(ModelError) as caught:
        read(data)
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.OVERLOADED, True)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"choices":[]}', ModelErrorKind.MALFORMED_RESPONSE),
        (b'data: {"choices":[]}\n\n', ModelErrorKind.MALFORMED_RESPONSE),
        (b'{"error":"not found"}', ModelErrorKind.MISCONFIGURED_ENDPOINT),
        (b"[1]", ModelErrorKind.MALFORMED_RESPONSE),
        (b"<html>", ModelErrorKind.MISCONFIGURED_ENDPOINT),
        (b'event: error\ndata: "broken"\n\n', ModelErrorKind.SERVER_ERROR),
        (b'{"content":null}', ModelErrorKind.EMPTY_ANSWER),
        (b'{"content":[null,7,{"type":"text"}]}', ModelErrorKind.EMPTY_ANSWER),
    ],
)
def test_an_answer_of_something_else_is_an_error(body: bytes, kind: ModelErrorKind) -> None:
    with pytest.raises(ModelError) as caught:
        read(body)
    assert caught.value.kind == kind


def test_what_later_versions_add_is_passed_over() -> None:
    happened = events(text("ab"), {"type": "server_tool_use", "id": "s", "name": "web"})
    happened.insert(1, {"type": "weather", "degrees": 20})
    happened.insert(3, {"type": "content_block_delta", "index": 0, "delta": {"type": "sparkle_delta"}})
    assert read(stream(happened))[1].content == "ab"


def test_pieces_without_numbers_and_beginnings_find_their_blocks() -> None:
    deltas: list[Any] = [
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "text_delta", "text": "a"},
        {"type": "text_delta", "text": "b"},
        {"type": "input_json_delta", "partial_json": '{"a":'},
        {"type": "input_json_delta", "partial_json": "1}"},
        None,
    ]
    happened = [{"type": "content_block_delta", "delta": delta} for delta in deltas]
    happened.append({"type": "message_stop"})
    response = read(stream(happened))[1]
    assert (response.content, response.reasoning) == ("ab", "Hm")
    # Its name never came: the session tells the model so.
    assert response.tool_calls == (ToolCall("", "", '{"a":1}'),)


def test_blocks_with_one_number_are_several() -> None:
    blocks = [use("look", {"at": number}, f"c{number}") for number in (1, 2)]
    happened = [
        {**each, "index": 0} if "index" in each else each for each in events(*blocks, stop="tool_use")
    ]
    assert [call.id for call in read(stream(happened))[1].tool_calls] == ["c1", "c2"]


# --- Citations ---

CHAR = {
    "type": "char_location",
    "cited_text": "Grass is green.",
    "document_index": 0,
    "document_title": "Colours",
    "start_char_index": 4,
    "end_char_index": 19,
}
PAGES = {
    "type": "page_location",
    "cited_text": "Sky",
    "document_index": 1,
    "document_title": None,
    "start_page_number": 5,
    "end_page_number": 7,
}


def test_citations_are_those_of_the_text_that_they_stand_at() -> None:
    for response in both(
        text("Well: "), text("green", citations=[CHAR, PAGES]), text(", "), text("green", citations=[CHAR])
    ):
        native = {"type": "char_location", "document_index": 0}
        colours = CitationReference("source-1", "Grass is green.", CitationLocation("char", 4, 19), native)
        sky = CitationReference(
            "source-2", "Sky", CitationLocation("page", 5, 6), {"type": "page_location", "document_index": 1}
        )
        assert response.content == "Well: green, green"
        assert response.citations == Citations(
            (CitationSource("source-1", "anthropic", "Colours"), CitationSource("source-2", "anthropic")),
            (CitationSpan(6, 11, (colours, sky)), CitationSpan(13, 18, (colours,))),
        )


def test_a_citation_without_a_place_is_one_all_the_same() -> None:
    web = {
        "type": "web_search_result_location",
        "url": "https://x",
        "title": "X",
        "cited_text": "y",
        "encrypted_index": "e",
    }
    bad = {**CHAR, "start_char_index": "4"}
    for response in both(text("a", citations=[web, bad, 7])):
        assert response.citations is not None
        (span,) = response.citations.spans
        assert [each.location for each in span.references] == [None, None]
        assert response.citations.sources[0].url == "https://x"


def found(index: Any) -> dict[str, Any]:
    """A citation of what a tool has found."""
    return {
        "type": "search_result_location",
        "cited_text": "Grass is green.",
        "search_result_index": index,
        "source": "https://x",
        "title": "X",
        "start_block_index": 0,
        "end_block_index": 1,
    }


def test_what_a_tool_found_is_a_source_of_the_client() -> None:
    sources = (
        CitableSource("source-1", "Grass is green.", "Colours", path="c.md"),
        CitableSource("source-1", "More."),
    )
    cited = text("abc", citations=[CHAR, found(0), found(1), found(0), found(7), found("0")])
    body = answer(cited).body
    assert isinstance(body, bytes)
    reader = MessageReader(tag=TAG, sources=sources)
    assert list(reader.feed(body)) == []
    citations = reader.result().citations
    assert citations is not None
    # Ids are unique, also where a tool gave one twice, or one of ours.
    assert [(each.id, each.provider, each.title, each.path) for each in citations.sources] == [
        ("source-1", "anthropic", "Colours", ""),
        ("source-1-2", "client", "Colours", "c.md"),
        ("source-1-3", "client", "", ""),
        ("source-4", "anthropic", "X", ""),
        ("source-5", "anthropic", "X", ""),
    ]
    references = citations.spans[0].references
    assert [each.source_id for each in references[:4]] == [
        "source-1",
        "source-1-2",
        "source-1-3",
        "source-1-2",
    ]
    assert references[1].location == CitationLocation("block", 0, 1)
