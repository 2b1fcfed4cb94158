"""What a model writes as arguments: bound, or invalid with a message that names the fault."""

import json
import re
import string
from typing import Any

import attrs
import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given

from exeunt.actors.tools import InvalidArguments, Tool, tool


@attrs.frozen
class Place:
    name: str
    tags: list[str] = attrs.field(factory=list[str])


@attrs.frozen
class Picky:
    x: int = attrs.field(validator=attrs.validators.gt(0))


@attrs.frozen
class Broken:
    x: int

    def __attrs_post_init__(self) -> None:
        raise KeyError(f"secret {self.x}")


@tool
def weather(city: str, days: int = 1, level: float = 0.0, extra: Any = None) -> Any:
    return city, days, level, extra


@tool
def visit(places: list[Place], by: dict[str, Place] | None = None) -> None: ...


def reason(made: Any, text: str) -> str:
    """What is said of *text* behind the name of the tool; where in the text is the decoder's business."""
    with pytest.raises(InvalidArguments) as caught:
        made.bind(text)
    said = str(caught.value).removeprefix(f"The arguments for the tool call '{made.name}' ")
    return re.sub(r" \(byte \d+\)", "", said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"city": "Oslo",}', "were not valid JSON: trailing comma in object."),
        ('{"city": "Oslo"', "were not valid JSON: the text ends too early."),
        ('{"city": "Oslo"}{"city": "Oslo"}', "were not valid JSON: trailing characters."),
        ('{"city": "a", "level": NaN}', "were not valid JSON: invalid character."),
        ('{"city": "a", "level": -Infinity}', "were not valid JSON: invalid character."),
        ("Oslo", "were not valid JSON: invalid character."),
        ('["Oslo"]', "must be an object but got array."),
        ("12", "must be an object but got int."),
        ("null", "must be an object but got null."),
        ('"{\\"city\\": \\"Oslo\\"}"', "must be an object but got str."),
        ('{"city": 1}', "are not valid: city: expected str, got int"),
        ('{"city": "a", "days": "2"}', "are not valid: days: expected int, got str"),
        ('{"city": "a", "level": 1e999}', "are not valid: level: number out of range"),
        ('{"city": "a", "extra": [1e999]}', "are not valid: extra[0]: number out of range"),
        ("", "are not valid: city: required but missing"),
        (
            '{"days": 1, "town": "a", "zip": 2}',
            (
                "are not valid: city: required but missing; town: there is no such parameter; "
                "zip: there is no such parameter"
            ),
        ),
        (
            '{"days": "1", "town": "a"}',
            (
                "are not valid: city: required but missing; town: there is no such parameter; "
                "days: expected int, got str"
            ),
        ),
    ],
)
def test_the_message_names_the_fault(text: str, expected: str) -> None:
    assert reason(weather, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"places": [{"name": "a"}, {"name": 2}]}', "places[1].name: expected str, got int"),
        ('{"places": "[]"}', "places: expected array, got str"),
        ('{"places": [{"tags": []}]}', "places[0]: object missing required field name"),
        ('{"places": [], "by": {"x": {"name": 1}}}', "by[...].name: expected str, got int"),
    ],
)
def test_the_message_says_where_the_fault_is(text: str, expected: str) -> None:
    assert reason(visit, text) == f"are not valid: {expected}"


def test_the_whole_message_names_the_tool() -> None:
    with pytest.raises(
        InvalidArguments, match=r"^The arguments for the tool call 'weather' must be an object"
    ):
        weather.bind("[]")


@pytest.mark.parametrize(
    "nested",
    [
        "[" * 100_000,
        '{"extra":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"x":' * 100_000 + "1" + "}" * 100_000,
    ],
)
def test_a_hundred_thousand_brackets_are_invalid(nested: str) -> None:
    with pytest.raises(InvalidArguments):
        weather.bind(nested)


def test_nesting_too_deep_for_any_value_is_named() -> None:
    text = '{"city": "a", "extra": ' + "[" * 100_000 + "]" * 100_000 + "}"

    assert reason(weather, text) == "are nested too deep."


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"smile \ud83d end", "smile \ufffd end"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\\ud83d \ud83d", "\\ud83d \ufffd"),
        ("raw \ud83d", "raw \ufffd"),
        (r"\ud83d", "\ufffd"),
    ],
)
def test_half_a_surrogate_pair_becomes_a_replacement_character(written: str, value: str) -> None:
    bound = weather.bind(f'{{"city": "{written}"}}')

    assert weather.invoke(bound, None)[0] == value


