"""The tools of one session."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ToolDefinition
from exeunt.actors.text import encodable
from exeunt.actors.tools.definition import Tool

# Names of tools have at most 64 characters; a longer one is shown as far as it helps to recognise it.
_LONGEST_SHOWN_NAME = 200


class ToolSet:
    """An immutable set of tools with unique names, in the order in which they were given.

    Sessions with the same tools should share one. Raises `InvalidConfiguration` for two tools of one name and
    for anything that is no `Tool`.
    """

    __slots__ = ("__weakref__", "_by_name", "definitions")

    definitions: tuple[ToolDefinition, ...]
    """The tools as they are sent to models."""

    def __init__(self, tools: Iterable[Tool[..., Any]] = ()) -> None:
        by_name: dict[str, Tool[..., Any]] = {}
        for candidate in cast("Iterable[object]", tools):
            if not isinstance(candidate, Tool):
                raise InvalidConfiguration(f"{candidate!r:.80} is no tool: decorate the function with @tool")
            entry = cast("Tool[..., Any]", candidate)
            if entry.name in by_name:
                raise InvalidConfiguration(
                    f"two tools have the name {entry.name!r}: give one of them another"
                )
            by_name[entry.name] = entry
        self._by_name = by_name
        self.definitions = tuple(entry.definition for entry in by_name.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._by_name)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._by_name)})"

    def find(self, name: str) -> Tool[..., Any] | None:
        """Return the tool that a model means by *name*, or `None`.

        Models put white space around names, and `functions.` before them. Both are removed where the rest is
        the name of a tool; nothing is matched more loosely than that.
        """
        found = self._by_name.get(name)
        if found is None:
            bare = name.strip()
            found = self._by_name.get(bare) or self._by_name.get(bare.removeprefix("functions."))
        return found

    def unknown_tool_text(self, name: str) -> str:
        """What the model is told when it calls a tool that does not exist, in the words that clients know."""
        shown = encodable(name)
        if len(shown) > _LONGEST_SHOWN_NAME:
            shown = shown[:_LONGEST_SHOWN_NAME] + "..."
        text = f"Tool '{shown}' does not exist."
        if self._by_name:
            text += f" Available tools that can be called are {', '.join(self._by_name)}."
        return text
