"""What a handler takes: which parameters the model fills in, and where the invocation goes."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.parameters import parameters_of
from exeunt.actors.tools.arguments import BoundArguments
from exeunt.actors.tools.invocation import CallInvocation, ToolInvocation

REQUIRED: Final = inspect.Parameter.empty


@attrs.frozen
class Parameter:
    """A parameter that the model fills in."""

    name: str
    annotation: Any
    """Resolved. `Any` where the function has none."""
    default: Any = REQUIRED
    by_keyword: bool = False


@attrs.frozen
class Signature:
    """The parameters of a handler, and how it is called with their values."""

    parameters: tuple[Parameter, ...]
    positional: int
    """How many of the parameters, from the first, are passed by position."""
    keywords: tuple[str, ...]
    """The names of the others."""
    invocation_at: int | None
    """Where among the positional arguments the invocation goes."""
    invocation_as: str | None
    """The keyword by which the invocation goes."""

    def call(
        self, handler: Callable[..., Any], bound: BoundArguments, invocation: CallInvocation | None
    ) -> Any:
        """Call *handler* with the values of *bound*, and with *invocation* where it asks for it."""
        values = msgspec.structs.astuple(bound)
        at = self.invocation_at
        if self.keywords or self.invocation_as is not None:
            keywords = dict(zip(self.keywords, values[self.positional :], strict=True))
            if self.invocation_as is not None:
                keywords[self.invocation_as] = invocation
            values = values[: self.positional]
            if at is not None:
                values = (*values[:at], invocation, *values[at:])
            return handler(*values, **keywords)
        if at is None:
            return handler(*values)
        return handler(*values[:at], invocation, *values[at:])


def function_of(handler: Callable[..., Any]) -> Any:
    """The function behind *handler*: of a partial, a bound method, a wrapper or an object with `__call__`."""
    function: Any = handler
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling *handler* gives a coroutine."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def read_signature(handler: Callable[..., Any], tool_name: str) -> Signature:
    """Read what *handler* takes. Raises `InvalidToolDefinition` where a model could not fill it in."""
    function = function_of(handler)
    try:
        given = parameters_of(handler)
    except (TypeError, ValueError, NameError) as error:
        raise InvalidToolDefinition(f"tool {tool_name!r}: its signature cannot be read: {error}") from error
    # What a partial sets is the host's, not the model's: it would appear as a parameter with a default.
    preset = handler.keywords if isinstance(handler, functools.partial) else {}
    parameters: list[Parameter] = []
    invocation_at: int | None = None
    invocation_as: str | None = None
    for position, (name, parameter) in enumerate(given.items()):
        if name in preset:
            continue
        _refuse_open_parameter(parameter, position, tool_name)
        annotation = _resolved(parameter, function, tool_name)
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY
        if not _is_invocation(annotation):
            parameters.append(Parameter(name, annotation, parameter.default, by_keyword))
        elif invocation_at is not None or invocation_as is not None:
            raise InvalidToolDefinition(f"tool {tool_name!r}: more than one parameter is a ToolInvocation")
        elif by_keyword:
            invocation_as = name
        else:
            invocation_at = position
    keywords = tuple(parameter.name for parameter in parameters if parameter.by_keyword)
    return Signature(
        parameters=tuple(parameters),
        positional=len(parameters) - len(keywords),
        keywords=keywords,
        invocation_at=invocation_at,
        invocation_as=invocation_as,
    )


def _refuse_open_parameter(parameter: inspect.Parameter, position: int, tool_name: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: parameter {str(parameter).partition(':')[0]!r} leaves open what the model "
            "may send. Name the parameters; if a decorator hides them, let it use functools.wraps"
        )
    if position == 0 and parameter.name in ("self", "cls") and parameter.annotation is REQUIRED:
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: {parameter.name!r} cannot come from a model. "
            "Make the tool of the bound method: tool()(object.method)"
        )


def _resolved(parameter: inspect.Parameter, function: Any, tool_name: str) -> Any:
    if parameter.annotation is REQUIRED:
        return Any
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = getattr(function, "__globals__", {})
    try:
        try:
            hints = get_type_hints(holder, names, include_extras=True)
        except NameError:
            # Linters move an import that only annotations need under `if TYPE_CHECKING:`.
            hints = get_type_hints(holder, {"ToolInvocation": ToolInvocation, **names}, include_extras=True)
    except Exception as error:
        written = getattr(parameter.annotation, "__forward_arg__", parameter.annotation)
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: the annotation {written!r} of parameter {parameter.name!r} "
            f"cannot be resolved: {error}. It must be importable at run time, from the module of the function"
        ) from error
    return hints[parameter.name]


def _is_invocation(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_invocation(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        choices = [choice for choice in get_args(annotation) if choice is not type(None)]
        return len(choices) == 1 and _is_invocation(choices[0])
    return isinstance(annotation, type) and issubclass(annotation, CallInvocation)
