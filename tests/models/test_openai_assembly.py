"""Pieces of tool calls, as servers cut and mislabel them: no call is lost, and no two are glued."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse
from exeunt.models.openai.assembly import Assembly

TOOLS = ("get_weather", "list_files", "list_files_of")


def piece(arguments: Any = None, *, index: Any = None, id: Any = None, name: Any = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    call = {"index": index, "id": id, "function": function}
    return {key: value for key, value in call.items() if value is not None}


def assemble(
    *pieces: dict[str, Any] | list[dict[str, Any]], finish: str | None = "tool_calls"
) -> ModelResponse:
    assembly = Assembly(TOOLS)
    for each in pieces:
        assembly.add_delta({"tool_calls": each if isinstance(each, list) else [each]}, None)
    assembly.add_delta({}, finish)
    return assembly.result(complete=True)


def calls(answer: ModelResponse) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments_json) for call in answer.tool_calls]


def test_two_calls_at_one_index_without_ids_are_two_calls() -> None:
    one, two = (
        piece('{"city":"Oslo"}', index=0, name="get_weather"),
        piece('{"city":"Lima"}', index=0, name="get_weather"),
    )
    assert calls(assemble(one, two)) == [
        ("", "get_weather", '{"city":"Oslo"}'),
        ("", "get_weather", '{"city":"Lima"}'),
    ]


def test_two_calls_at_one_index_without_ids_and_arguments_are_two_calls() -> None:
    answer = assemble(
        piece(index=0, name="list_files"), piece('{"city":"Oslo"}', index=0, name="get_weather")
    )
    assert calls(answer) == [("", "list_files", "{}"), ("", "get_weather", '{"city":"Oslo"}')]


def test_two_calls_at_one_index_are_two_calls_by_their_ids_before_any_arguments() -> None:
    answer = assemble(
        piece(index=0, id="a", name="list_files"),
        piece(index=0, id="b", name="list_files"),
        piece("{}", index=0),
    )
    assert calls(answer) == [("a", "list_files", "{}"), ("b", "list_files", "{}")]


def test_a_name_in_fragments_is_put_together_though_its_begin_is_a_tool_too() -> None:
    answer = assemble(piece(index=0, name="list_files"), piece(index=0, name="_of"), piece("{}", index=0))
    assert calls(answer) == [("", "list_files_of", "{}")]


def test_a_name_and_an_id_with_each_piece_make_one_call() -> None:
    pieces = [piece(text, index=0, id="a", name="get_weather") for text in ('{"city"', ':"Os', 'lo"}')]
    assert calls(assemble(*pieces)) == [("a", "get_weather", '{"city":"Oslo"}')]


def test_one_id_for_two_different_calls_makes_two_calls() -> None:
    one, two = (
        piece(f'{{"city":"{city}"}}', index=0, id="a", name="get_weather") for city in ("Oslo", "Lima")
    )
    assert [call[2] for call in calls(assemble(one, two))] == ['{"city":"Oslo"}', '{"city":"Lima"}']


def test_two_calls_in_one_piece_without_any_key_are_two_calls() -> None:
    answer = assemble([piece("{}", name="list_files"), piece("{}", name="list_files")])
    assert calls(answer) == [("", "list_files", "{}")] * 2


def test_pieces_without_index_find_their_call_by_id() -> None:
    one, two = piece('{"city":', id="a", name="get_weather"), piece('{"city":', id="b", name="get_weather")
    answer = assemble(one, two, piece('"Oslo"}', id="a"), piece('"Lima"}', id="b"))
    assert calls(answer) == [
        ("a", "get_weather", '{"city":"Oslo"}'),
        ("b", "get_weather", '{"city":"Lima"}'),
    ]


def test_an_empty_object_before_the_arguments_is_a_place_holder() -> None:
    answer = assemble(
        piece("{}", index=0, id="a", name="get_weather"), piece('{"city":', index=0), piece("1}", index=0)
    )
    assert calls(answer) == [("a", "get_weather", '{"city":1}')]


def test_a_call_without_a_name_is_not_lost() -> None:
    assert calls(assemble(piece('{"city":"Oslo"}', index=3, id="a"))) == [("a", "", '{"city":"Oslo"}')]


def test_the_old_form_of_a_call_is_a_call() -> None:
    assembly = Assembly(TOOLS)
    assembly.add_delta({"function_call": {"name": "get_weather", "arguments": '{"city"'}}, None)
    assembly.add_delta({"function_call": {"arguments": ":1}"}}, "function_call")
    assert calls(assembly.result(complete=True)) == [("", "get_weather", '{"city":1}')]


def test_calls_of_a_whole_message_are_never_merged() -> None:
    assembly = Assembly(TOOLS)
    assembly.add_message(
        {"tool_calls": [piece("{", index=0, name="list_files"), piece("}", index=0)]}, "tool_calls"
    )
    assert calls(assembly.result(complete=True)) == [("", "list_files", "{"), ("", "", "}")]


def test_integers_of_any_size_stay_exact() -> None:
    answer = assemble(piece({"id": 10**30}, index=0, id="a", name="get_weather"))
    assert calls(answer) == [("a", "get_weather", '{"id":' + "1" + "0" * 30 + "}")]


def test_half_a_surrogate_pair_waits_for_its_other_half() -> None:
    assembly = Assembly()
    shown = [assembly.add_delta({"content": text}, None) for text in ("a\ud83d", "\ude00b", "\ud83d")]
    assembly.add_delta({}, "stop")
    assert shown == [ModelDelta("a"), ModelDelta("\U0001f600b"), None]
    assert assembly.result(complete=True).content == "a\U0001f600b\ufffd"


@pytest.mark.parametrize(
    ("delta", "finish", "complete", "kind"),
    [
        ({"content": "x"}, "content_filter", True, ModelErrorKind.CONTENT_FILTERED),
        ({"content": "x"}, "error", True, ModelErrorKind.SERVER_ERROR),
        ({"content": ""}, "length", True, ModelErrorKind.OUTPUT_LIMIT),
        (
            {"tool_calls": [piece('{"a', index=0, name="get_weather")]},
            "length",
            True,
            ModelErrorKind.OUTPUT_LIMIT,
        ),
        ({"content": " \n"}, "stop", True, ModelErrorKind.EMPTY_ANSWER),
        ({"reasoning": "hm"}, "stop", True, ModelErrorKind.EMPTY_ANSWER),
        ({"content": "x"}, None, False, ModelErrorKind.TRUNCATED_STREAM),
        (
            {"tool_calls": [piece('{"a', index=0, name="get_weather")]},
            None,
            False,
            ModelErrorKind.TRUNCATED_STREAM,
        ),
        # Cut behind the name: without its arguments it is another call.
        (
            {
                "tool_calls": [
                    piece("{}", index=0, name="get_weather"),
                    piece("", index=1, name="get_weather"),
                ]
            },
            None,
            False,
            ModelErrorKind.TRUNCATED_STREAM,
        ),
        (
            {"tool_calls": [piece("", index=0, name="get_weather")]},
            "length",
            True,
            ModelErrorKind.OUTPUT_LIMIT,
        ),
    ],
)
def test_an_answer_of_no_use_is_an_error(
    delta: dict[str, Any], finish: str | None, complete: bool, kind: ModelErrorKind
) -> None:
    assembly = Assembly(TOOLS)
    assembly.add_delta(delta, finish)
    with pytest.raises(ModelError) as caught:
        assembly.result(complete=complete)
    assert caught.value.kind is kind


def test_a_text_that_the_output_limit_cut_is_an_answer() -> None:
    assembly = Assembly()
    assembly.add_delta({"content": "half a sen"}, "length")
    assert assembly.result(complete=True) == ModelResponse("half a sen", (), "length")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab\\"\ud83d\u00e9', max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(TOOLS), st.dictionaries(st.text("ab", max_size=2), JSON, max_size=3)),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_interleaved_calls_come_out_as_they_went_in(
    made: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    queues: list[list[dict[str, Any]]] = []
    for number, (name, arguments) in enumerate(made):
        text = json.dumps(arguments)
        cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=3)))
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        head = piece("", index=number, id=f"call_{number}", name=name)
        queues.append([head, *(piece(part, index=number) for part in parts)])
    order = data.draw(st.permutations([number for number, queue in enumerate(queues) for _ in queue]))
    # A call is announced before its pieces; the announcements come in call order.
    heads = [queue.pop(0) for queue in queues]
    rest = [queues[number].pop(0) for number in order if queues[number]]
    rest += [each for queue in queues for each in queue]
    answer = assemble(*heads, *rest)
    assert [(call.id, call.name) for call in answer.tool_calls] == [
        (f"call_{number}", name) for number, (name, _) in enumerate(made)
    ]
    for call, (_, arguments) in zip(answer.tool_calls, made, strict=True):
        assert call.arguments == json.loads(json.dumps(arguments).replace("\\ud83d", "\\ufffd"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "id", "function", "name", "arguments", "type", "text", "thinking"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["content", "tool_calls", "function_call", "reasoning", "refusal"]),
            ANYTHING,
            max_size=4,
        ),
        max_size=5,
    ),
    ANYTHING,
)
def test_whatever_comes_the_end_is_an_answer_or_a_typed_error(
    deltas: list[dict[str, Any]], finish: Any
) -> None:
    assembly = Assembly(TOOLS)
    try:
        for delta in deltas:
            assembly.add_delta(delta, finish)
        answer = assembly.result(complete=True)
    except ModelError:
        return
    for text in (
        answer.content,
        answer.reasoning,
        *(call.name + call.arguments_json for call in answer.tool_calls),
    ):
        text.encode()
