"""What a handler returns, as the model sees it."""

import dataclasses
import datetime
import enum
import json
import math
import types
from typing import Any, cast

import attrs
import hypothesis.strategies as st
import msgspec
import pydantic
import pytest
from hypothesis import given

from exeunt.actors.outcomes import Outcome, ToolResult
from exeunt.actors.tools import to_result


class Colour(str, enum.Enum):  # noqa: UP042
    RED = "red"


@attrs.frozen
class Point:
    x: int


@dataclasses.dataclass
class Line:
    start: Point


class Row(msgspec.Struct):
    id: int


class Model(pydantic.BaseModel):
    when: datetime.date


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        (Colour.RED, "red"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (2512292042121000001, "2512292042121000001"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": {"b": 1}}, '{"a":{"b":1}}'),
        ({}, "{}"),
        (Point(1), '{"x":1}'),
        (Line(Point(1)), '{"start":{"x":1}}'),
        (Row(7), '{"id":7}'),
        (Model(when=datetime.date(2026, 11, 30)), '{"when":"2026-11-30"}'),
        ([Model(when=datetime.date(2026, 11, 30))], '[{"when":"2026-11-30"}]'),
        (datetime.date(2026, 11, 30), '"2026-11-30"'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        ("half \ud83d", "half \ufffd"),
        ({"a": ["\ud83d"]}, '{"a":["\ufffd"]}'),
        ({"\ud83d": ("\ud83d", math.nan, Point(2))}, '{"\ufffd":["\ufffd",null,{"x":2}]}'),
        ({"result_type": "own word", "rows": 3}, '{"result_type":"own word","rows":3}'),
    ],
)
def test_a_value_becomes_a_text_and_a_success(value: Any, text: str) -> None:
    assert to_result(value) == ToolResult(text)


class Opaque: ...


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Opaque(), f"{__name__}.Opaque"),
        ({1, Opaque()}, "set"),
        (iter([]), "list_iterator"),
        (object(), "object"),
    ],
)
def test_a_value_that_is_no_json_is_a_failure_that_names_the_type(value: Any, kind: str) -> None:
    result = to_result(value)

    assert result.outcome is Outcome.FAILURE
    assert result.text_result_for_llm == f"The tool returned a value of type {kind}, which cannot be shown."
    assert result.error is not None


def test_a_value_that_holds_itself_is_a_failure() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert to_result(loop).outcome is Outcome.FAILURE
    assert to_result({"\ud83d": loop}).outcome is Outcome.FAILURE


def test_a_coroutine_that_nobody_awaited_is_a_failure() -> None:
    async def work() -> None: ...

    result = to_result(work())

    assert result.outcome is Outcome.FAILURE
    assert "coroutine" in result.text_result_for_llm


def test_a_tool_result_is_taken_as_it_is() -> None:
    result = ToolResult("den", "denied", "why", {"n": 1}, "log")

    assert to_result(result) is result


def test_texts_of_a_tool_result_are_made_encodable() -> None:
    result = to_result(ToolResult("\ud83d", "failure", "\ude00", None, "\ud83d"))

    assert result == ToolResult("\ufffd", "failure", "\ufffd", None, "\ufffd")
    assert to_result(ToolResult(cast("Any", {"a": 1}))).text_result_for_llm == '{"a":1}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"textResultForLlm": "a"}, ToolResult("a")),
        ({"text_result_for_llm": "a", "result_type": "success"}, ToolResult("a")),
        ({"textResultForLlm": "a", "resultType": "failure", "error": "e"}, ToolResult("a", "failure", "e")),
        ({"textResultForLlm": "a", "resultType": "rejected"}, ToolResult("a", "rejected")),
        ({"resultType": "denied"}, ToolResult("", "denied")),
        ({"textResultForLlm": None, "resultType": "timeout"}, ToolResult("", "timeout")),
        (
            {"textResultForLlm": "a", "resultType": "success", "sessionLog": "L", "toolTelemetry": {"n": 1}},
            ToolResult("a", "success", None, {"n": 1}, "L"),
        ),
        ({"textResultForLlm": {"n": 1}, "binaryResultsForLlm": []}, ToolResult('{"n":1}')),
        ({"textResultForLlm": "\ud83d", "resultType": "failure"}, ToolResult("\ufffd", "failure")),
    ],
)
def test_a_mapping_with_the_fields_of_a_result_is_one(value: dict[str, Any], expected: ToolResult) -> None:
    assert to_result(value) == expected


@pytest.mark.parametrize("unknown", ["banana", "SUCCESS", "", None, 5, [], {}, "\ud83d"])
def test_an_unknown_result_type_is_never_a_success(unknown: Any) -> None:
    result = to_result({"textResultForLlm": "weird text", "resultType": unknown})

    assert result.outcome is Outcome.FAILURE
    assert (result.text_result_for_llm + (result.error or "")).encode()


def test_an_unknown_result_type_is_named_beside_the_text() -> None:
    result = to_result({"textResultForLlm": "weird text", "resultType": "banana"})

    assert result.error == "unknown result type 'banana'"
    assert result.text_result_for_llm.endswith("unknown result type 'banana'. Its text was: weird text")


def _is_no_text_and_no_result_object(value: Any) -> bool:
    names = {"text_result_for_llm", "textResultForLlm", "result_type", "resultType"}
    return not (value is None or isinstance(value, str) or (isinstance(value, dict) and names & value.keys()))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ).filter(_is_no_text_and_no_result_object)
)
def test_json_values_come_back_from_the_text(value: Any) -> None:
    result = to_result(value)

    assert result.outcome is Outcome.SUCCESS
    assert result.text_result_for_llm.encode()
    expected = json.loads(
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert json.loads(result.text_result_for_llm) == expected
