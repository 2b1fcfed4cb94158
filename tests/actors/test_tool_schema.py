"""Annotations as JSON Schema for the model and as values for the handler."""

import dataclasses
import datetime
import enum
from typing import Annotated, Any, Literal, TypedDict, cast

import attrs
import msgspec
import pydantic
import pytest

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.tools import InvalidArguments, Tool, ToolInvocation, tool


class Idle:
    cancelled = False
    idempotency_key = "key"


def call_of(made: Tool[..., Any], arguments: str) -> ToolInvocation:
    state = cast("Any", Idle())
    return ToolInvocation("s", "call_1", made.name, arguments, state, session=cast("Any", "session"))


def run(made: Tool[..., Any], arguments: str) -> Any:
    return made.invoke(made.bind(arguments), call_of(made, arguments))


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


@attrs.frozen
class Point:
    """A place."""

    x: int
    y: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@dataclasses.dataclass
class Line:
    points: list[Point]
    label: str = "line"


class Options(TypedDict, total=False):
    deep: bool


class Tree(msgspec.Struct):
    name: str
    children: "list[Tree]" = []


def test_classes_become_definitions_beside_the_properties() -> None:
    @tool
    def draw(line: Line, unit: Unit = Unit.METRE) -> None: ...

    schema = draw.definition.parameters

    assert schema["properties"] == {
        "line": {"$ref": "#/$defs/Line"},
        "unit": {"$ref": "#/$defs/Unit", "default": "m"},
    }
    assert sorted(schema["$defs"]) == ["Line", "Point", "Unit"]
    assert schema["$defs"]["Line"]["properties"]["points"]["items"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"]["description"] == "A place."
    assert schema["type"] == "object"
    assert "$ref" not in schema


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Line, '{"points": [{"x": 1}]}', Line([Point(1)])),
        (Options, '{"deep": true}', {"deep": True}),
        (Tree, '{"name": "a", "children": [{"name": "b"}]}', Tree("a", [Tree("b")])),
        (Unit, '"ft"', Unit.FOOT),
        (Literal["a", "b"], '"b"', "b"),
        (int | str | None, "null", None),
        (Point | None, '{"x": 1}', Point(1)),
        (list[Point], '[{"x": 1}]', [Point(1)]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (set[int], "[1, 1]", {1}),
        (datetime.date, '"2026-11-30"', datetime.date(2026, 11, 30)),
        (float, "1", 1.0),
        (int, "2512292042121000001", 2512292042121000001),
        (bytes, '"aGk="', b"hi"),
        (Any, '{"a": [1, null]}', {"a": [1, None]}),
    ],
)
def test_values_arrive_as_their_annotation_says(annotation: Any, text: str, value: Any) -> None:
    def take(v: Any) -> Any:
        return v

    take.__annotations__["v"] = annotation
    result = run(tool(take), f'{{"v": {text}}}')

    assert result == value
    assert type(result) is type(value)


def test_a_single_class_is_an_ordinary_parameter() -> None:
    @tool
    def go(to: Point) -> Point:
        return to

    assert run(go, '{"to": {"x": 3}}') == Point(3)
    with pytest.raises(InvalidArguments, match=r"to: required but missing; x: there is no such parameter"):
        go.bind('{"x": 3}')


def test_strings_in_annotated_are_descriptions() -> None:
    @tool
    def search(
        text: Annotated[str, "what to look for"],
        limit: Annotated[int, msgspec.Meta(ge=1, le=9), "how many"] = 3,
        kind: Annotated[str, "which kind"] | None = None,
        tags: list[Annotated[str, "a tag"]] = [],  # noqa: B006
    ) -> None: ...

    properties = search.definition.parameters["properties"]

    assert properties["text"] == {"type": "string", "description": "what to look for"}
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "how many",
        "default": 3,
    }
    assert properties["kind"]["anyOf"][0] == {"type": "string", "description": "which kind"}
    assert properties["tags"] == {
        "type": "array",
        "items": {"type": "string", "description": "a tag"},
        "default": [],
    }
    with pytest.raises(InvalidArguments, match="limit: expected int <= 9"):
        search.bind('{"text": "a", "limit": 10}')


def test_defaults_are_not_shared_between_calls() -> None:
    given = {"inner": [1]}

    @tool
    def collect(into: dict[str, list[int]] = given, empty: list[int] = []) -> Any:  # noqa: B006
        into["inner"].append(2)
        empty.append(1)
        return into, empty

    assert collect.definition.parameters["properties"]["into"]["default"] == {"inner": [1]}
    for _ in range(2):
        assert run(collect, "{}") == ({"inner": [1, 2]}, [1])
    assert given == {"inner": [1]}


