"""From the events of a response to the answer, whatever a server leaves out or says twice."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse, ToolCall, Usage
from exeunt.models.door import STILL_AT_WORK
from exeunt.models.responses.answers import ResponseReader
from exeunt.models.responses.assembly import MOST_ITEMS
from tests.models.responses_support import USAGE, calling, message, response, thinking, told

Event = dict[str, Any]
NUMBERS = Usage(12, 9, 4, 0, 5)


def read(events: Iterable[Event], *, done: bool = False) -> tuple[list[ModelDelta], ModelResponse]:
    """What a reader makes of a stream of events."""
    reader = ResponseReader({"look", "find"}, keeper="k")
    shown: list[ModelDelta] = []
    for event in events:
        shown += reader.feed(
            b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))
        )
    if done:
        shown += reader.feed(b"data: [DONE]\n\n")
    return [delta for delta in shown if delta != STILL_AT_WORK], reader.result()


def whole(answer: Any) -> ModelResponse:
    """What a reader makes of an answer in one piece."""
    reader = ResponseReader({"look", "find"}, keeper="k")
    assert list(reader.feed(msgspec.json.encode(answer))) == []
    return reader.result()


def texts(shown: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in shown)


OUTPUT = (
    thinking("I look it up."),
    message("Let me see.", "msg_1", phase="commentary"),
    calling("look", '{"word": "exit"}', "call_a", "fc_1"),
    calling("find", "{}", "call_b", "fc_2"),
)

CALLS = (ToolCall("call_a", "look", '{"word": "exit"}'), ToolCall("call_b", "find", "{}"))


def test_everything_of_a_response_is_read() -> None:
    shown, answer = read(told(*OUTPUT))
    assert texts(shown) == answer.content == "Let me see."
    assert "".join(delta.reasoning for delta in shown) == answer.reasoning == "I look it up."
    assert (answer.tool_calls, answer.finish_reason, answer.usage) == (CALLS, "tool_calls", NUMBERS)
    assert whole(response(*OUTPUT)) == answer


def test_the_reasoning_is_kept_in_its_place() -> None:
    _, answer = read(told(*OUTPUT))
    assert answer.reasoning_blocks is not None
    assert answer.reasoning_blocks.provider == "k"
    assert msgspec.json.decode(answer.reasoning_blocks.blocks) == [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
         "summary": [{"type": "summary_text", "text": "I look it up."}]},
        {"type": "message", "length": 11, "phase": "commentary"},
        {"type": "function_call"},
        {"type": "function_call"},
    ]  # fmt: skip


def test_reasoning_that_the_end_tells_in_part_is_kept_whole() -> None:
    events = told(*OUTPUT)
    events[-1]["response"]["output"][0] = thinking("I look it up.", None)
    _, answer = read(events)
    assert answer.reasoning_blocks == read(told(*OUTPUT))[1].reasoning_blocks


@pytest.mark.parametrize("output", [(message("Hi."),), (thinking("hm", None), message("Hi."))])
def test_nothing_is_kept_where_nothing_can_be_given_back(output: tuple[Event, ...]) -> None:
    _, answer = read(told(*output))
    assert answer.reasoning_blocks is None
    assert answer.content == "Hi."


# --- What servers leave out ------------------------------------------------------------------------------------


def without(*kinds: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for event in events if not event["type"].endswith(kinds)]


def renamed(events: list[Event]) -> list[Event]:
    """A relay that gives an item another id each time that it names it."""
    numbers = itertools.count()
    return [_with_ids(event, lambda: f"other_{next(numbers)}") for event in events]


def nameless(events: list[Event]) -> list[Event]:
    """A server that gives its items no ids."""
    return [_with_ids(event, lambda: None) for event in events]


def placeless(events: list[Event]) -> list[Event]:
    """A server for which everything is at the first place."""
    return [{**event, "output_index": 0} if "output_index" in event else event for event in events]


def without_places(events: list[Event]) -> list[Event]:
    return [{key: value for key, value in event.items() if key != "output_index"} for event in events]


def with_an_empty_end(events: list[Event]) -> list[Event]:
    return [*events[:-1], {**events[-1], "response": {**events[-1]["response"], "output": []}}]


def _with_ids(event: Event, make: Callable[[], str | None]) -> Event:
    event = dict(event)
    if "item_id" in event:
        event["item_id"] = make()
    if "item" in event:
        event["item"] = {**event["item"], "id": make()}
    if "output" in event.get("response", ()):
        output = [{**item, "id": make()} for item in event["response"]["output"]]
        event["response"] = {**event["response"], "output": output}
    return {key: value for key, value in event.items() if value is not None}


Change = Callable[[list[Event]], list[Event]]
DIRTIED: dict[str, tuple[Change, ...]] = {
    "no pieces": (without(".delta"),),
    "no beginnings": (without(".added"),),
    "no ends": (without(".done"),),
    "pieces and the end": (without(".added", ".done"),),
    "ends only": (without(".added", ".delta"),),
    "the end only": (without(".delta", ".done", ".added"),),
    "an empty end": (with_an_empty_end,),
    "ends and an empty end": (without(".delta"), with_an_empty_end),
    "other ids each time": (renamed,),
    "other ids each time, and an empty end": (renamed, with_an_empty_end),
    "other ids each time, and no beginnings": (without(".added"), renamed),
    "no ids": (nameless,),
    "no ids, and an empty end": (nameless, with_an_empty_end),
    "one place": (placeless,),
    "one place, and an empty end": (placeless, with_an_empty_end),
    "no places": (without_places,),
    "no places, and an empty end": (without_places, with_an_empty_end),
}


@pytest.mark.parametrize("how", DIRTIED)
def test_what_is_told_in_part_is_the_same_answer(how: str) -> None:
    events = told(*OUTPUT)
    for change in DIRTIED[how]:
        events = change(events)
    shown, answer = read(events)
    assert answer.content == texts(shown) == "Let me see."
    assert answer.tool_calls == CALLS
    assert answer.usage == NUMBERS


def test_interleaved_calls_are_put_together() -> None:
    events = told(*OUTPUT[2:])
    deltas = [event for event in events if event["type"].endswith("arguments.delta")]
    begun = [event for event in events if event["type"].endswith("added")]
    mixed = [*begun, *(deltas[number] for number in (2, 0, 3, 1)), *without(".delta", ".added")(events)[1:]]
    assert read(with_an_empty_end(mixed))[1].tool_calls == CALLS


@given(st.sets(st.sampled_from(["text.delta", "arguments.delta", "text.done", "arguments.done", ".added"])))
def test_whatever_is_left_out_nothing_is_lost_nor_there_twice(left_out: set[str]) -> None:
    events = without(*left_out)(told(*OUTPUT)) if left_out else told(*OUTPUT)
    for told_events in (events, with_an_empty_end(events)):
        shown, answer = read(told_events)
        assert answer.content == texts(shown) == "Let me see."
        assert answer.tool_calls == CALLS


def test_two_messages_are_two_paragraphs() -> None:
    shown, answer = read(told(message("One.", "a"), message("Two.", "b")))
    assert answer.content == texts(shown) == "One.\n\nTwo."


def test_parts_of_a_summary_are_paragraphs() -> None:
    item = thinking("First.")
    item["summary"].append({"type": "summary_text", "text": "Then."})
    shown, answer = read(told(item, message("Hi.")))
    assert answer.reasoning == "".join(delta.reasoning for delta in shown) == "First.\n\nThen."


def test_a_refusal_is_what_the_model_says() -> None:
    item = message("")
    item["content"] = [{"type": "refusal", "refusal": "I cannot."}]
    at = {"output_index": 0, "item_id": "msg_1"}
    events: list[Event] = [
        {"type": "response.refusal.delta", **at, "delta": "I "},
        {"type": "response.refusal.delta", **at, "delta": "cannot."},
        {"type": "response.refusal.done", **at, "refusal": "I cannot."},
        {"type": "response.completed", "response": response(item)},
    ]
    shown, answer = read(events)
    assert answer.content == texts(shown) == "I cannot."
    assert whole(response(item)).content == "I cannot."


def test_a_character_that_is_cut_in_two_is_shown_whole() -> None:
    at = {"output_index": 0, "item_id": "msg_1"}
    pieces = [b'"\\ud83d"', b'"\\ude00!"', b'"\\ud83d"']
    reader = ResponseReader()
    shown: list[ModelDelta] = []
    for piece in pieces:
        delta = msgspec.json.encode({"type": "response.output_text.delta", **at, "delta": msgspec.Raw(piece)})
        shown += reader.feed(b"data: " + delta + b"\n\n")
    end = {"type": "response.completed", "response": response()}
    shown += reader.feed(b"data: " + msgspec.json.encode(end) + b"\n\n")
    assert texts(shown) == "\U0001f600!"
    assert reader.result().content == "\U0001f600!\ufffd"


# --- Ends ------------------------------------------------------------------------------------------------------


def failure_of(events: list[Event], **how: bool) -> tuple[ModelErrorKind, bool, int | None]:
    with pytest.raises(ModelError) as caught:
        read(events, **how)
    return caught.value.kind, caught.value.retry, caught.value.status


@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [
        ({"code": "server_error", "message": "x"}, "server_error", True),
        ({"code": "rate_limit_exceeded", "message": "x"}, "rate_limited", True),
        ({"code": "insufficient_quota", "message": "x"}, "rate_limited", False),
        ({"code": "invalid_prompt", "message": "x"}, "bad_request", False),
        ({"code": "image_too_large", "message": "x"}, "bad_request", False),
        ({"code": "bio_policy", "message": "x"}, "content_filtered", False),
        ({"code": "invalid_api_key", "message": "x"}, "authentication", False),
        ({"code": "context_length_exceeded", "message": "x"}, "bad_request", False),
        ({"code": "websocket_connection_limit_reached", "message": "x"}, "connection_lost", True),
        (None, "server_error", True),
        ("overloaded", "server_error", True),
    ],
)
def test_a_response_that_failed_says_why(error: Any, kind: str, retry: bool) -> None:
    failed = response(status="failed", error=error)
    assert failure_of([{"type": "response.failed", "response": failed}]) == (kind, retry, None)
    with pytest.raises(ModelError) as caught:
        whole(failed)
    assert (caught.value.kind, caught.value.retry) == (kind, retry)
    if error is not None:
        assert failure_of([{"type": "error", "error": error}])[0] == kind


@pytest.mark.parametrize(
    ("event", "kind", "retry", "status"),
    [
        ({"type": "error", "code": "server_error", "message": "x", "param": None}, "server_error", True, None),
        ({"type": "error", "status": 429, "error": {"message": "x"}}, "rate_limited", True, 429),
        ({"type": "error", "status": 400, "error": {"code": "unknown", "message": "x"}}, "bad_request", False, 400),
        ({"type": "error", "status": 401, "error": None}, "authentication", False, 401),
        ({"type": "", "error": {"code": 502}}, "server_error", True, 502),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_ends_it(event: Event, kind: str, retry: bool, status: int | None) -> None:
    assert failure_of([*told(message("Hi."))[:-1], event]) == (kind, retry, status)


def test_an_answer_that_was_cut_is_of_use_only_where_it_can_be_read() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    _, answer = read(told(message("Half a sent"), **cut))
    assert (answer.content, answer.finish_reason) == ("Half a sent", "length")
    half = {**calling("look", '{"wo'), "status": "incomplete"}
    assert failure_of(told(message("Hi."), half, **cut)) == ("output_limit", False, None)
    whole_but_cut = {**calling("look", "{}"), "status": "incomplete"}
    assert failure_of(told(whole_but_cut, **cut)) == ("output_limit", False, None)
    assert failure_of(told(thinking("hm"), **cut)) == ("output_limit", False, None)
    _, answer = read(told(calling("look", "{}"), **cut))
    assert answer.tool_calls == (ToolCall("call_1", "look", "{}"),)


def test_a_filter_that_ends_an_answer_is_an_error() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert failure_of(told(message("Hi."), **cut)) == ("content_filtered", False, None)


def test_a_stream_without_its_end_is_no_answer() -> None:
    events = told(*OUTPUT)
    assert failure_of(events[:-1]) == ("truncated_stream", True, None)
    # With a marker for it, each item must have been told to its end.
    assert read(events[:-1], done=True)[1].tool_calls == CALLS
    assert failure_of(without(".done")(events)[:-1], done=True) == ("truncated_stream", True, None)


@pytest.mark.parametrize("output", [(), (thinking("hm"),), (message("  "),)])
def test_an_answer_of_nothing_is_an_error(output: tuple[Event, ...]) -> None:
    assert failure_of(told(*output)) == ("empty_answer", True, None)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_response_that_is_not_done_is_no_answer(status: str) -> None:
    with pytest.raises(ModelError) as caught:
        whole(response(message("Hi."), status=status))
    assert (caught.value.kind, caught.value.retry) == ("malformed_response", True)


@pytest.mark.parametrize(
    ("answer", "kind", "retry"),
    [
        ({"error": "no such route"}, "misconfigured_endpoint", False),
        ({"error": {"code": 503, "message": "x"}}, "server_error", True),
        ({"choices": []}, "malformed_response", False),
        ({}, "malformed_response", False),
        ([], "malformed_response", False),
    ],
)
def test_what_is_no_response_is_refused(answer: Any, kind: str, retry: bool) -> None:
    with pytest.raises(ModelError) as caught:
        whole(answer)
    assert (caught.value.kind, caught.value.retry) == (kind, retry)


def test_a_response_in_an_envelope_and_a_lone_text_are_read() -> None:
    assert whole({"type": "response.completed", "response": response(message("Hi."))}).content == "Hi."
    assert whole({"status": "completed", "output_text": "Hi."}).content == "Hi."


def test_an_older_name_of_the_end_is_known() -> None:
    events = told(message("Hi."))
    events[-1] = {"type": "response.done", "response": {**events[-1]["response"], "status": None}}
    assert read(events)[1].content == "Hi."
    events[-1] = {"type": "response.completed", "response": {"status": "failed"}}
    assert failure_of(events)[0] == "server_error"


@pytest.mark.parametrize("usage", [None, [], {"input_tokens": "many", "output_tokens": True}])
def test_numbers_that_are_none_are_not_counted(usage: Any) -> None:
    answer = whole(response(message("Hi."), usage=usage))
    assert (answer.usage or Usage()) == Usage()


def test_numbers_under_the_names_of_another_api_count() -> None:
    answer = whole(response(message("Hi."), usage={"prompt_tokens": 3, "completion_tokens": 2}))
    assert answer.usage == Usage(3, 2)
    assert USAGE["total_tokens"] == 21


# --- Calls -----------------------------------------------------------------------------------------------------


def test_a_call_that_is_told_twice_is_one_call() -> None:
    call = calling("look", "{}")
    assert whole(response(call, dict(call))).tool_calls == (ToolCall("call_1", "look", "{}"),)


def test_two_calls_under_one_id_stay_two() -> None:
    one, two = calling("look", '{"a":1}'), calling("look", '{"a":2}')
    assert [call.arguments for call in whole(response(one, two)).tool_calls] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(None, "{}"), ("", "{}"), ({"a": 1}, '{"a":1}'), ("12", "12"), ('{"a":"\\ud83d"}', '{"a":"\ufffd"}')],
)
def test_arguments_of_any_shape_are_handed_on_as_text(arguments: Any, text: str) -> None:
    call = {**calling("look", ""), "arguments": arguments}
    assert whole(response(call)).tool_calls == (ToolCall("call_1", "look", text),)


@pytest.mark.parametrize("how", ["as it is", "an empty end", "one place", "no beginnings"])
def test_two_calls_under_one_id_stay_two_in_a_stream(how: str) -> None:
    one, two = calling("look", '{"a":1}', item_id="fc_1"), calling("look", '{"a":2}', item_id="fc_2")
    events = told(one, two)
    for change in DIRTIED.get(how, ()):
        events = change(events)
    assert [call.arguments for call in read(events)[1].tool_calls] == [{"a": 1}, {"a": 2}]


def test_an_answer_has_as_many_items_as_can_be_told_apart_and_not_one_more() -> None:
    calls = [calling("look", "{}", f"call_{number}", f"fc_{number}") for number in range(MOST_ITEMS)]
    assert len(whole(response(*calls)).tool_calls) == MOST_ITEMS
    assert len(read(told(*calls))[1].tool_calls) == MOST_ITEMS
    more = (*calls, message("One more."))
    for take in (lambda: whole(response(*more)), lambda: read(told(*more))):
        with pytest.raises(ModelError, match="1000 items") as caught:
            take()
        assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.MALFORMED_RESPONSE, False)


def test_two_messages_at_one_place_stay_two() -> None:
    events = with_an_empty_end(placeless(without(".added")(told(message("One.", "a"), message("Two.", "b")))))
    shown, answer = read(events)
    assert answer.content == texts(shown) == "One.\n\nTwo."


def test_an_item_that_is_told_twice_is_there_once() -> None:
    events = told(message("One.", "a"), calling("look", "{}"))
    twice = [event for event in events for _ in range(2 if event["type"].endswith("item.done") else 1)]
    _, answer = read(with_an_empty_end(twice))
    assert (answer.content, len(answer.tool_calls)) == ("One.", 1)


def test_an_empty_object_does_not_take_the_place_of_what_was_written() -> None:
    events = told(calling("look", '{"wo'))
    for event in events:
        if event["type"].endswith("arguments.done"):
            event["arguments"] = "{}"
        if event["type"] == "response.output_item.done":
            event["item"]["arguments"] = "{}"
    events[-1]["response"]["output"] = [calling("look", "{}")]
    assert read(events)[1].tool_calls[0].arguments_json == '{"wo'


@pytest.mark.parametrize("name", [" look", "functions.look"])
def test_a_name_with_something_before_it_is_that_of_its_tool(name: str) -> None:
    assert whole(response(calling(name, "{}"))).tool_calls[0].name == "look"


KEYS = st.sampled_from(
    [
        "type",
        "response",
        "output",
        "item",
        "delta",
        "status",
        "error",
        "usage",
        "content",
        "id",
        "code",
        "text",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(sorted({event["type"] for event in told(*OUTPUT)} | {"error", "response.failed"}))


@given(st.lists(st.tuples(KINDS, st.dictionaries(KEYS, JSON, max_size=4)), max_size=6))
def test_whatever_the_events_hold_the_answer_is_one_or_an_error(sent: list[tuple[str, Event]]) -> None:
    try:
        _, answer = read({**event, "type": kind} for kind, event in sent)
    except ModelError:
        return
    assert answer.content.strip() or answer.tool_calls
