"""How a handler is called: positions, keywords and the invocation."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, cast

import pytest

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.tools import InvalidArguments, Tool, tool
from tests.late_annotations import defined

if TYPE_CHECKING:
    from exeunt.actors.tools import ToolInvocation

MARK = cast("ToolInvocation", object())


def call(made: Tool[..., Any], arguments: str) -> Any:
    return made.invoke(made.bind(arguments), MARK)


def first(invocation: ToolInvocation, a: int, b: int = 2) -> Any:
    return invocation, a, b


def middle(a: int, ctx: ToolInvocation, b: int = 2) -> Any:
    return ctx, a, b


def last(a: int, b: int = 2, call: ToolInvocation | None = None) -> Any:
    return call, a, b


def keyword(a: int, *, call: ToolInvocation, b: int = 2) -> Any:
    return call, a, b


def keywords_behind(call: ToolInvocation, *, a: int, b: int = 2) -> Any:
    return call, a, b


def between(a: int, call: ToolInvocation, *, b: int = 2) -> Any:
    return call, a, b


def position_only(a: int, call: ToolInvocation, b: int = 2, /) -> Any:
    return call, a, b


def optional(a: int, b: int = 2, call: Optional[ToolInvocation] = None) -> Any:  # noqa: UP045
    return call, a, b


@pytest.mark.parametrize(
    "handler",
    [first, middle, last, keyword, keywords_behind, between, position_only, optional],
    ids=lambda f: f.__name__,
)
def test_the_invocation_goes_where_it_is_asked_for(handler: Callable[..., Any]) -> None:
    made = tool(handler)

    assert list(made.definition.parameters["properties"]) == ["a", "b"]
    assert call(made, '{"b": 5, "a": 4}') == (MARK, 4, 5)
    assert call(made, '{"a": 4}') == (MARK, 4, 2)
    with pytest.raises(InvalidArguments, match=r"there is no such parameter"):
        made.bind('{"a": 1, "call": {}, "ctx": {}, "invocation": {}}')


def test_a_handler_without_invocation_gets_none() -> None:
    def pair(a: int, *, b: int) -> Any:
        return a, b

    def only(call: ToolInvocation) -> Any:
        return call

    assert call(tool(pair), '{"a": 1, "b": 2}') == (1, 2)
    assert call(tool(only), "") is MARK


def test_what_a_partial_sets_is_neither_shown_nor_overwritten() -> None:
    def query(db: str, table: str, call: ToolInvocation, limit: int = 3) -> Any:
        return db, table, call, limit

    by_position = tool(functools.partial(query, "main"))
    by_keyword = tool(functools.partial(query, "main", table="users"))

    assert list(by_position.definition.parameters["properties"]) == ["table", "limit"]
    assert call(by_position, '{"table": "t"}') == ("main", "t", MARK, 3)
    assert list(by_keyword.definition.parameters["properties"]) == ["limit"]
    assert call(by_keyword, '{"limit": 1}') == ("main", "users", MARK, 1)


def test_two_invocations_are_refused() -> None:
    def handler(a: ToolInvocation, b: ToolInvocation) -> None: ...

    with pytest.raises(InvalidToolDefinition, match="more than one"):
        tool(handler)


def test_open_parameters_are_refused() -> None:
    def many(*numbers: int) -> None: ...

    def anything(**options: Any) -> None: ...

    with pytest.raises(InvalidToolDefinition, match=r"'\*numbers' leaves open"):
        tool(many)
    with pytest.raises(InvalidToolDefinition, match=r"'\*\*options' leaves open"):
        tool(anything)


def test_an_unbound_method_is_refused_with_the_way_out() -> None:
    class Shop:
        def price(self, item: str) -> str:
            return item

    with pytest.raises(InvalidToolDefinition, match="bound method"):
        tool(Shop.price)

    assert call(tool(Shop().price), '{"item": "tea"}') == "tea"


def test_an_annotation_that_cannot_be_resolved_is_refused() -> None:
    def handler(a: int) -> None: ...

    handler.__annotations__["a"] = "Missing"

    with pytest.raises(InvalidToolDefinition, match="'Missing' of parameter 'a' cannot be resolved"):
        tool(handler)


def test_a_result_annotation_that_cannot_be_resolved_does_not_matter() -> None:
    def handler(a: int) -> int:
        return a

    handler.__annotations__["return"] = "Missing"

    assert call(tool(handler), '{"a": 1}') == 1


def test_names_that_only_a_type_checker_knows_need_no_quotes() -> None:
    made = defined("def handler(a: int, ctx: ToolInvocation | None, b: int = 2) -> Missing: return ctx, a, b")

    described = tool(cast("Callable[..., Any]", made["handler"]))

    assert list(described.definition.parameters["properties"]) == ["a", "b"]
    assert call(described, '{"a": 1}') == (MARK, 1, 2)


def test_a_parameter_of_the_model_must_be_known_at_run_time() -> None:
    made = defined("def handler(a: Missing): ...")

    with pytest.raises(
        InvalidToolDefinition, match="'Missing' of parameter 'a' cannot be resolved: name 'Mis"
    ):
        tool(made["handler"])


def test_a_builtin_without_a_signature_is_refused() -> None:
    with pytest.raises(InvalidToolDefinition, match="signature cannot be read"):
        tool("x")(max)


def test_pydantic_is_not_imported_for_tools_without_it() -> None:
    program = (
        "import sys\n"
        "from exeunt.actors.tools import tool, to_result\n"
        "made = tool('t')(lambda a: a)\n"
        "assert to_result({'a': 1}).text_result_for_llm == '{\"a\":1}'\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