def test_a_default_that_is_no_json_is_kept_and_not_shown() -> None:
    missing = object()

    @tool
    def update(limit: Any = missing, at: datetime.date = datetime.date(2026, 1, 2)) -> Any:
        return limit, at

    assert run(update, "") == (missing, datetime.date(2026, 1, 2))
    assert update.definition.parameters["properties"]["limit"] == {}
    assert update.definition.parameters["properties"]["at"]["default"] == "2026-01-02"


def test_a_parameter_without_annotation_takes_any_json_value() -> None:
    def untyped(value: Any) -> Any:
        return value

    del untyped.__annotations__["value"]
    echo = tool(untyped)

    assert echo.definition.parameters["properties"] == {"value": {}}
    assert run(echo, '{"value": [1, {"a": null}]}') == [1, {"a": None}]


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    @tool
    def ping() -> str:
        return "pong"

    assert ping.definition.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert run(ping, " ") == "pong"
    with pytest.raises(InvalidArguments, match="x: there is no such parameter"):
        ping.bind('{"x": 1}')


class Opaque: ...


@pytest.mark.parametrize("annotation", [complex, Opaque, list[Opaque], "Unknown", Point | Line, object])
def test_a_type_that_no_model_can_send_is_refused_by_name(annotation: Any) -> None:
    def take(fine: int, odd: Any) -> None: ...

    take.__annotations__["odd"] = annotation

    with pytest.raises(InvalidToolDefinition, match=r"tool 'take': .*'odd'"):
        tool(take)


def test_a_default_that_cannot_be_copied_is_refused() -> None:
    class Locked:
        __hash__ = None  # type: ignore[assignment]

        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no copies")

    def take(value: Any = Locked()) -> None: ...  # noqa: B008

    with pytest.raises(InvalidToolDefinition, match="'value' cannot come from a model: no copies"):
        tool(take)


class Query(pydantic.BaseModel):
    text: str
    limit: int = pydantic.Field(default=3, ge=1, description="how many")
    weight: float = 1.0


class Node(pydantic.BaseModel):
    name: str
    children: "list[Node]" = []


def test_a_pydantic_model_as_the_only_parameter_is_the_whole_object() -> None:
    @tool
    def search(query: Query, invocation: ToolInvocation) -> Any:
        return query, invocation.tool_name

    assert search.definition.parameters == Query.model_json_schema()
    assert run(search, '{"text": "a", "limit": 5}') == (Query(text="a", limit=5), "search")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"text": 1, "limit": 0}', r"text: Input should be a valid string; limit: Input should be greater"),
        ("", "text: Field required"),
        ("[]", "must be an object but got array"),
        ('{"text": "a", "weight": 1e999}', "number out of range"),
        ('{"text": "a", "weight": NaN}', "not valid JSON"),
    ],
)
def test_what_a_pydantic_model_refuses_is_invalid(text: str, reason: str) -> None:
    @tool
    def search(query: Query) -> None: ...

    with pytest.raises(InvalidArguments, match=reason):
        search.bind(text)


def test_a_recursive_pydantic_model_has_an_object_outside() -> None:
    @tool
    def plant(tree: Node) -> Node:
        return tree

    schema = plant.definition.parameters

    assert (schema["type"], sorted(schema["properties"])) == ("object", ["children", "name"])
    assert "$ref" not in schema
    assert "Node" in schema["$defs"]
    assert run(plant, r'{"name": "\ud83d", "children": [{"name": "b"}]}').name == "\ufffd"


def test_a_pydantic_model_without_a_schema_is_refused() -> None:
    class Odd(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        value: Opaque

    def take(odd: Any) -> None: ...

    take.__annotations__["odd"] = Odd

    with pytest.raises(InvalidToolDefinition, match="Odd has no JSON Schema"):
        tool(take)


def test_a_pydantic_model_beside_others_or_that_is_no_object_is_refused() -> None:
    def mixed(query: Query, more: int) -> None: ...

    def numbers(items: pydantic.RootModel[list[int]]) -> None: ...

    with pytest.raises(InvalidToolDefinition, match=r"'query'.*only parameter"):
        tool(mixed)
    with pytest.raises(InvalidToolDefinition, match="not that of an object"):
        tool(numbers)
