"""`@tool` and what it makes of a function."""

import functools
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from trio.testing import MockClock

from exeunt.actors.errors import InvalidConfiguration, InvalidToolDefinition
from exeunt.actors.tools import Tool, tool
from exeunt.testing import ScriptedModel, checked_host


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Both may be negative.

    Args:
        a: the first
        b: the second
    """
    return a + b


def test_a_plain_decorator_takes_name_and_description_of_the_function() -> None:
    made = tool(add)

    assert (made.name, made.description) == ("add", "Add two numbers.\n\nBoth may be negative.")
    assert made.definition.name == "add"
    assert made.definition.description == made.description
    assert made.definition.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_the_defaults_are_the_documented_ones() -> None:
    made = tool()(add)

    assert not made.is_terminal
    assert not made.skip_permission
    assert not made.sequential
    assert not made.idempotent
    assert made.expose_errors
    assert made.defer is None
    assert made.timeout == 300.0


def test_every_option_is_kept() -> None:
    made = tool(
        name="sum-2",
        description="Adds.",
        is_terminal=True,
        defer="auto",
        skip_permission=True,
        timeout=5,
        sequential=True,
        idempotent=True,
        expose_errors=False,
    )(add)

    assert (made.name, made.description, made.defer, made.timeout) == ("sum-2", "Adds.", "auto", 5.0)
    assert made.is_terminal
    assert made.skip_permission
    assert made.sequential
    assert made.idempotent
    assert not made.expose_errors
    assert tool("other")(add).name == "other"


def test_a_tool_is_called_like_its_function() -> None:
    assert tool(add)(40) == 42
    assert tool("x")(add)(b=1, a=1) == 2


async def test_an_async_tool_is_awaited_like_its_function() -> None:
    @tool
    async def greet(name: str) -> str:
        return f"hello {name}"

    assert await greet("Ada") == "hello Ada"
    assert greet.is_async


def test_tools_are_immutable_and_hashable_by_identity() -> None:
    one, two = tool(add), tool(add)

    assert len({one, two, one}) == 2
    with pytest.raises(AttributeError):
        one.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "é", "a\n", 3, b"a"])
def test_a_name_that_providers_refuse_is_refused(name: Any) -> None:
    with pytest.raises(InvalidToolDefinition, match="cannot be the name of a tool"):
        tool(name)(add)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidToolDefinition, match="<lambda>"):
        tool(lambda: 1)

    assert tool("one")(lambda: 1).name == "one"


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, None, True, "5"])
def test_a_time_out_that_is_no_bound_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidToolDefinition, match="positive and finite"):
        tool(timeout=timeout)(add)


@pytest.mark.parametrize(
    "options", [{"defer": "maybe"}, {"is_terminal": "no"}, {"description": 3}, {"expose_errors": None}]
)
def test_an_option_of_the_wrong_kind_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match=f"'add': .*{next(iter(options)).partition('_')[0]}"):
        tool(**options)(add)


def test_what_is_not_a_function_is_refused() -> None:
    def numbers() -> Any:
        yield 1

    async def stream() -> Any:
        yield 1

    wrong: list[Any] = [3, int, tool(add)]
    for handler in wrong:
        with pytest.raises(InvalidToolDefinition):
            tool("x")(handler)
    for handler in (numbers, stream):
        with pytest.raises(InvalidToolDefinition, match="generator"):
            tool("x")(handler)


class Shop:
    """A shop."""

    def __init__(self, currency: str) -> None:
        self.currency = currency

    def price(self, item: str) -> str:
        """Say what an item costs."""
        return f"{item}: 5 {self.currency}"

    async def __call__(self, item: str) -> str:
        return item


def test_bound_methods_partials_and_callable_objects_can_be_tools() -> None:
    shop = Shop("EUR")
    price = tool(shop.price)
    partial = tool(functools.partial(add, b=3))
    instance: Tool[..., Any] = tool("shop")(shop)

    assert (price.name, price.description, price.is_async) == ("price", "Say what an item costs.", False)
    assert price("tea") == "tea: 5 EUR"
    assert list(price.definition.parameters["properties"]) == ["item"]
    assert (partial.name, partial(1)) == ("add", 4)
    assert list(partial.definition.parameters["properties"]) == ["a"]
    assert (instance.is_async, instance.description) == (True, "A shop.")
    assert list(instance.definition.parameters["properties"]) == ["item"]


def test_a_static_method_can_be_a_tool_where_it_is_defined() -> None:
    class Tools:
        @tool
        @staticmethod
        async def echo(text: str) -> str:
            """Echo."""
            return text

    assert (Tools.echo.name, Tools.echo.description, Tools.echo.is_async) == ("echo", "Echo.", True)
    assert list(Tools.echo.definition.parameters["properties"]) == ["text"]


def test_a_partial_of_an_async_function_is_async() -> None:
    async def greet(name: str, db: object) -> str:
        return name

    made = tool(functools.partial(greet, db=object()))

    assert made.is_async
    assert list(made.definition.parameters["properties"]) == ["name"]


def test_a_decorated_function_shows_what_it_wraps() -> None:
    def logged(function: Callable[[str], Awaitable[str]]) -> Callable[..., Awaitable[str]]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> str:
            return await function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    async def greet(name: str) -> str:
        """Greet."""
        return name

    assert (greet.name, greet.description, greet.is_async) == ("greet", "Greet.", True)
    assert list(greet.definition.parameters["properties"]) == ["name"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Do it.\n\n    Args:\n        a: x",
        "Do it.\n\n    Parameters\n    ----------\n    a : int",
        "Do it.\n\n    :param a: x\n    :returns: y",
        "Do it.\n    Returns:\n        nothing",
        "\n    Do it.\n\n    Raises:\n        ValueError",
    ],
)
def test_sections_of_a_docstring_that_are_for_programmers_are_left_out(docstring: str) -> None:
    def work(a: int) -> None: ...

    work.__doc__ = docstring

    assert tool(work).description == "Do it."


def test_prose_that_only_mentions_arguments_stays() -> None:
    def work() -> None:
        """Arguments: none are needed. Returns nothing."""

    def bare() -> None: ...

    assert tool(work).description == "Arguments: none are needed. Returns nothing."
    assert tool(bare).description == ""
    assert tool(description="smile \ud83d")(bare).description == "smile \ufffd"


def test_a_schema_of_ones_own_goes_to_the_model_as_it_is() -> None:
    schema = {"properties": {"q": {"type": "string"}}, "required": ["q"], "x-order": 1}

    @tool(parameters=schema)
    def search(arguments: dict[str, Any]) -> str:
        return str(arguments["q"])

    schema["required"] = []

    assert search.definition.parameters == {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "x-order": 1,
    }


@pytest.mark.parametrize("schema", [[], "x", {"type": "array"}, {"properties": 3}, {"default": object()}])
def test_a_schema_that_is_none_is_refused(schema: Any) -> None:
    def search(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(InvalidToolDefinition, match="tool 'search'"):
        tool(parameters=schema)(search)


def test_a_schema_of_ones_own_needs_a_handler_of_one_parameter() -> None:
    with pytest.raises(InvalidToolDefinition, match="only parameter"):
        tool(parameters={})(add)


@pytest.mark.parametrize("defer", ["auto", "never", None])
async def test_what_a_tool_says_of_being_searched_for_is_told_to_the_model_client(
    autojump_clock: MockClock, defer: Any
) -> None:
    @tool(defer=defer)
    async def look_up(word: str) -> str:
        """Look a word up."""
        return word

    model = ScriptedModel(["hi"])
    async with checked_host() as host:
        session = await host.create_session(model=model, tools=[look_up])
        await session.send_and_wait("hello")
    assert [(sent.name, sent.defer) for sent in model.requests[0].tools] == [("look_up", defer)]
    assert look_up.defer == defer
