"""Putting the tools and hooks of a policy beside those of the host."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.hooks import Hook, Hooks
from exeunt.actors.tools import Tool, ToolSet
from exeunt.configuration import HOOK_NAMES


def tools_of(options: Mapping[str, Any]) -> tuple[Tool[..., Any], ...]:
    """Return the tools among the keywords of `create_session`."""
    given: Iterable[Tool[..., Any]] | ToolSet = options.get("tools", ())
    return tuple(given)


def with_hooks(options: Mapping[str, Any], hooks: Mapping[str, Hook]) -> dict[str, Any]:
    """Return the keywords of `create_session` with *hooks* behind those that are there.

    Both hooks of one name are called, the host's first. What the later one says counts, texts for the model are joined,
    and a denial or a block of the first spares the second.
    """
    chosen = dict(options)
    given = chosen.pop("hooks", None)
    if isinstance(given, Hooks):
        there: dict[str, Any] = {name: getattr(given, name) for name in HOOK_NAMES}
    elif given is None or isinstance(given, Mapping):
        there = dict(cast("Mapping[str, Any]", given or {}))
    else:
        raise InvalidConfiguration(f"hooks are Hooks or a mapping, not {given!r:.80}")
    for name in HOOK_NAMES:
        hook = chosen.pop(name, None)
        if hook is not None:
            there[name] = hook
    for name, hook in hooks.items():
        before = there.get(name)
        there[name] = hook if before is None else BothHooks(before, hook)
    return {**chosen, "hooks": {name: hook for name, hook in there.items() if hook is not None}}


@attrs.frozen
class BothHooks:
    """Two hooks of one name as one, for trio."""

    first: Hook
    second: Hook

    def each(self, change: Callable[[Hook], Hook]) -> "BothHooks":
        """Return the same with each hook changed: a host that is embedded wraps those that are not for trio."""
        return BothHooks(change(self.first), change(self.second))

    async def __call__(self, hook_input: Any, invocation: Any) -> Any:
        """Call the first, then the second with what the first has changed; return what both said."""
        one = await _called(self.first, hook_input, invocation)
        if one is None:
            return await _called(self.second, hook_input, invocation)
        if not isinstance(one, Mapping):
            return one
        output = cast("Mapping[str, Any]", one)
        if output.get("permission_decision") == "deny" or output.get("decision") == "block":
            return output
        changed = {
            field: output[name]
            for name, field in _CHANGES.items()
            if output.get(name) is not None and hasattr(hook_input, field)
        }
        two = await _called(self.second, attrs.evolve(hook_input, **changed), invocation)
        return _merged(output, two)


def _merged(output: Mapping[str, Any], two: Any) -> Any:
    if not isinstance(two, Mapping):
        return output if two is None else two
    merged = {**output, **cast("Mapping[str, Any]", two)}
    texts = [
        text for each in (output, cast("Mapping[str, Any]", two)) if (text := each.get("additional_context"))
    ]
    if texts:
        merged["additional_context"] = "\n\n".join(texts)
    return merged


_CHANGES = {
    "modified_prompt": "prompt",
    "modified_transformed_prompt": "transformed_prompt",
    "modified_args": "tool_args",
    "modified_result": "tool_result",
}
"""What a hook changes, by its name in the output: the next hook sees it so."""


async def _called(hook: Hook, hook_input: Any, invocation: Any) -> Any:
    output = hook(hook_input, invocation)
    return await output if inspect.isawaitable(output) else output