def test_repairing_a_text_does_not_hide_another_fault() -> None:
    assert reason(weather, r'{"city": "\ud83d", "days": "x"}') == "are not valid: days: expected int, got str"
    assert reason(weather, r'{"city": "\ud83d"') == "were not valid JSON: the text ends too early."
    assert reason(weather, r'{"city": "\ud8"}"}').startswith("were not valid JSON")


def test_what_a_validator_says_is_told_and_other_exceptions_are_not() -> None:
    @tool
    def pick(p: Picky) -> None: ...

    @tool
    def broken(b: Broken) -> None: ...

    assert reason(pick, '{"p": {"x": 0}}') == "are not valid: p: 'x' must be > 0: 0"
    assert reason(broken, '{"b": {"x": 7}}') == "were refused: KeyError."


def test_a_message_has_a_bound() -> None:
    many = json.dumps({"k" * 500 + str(n): 1 for n in range(1000)})

    assert len(reason(weather, many)) < 1100


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["city", "days", "level", "extra", "places", "p", "b"])


@given(
    st.text()
    | st.text(alphabet='{}[]",:\\ud83dcity 01eE+-.\n', max_size=40)
    | st.builds(json.dumps, json_values, ensure_ascii=st.booleans())
    | st.builds(json.dumps, st.dictionaries(names, json_values, max_size=4))
)
@example("\ufeff{}")
@example('{"\\ud83d": 1}')
@example('{"city": "\\u"}')
def test_no_text_raises_anything_but_invalid_arguments(text: str) -> None:
    @tool
    def pick(p: Picky | None = None, b: Broken | None = None) -> None: ...

    def take(arguments: dict[str, Any]) -> None: ...

    tools: list[Tool[..., Any]] = [weather, visit, pick, tool(parameters={})(take)]
    for made in tools:
        try:
            bound = made.bind(text)
        except InvalidArguments as error:
            str(error).encode()
        else:
            msgspec.json.encode(bound)


TYPES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(st.characters(exclude_categories=["Cs"])),
    bool: st.booleans(),
    int | None: st.none() | st.integers(-(2**63), 2**64 - 1),
    list[int]: st.lists(st.integers(-5, 5), max_size=3),
    dict[str, bool]: st.dictionaries(st.text(string.printable), st.booleans(), max_size=3),
    Place: st.builds(Place, st.text(string.printable), st.lists(st.text(string.printable), max_size=2)),
    tuple[str, float]: st.tuples(st.text(string.printable), st.floats(allow_nan=False, allow_infinity=False)),
}


@st.composite
def signatures(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    """A function that returns what it is given, and arguments for it."""
    identifiers = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(str.isidentifier)
    words = {
        "from",
        "as",
        "in",
        "is",
        "if",
        "or",
        "and",
        "not",
        "def",
        "self",
        "cls",
        "lambda",
        "locals",
        "dict",
    }
    chosen = draw(
        st.lists(identifiers.filter(lambda name: name not in words), min_size=1, max_size=5, unique=True)
    )
    kinds = [draw(st.sampled_from(list(TYPES))) for _ in chosen]
    star = draw(st.integers(0, len(chosen)))
    given_names = [*chosen[:star], *(["*"] if star < len(chosen) else []), *chosen[star:]]
    namespace: dict[str, Any] = {}
    try:
        exec(f"def handler({', '.join(given_names)}): return dict(locals())", namespace)
    except SyntaxError:  # another keyword of Python
        return draw(signatures())
    handler = namespace["handler"]
    handler.__annotations__ = dict(zip(chosen, kinds, strict=True))
    return handler, {name: draw(TYPES[kind]) for name, kind in zip(chosen, kinds, strict=True)}


@given(signatures())
def test_values_of_random_signatures_come_back_equal(case: tuple[Any, dict[str, Any]]) -> None:
    handler, arguments = case
    made = tool("t")(handler)

    bound = made.bind(msgspec.json.encode(arguments).decode())

    assert made.invoke(bound, None) == arguments
