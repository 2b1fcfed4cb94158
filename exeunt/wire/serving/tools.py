"""From the tools that a client declares to those that a session has.

Clients declare the same tools for each of their sessions. So one set of tools is made for each different text, and
shared by all sessions that send it; what a call needs of its session, the handler finds by the session's id.
"""

import functools
import itertools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.tools import Tool, ToolInvocation, tool
from exeunt.actors.tools.arguments import ANY_OBJECT, Binder, Unfit, WholeObject
from exeunt.wire.messages.sessions import ToolDeclaration

Handler = Callable[[dict[str, Any], ToolInvocation], Awaitable[Any]]

KINDS_AT_ONCE = 1024
"""Different declarations that are remembered: kinds of agents, not sessions."""

MOST_TOOLS = 1000
"""Of one client for one session. Providers take 128."""

MOST_PROBLEMS = 5
"""Violations of a schema that the model is told of at once."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)

_declarations = msgspec.json.Decoder(list[ToolDeclaration] | None)


@attrs.frozen(eq=False)
class ClientTools:
    """The tools of one declaration."""

    by_name: Mapping[str, Tool[..., Any]]


NO_TOOLS = ClientTools({})


class ToolFactory:
    """Makes the tools of one server."""

    def __init__(self, handler: Handler, timeout: float) -> None:
        self._handler = handler
        self._timeout = timeout
        self._made = functools.lru_cache(KINDS_AT_ONCE)(self._make)

    def tools(self, declared: msgspec.Raw) -> ClientTools:
        """Return the tools of a declaration, a JSON array. Raises `InvalidConfiguration`."""
        text = bytes(declared)
        return self._made(text) if text and text != b"null" and text != b"[]" else NO_TOOLS

    def _make(self, text: bytes) -> ClientTools:
        try:
            declared = _declarations.decode(text) or ()
        except msgspec.ValidationError as error:
            raise InvalidConfiguration(f"tools: {error}") from error
        if len(declared) > MOST_TOOLS:
            raise InvalidConfiguration(f"{len(declared)} tools are declared; at most {MOST_TOOLS} may be")
        made: dict[str, Tool[..., Any]] = {}
        for declaration in declared:
            # The first of one name counts.
            if declaration.name not in made:
                made[declaration.name] = self._tool(declaration)
        return ClientTools(made)

    def _tool(self, declared: ToolDeclaration) -> Tool[..., Any]:
        if not _NAME.fullmatch(declared.name):
            raise InvalidConfiguration(
                f'externalToolDefinitions: tool name "{declared.name:.80}" contains invalid characters: '
                "use letters, digits, _ and -"
            )
        schema = declared.parameters or {"type": "object", "properties": {}}
        made: Tool[..., Any] = tool(
            declared.name,
            description=declared.description,
            parameters=schema,
            is_terminal=bool(declared.isTerminal),
            skip_permission=bool(declared.skipPermission),
            defer=declared.defer,
            timeout=self._timeout,
            # Never called twice by it: see `Asking.call`, which waits for the answer to the first request.
            idempotent=True,
        )(self._handler)
        return attrs.evolve(made, binder=_binder(declared.name, schema))


def _binder(name: str, schema: dict[str, Any]) -> Binder:
    """Return what checks arguments against *schema*. It fetches nothing, and no pattern of it can run long."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(
            schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InvalidConfiguration(
            f"tool {name!r}: its parameters are no JSON Schema: {str(error)[:500]}"
        ) from error

    def decode(text: str) -> WholeObject:
        value = ANY_OBJECT.decode(text)
        if not validator.is_valid(value):
            problems = itertools.islice(validator.iter_errors(value), MOST_PROBLEMS)
            raise Unfit("; ".join(_placed(problem) for problem in problems))
        return WholeObject(value)

    return Binder(name, decode)


def _placed(error: Any) -> str:
    place = ".".join(str(step) for step in error.instance_path)
    return f"{place}: {error.message}" if place else str(error.message)


def chosen(names: Iterable[str], available: list[str] | None, excluded: list[str] | None) -> set[str]:
    """Return those of a client's own tools that its filters let through.

    A filter names a tool, with or without `custom:` before it, or all with `*`; filters for tools of other sources
    concern none of them. An empty list of available tools lets all through, as the protocol has it.
    """
    kept = set(names)
    wanted = [pattern for pattern in available or () if _is_custom(pattern)]
    if wanted:
        kept = {name for name in kept if any(_matches(pattern, name) for pattern in wanted)}
    return {name for name in kept if not any(_matches(pattern, name) for pattern in excluded or ())}


def _is_custom(pattern: str) -> bool:
    source, separator, _ = pattern.partition(":")
    return not separator or source == "custom"


def _matches(pattern: str, name: str) -> bool:
    if not _is_custom(pattern):
        return False
    bare = pattern.removeprefix("custom:")
    return bare in ("*", name)
