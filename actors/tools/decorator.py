"""`@tool`: how a tool is made of a function."""

import inspect
import math
import re
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, final, get_args, overload

import attrs
import msgspec

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.models import ToolDefinition
from exeunt.actors.text import encodable
from exeunt.actors.tools.definition import Defer, Tool
from exeunt.actors.tools.docstring import summary
from exeunt.actors.tools.schema import from_schema, from_signature
from exeunt.actors.tools.signature import function_of, is_async, read_signature

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_TIMEOUT = 300.0
"""Seconds. Long enough for a build or a crawl, short enough to notice a lost connection within the hour."""

# What every provider accepts as the name of a function.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


@final
@attrs.frozen
class ToolDecorator:
    """What `tool(...)` gives: it makes a tool of a function, any number of times."""

    # Checked when a function is given: then the message can name the tool.
    _name: Any
    _description: Any
    _defer: Any
    _timeout: Any
    _approval_timeout: Any
    _parameters: Any
    _flags: dict[str, Any]

    def __call__(self, handler: Callable[P, R], /) -> Tool[P, R]:
        """Make a tool of *handler*. Raises `InvalidToolDefinition`."""
        function = _checked_function(handler)
        name = _checked_name(getattr(function, "__name__", "") if self._name is None else self._name)
        for option, value in self._flags.items():
            _check(isinstance(value, bool), name, option, "True or False", value)
        _check(self._defer in (None, *get_args(Defer)), name, "defer", "'auto', 'never' or None", self._defer)
        _check(
            _bounded(self._timeout), name, "timeout", "a positive and finite number of seconds", self._timeout
        )
        approval = self._approval_timeout
        _check(
            approval is None or _bounded(approval),
            name,
            "approval_timeout",
            "a positive and finite number of seconds, or None",
            approval,
        )
        description = summary(handler) if self._description is None else self._description
        _check(isinstance(description, str), name, "description", "a text", description)
        signature = read_signature(handler, name)
        if self._parameters is None:
            binder, schema = from_signature(name, signature)
        else:
            binder, schema = from_schema(name, signature, self._parameters)
        return Tool(
            name=name,
            definition=ToolDefinition(name, encodable(description), _as_json(name, schema), self._defer),
            handler=handler,
            is_async=is_async(handler),
            defer=self._defer,
            timeout=float(self._timeout),
            approval_timeout=None if approval is None else float(approval),
            binder=binder,
            signature=signature,
            **self._flags,
        )


@overload
def tool(
    name: str | None = None,
    *,
    description: str | None = None,
    is_terminal: bool = False,
    defer: Defer | None = None,
    skip_permission: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    approval_timeout: float | None = None,
    sequential: bool = False,
    idempotent: bool = False,
    expose_errors: bool = True,
    parameters: dict[str, Any] | None = None,
) -> ToolDecorator: ...
@overload
def tool(handler: Callable[P, R], /) -> Tool[P, R]: ...
def tool(
    name: Any = None,
    *,
    description: Any = None,
    is_terminal: Any = False,
    defer: Any = None,
    skip_permission: Any = False,
    timeout: Any = DEFAULT_TIMEOUT,
    approval_timeout: Any = None,
    sequential: Any = False,
    idempotent: Any = False,
    expose_errors: Any = True,
    parameters: Any = None,
) -> Any:
    """Make a `Tool` of a function: `@tool`, `@tool("name", is_terminal=True)` or `tool(name=...)(function)`.

    The parameters of the function become the parameters of the tool, by their annotations: builtin types,
    attrs classes, dataclasses, TypedDicts, msgspec structs, enums, `Literal`, unions, dates. A string in
    `Annotated` describes a parameter to the model, `msgspec.Meta` also limits it. A parameter without
    annotation takes any JSON value. A parameter annotated `ToolInvocation` is filled in by the host, and what
    `functools.partial` has set stays set; the model sees neither. A class is an ordinary parameter under the
    parameter's name, except that a pydantic model as the only parameter is the whole arguments object, and
    validates as it is configured to.

    * `name`: default is the function's. 1 to 64 of the characters `a-z A-Z 0-9 _ -`.
    * `description`: default is the docstring up to its first section of parameters, results or errors.
    * `timeout`, `approval_timeout`: seconds, positive and finite.
    * `parameters`: a JSON Schema for tools that are described elsewhere. It goes to the model as it is, the
      arguments are only checked to be an object, and the function gets them as one `dict`.

    The other options are described at the fields of `Tool`. Raises `InvalidToolDefinition`.
    """
    flags = {
        "is_terminal": is_terminal,
        "skip_permission": skip_permission,
        "sequential": sequential,
        "idempotent": idempotent,
        "expose_errors": expose_errors,
    }
    given_name = None if callable(name) else name
    decorator = ToolDecorator(given_name, description, defer, timeout, approval_timeout, parameters, flags)
    return decorator(name) if callable(name) else decorator


def _bounded(seconds: Any) -> bool:
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf


def _checked_function(handler: Any) -> Any:
    if isinstance(handler, Tool):
        raise InvalidToolDefinition(f"{handler.name!r} is a tool already: apply tool() to its handler")
    if not callable(handler) or inspect.isclass(handler):
        raise InvalidToolDefinition(f"a tool is made of a function, not of {handler!r:.80}")
    function = function_of(handler)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidToolDefinition(f"a tool returns its result once: {function.__name__!r} is a generator")
    return function


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidToolDefinition(
            f"{name!r:.100} cannot be the name of a tool: use 1 to 64 of a-z, A-Z, 0-9, _ and -"
        )
    return name


def _check(holds: bool, tool_name: str, option: str, wanted: str, value: object) -> None:
    if not holds:
        raise InvalidToolDefinition(f"tool {tool_name!r}: {option} must be {wanted}, not {value!r:.80}")


def _as_json(tool_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A copy of *schema* that is plain JSON, whoever made it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(schema), type=dict[str, Any])
    except Exception as error:
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: its parameters are no JSON Schema: {error}"
        ) from error
