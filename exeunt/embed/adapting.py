"""Making a session's options fit a host that is embedded: each handler is wrapped into one that trio can run.

How one handler is wrapped is what the embeddings differ in; that it is done once, and what is left alone, is here.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from exeunt.actors.hooks import NO_HOOKS, Hook, Hooks
from exeunt.actors.options import SessionOptions
from exeunt.actors.permissions import approve_all
from exeunt.actors.tools import Tool, ToolSet
from exeunt.embed.marks import is_on_trio, runs_on_trio

AnyTool = Tool[..., Any]


class Adapter:
    """Wraps the handlers of sessions. One for each kind of host; it holds nothing of any host.

    What it makes has the mark of trio's own handlers, so it goes through as it is when it is given again.
    """

    def __init__(
        self, tool_handler: Callable[[AnyTool], Callable[..., Any]], hook: Callable[[Hook], Hook]
    ) -> None:
        """*tool_handler* returns what is to run in the place of a tool's handler; *hook* the same for any other."""
        self._tool_handler = tool_handler
        self._hook = hook
        # Sessions with the same tools go on sharing one set. A tool that was made does not hold the one it is made of.
        self._tools: WeakKeyDictionary[AnyTool, AnyTool] = WeakKeyDictionary()
        self._sets: WeakKeyDictionary[ToolSet, ToolSet] = WeakKeyDictionary()

    def options(self, options: SessionOptions) -> SessionOptions:
        """Return *options* with each handler wrapped; the same object if there is none."""
        tools, hooks = self._tool_set(options.tools), self._all_hooks(options.hooks)
        permission = options.on_permission_request
        if permission is not None and permission is not approve_all:  # which spares the question altogether
            permission = self.hook(permission)
        if tools is options.tools and hooks is options.hooks and permission is options.on_permission_request:
            return options
        return attrs.evolve(options, tools=tools, hooks=hooks, on_permission_request=permission)

    def hook(self, handler: Hook) -> Hook:
        """Return what is to run in the place of a hook, or of a permission handler."""
        return handler if is_on_trio(handler) else runs_on_trio(self._hook(handler))

    def _all_hooks(self, hooks: Hooks) -> Hooks:
        if hooks is NO_HOOKS:
            return hooks
        given: dict[str, Hook | None] = attrs.asdict(hooks, recurse=False)
        return Hooks(**{name: hook and self.hook(hook) for name, hook in given.items()})

    def _tool_set(self, tools: ToolSet) -> ToolSet:
        made = self._sets.get(tools)
        if made is None:
            made = ToolSet([self._tool(tool) for tool in tools])
            if list(made) == list(tools):
                return tools  # to keep it as its own value would keep it for ever
            self._sets[tools] = made
        return made

    def _tool(self, tool: AnyTool) -> AnyTool:
        if is_on_trio(tool.handler):
            return tool
        made = self._tools.get(tool)
        if made is None:
            made = self._tools[tool] = tool.adapted(runs_on_trio(self._tool_handler(tool)))
        return made
