"""Making a session's options fit a host that is embedded: each handler is wrapped into one that trio can run.

How one handler is wrapped is what the embeddings differ in; that it is done once, and what is left alone, is here.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from exeunt.actors.hooks import NO_HOOKS, Hook, Hooks
from exeunt.actors.marks import is_on_trio, runs_on_trio
from exeunt.actors.options import SessionOptions
from exeunt.actors.permissions import approve_all, leave_pending
from exeunt.actors.tools import Tool, ToolSet
from exeunt.policies.options import BothHooks

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
        given = (
            options.on_permission_request,
            options.on_user_input_request,
            options.on_session_limits_exhausted,
            options.on_auto_mode_switch_request,
        )
        asked = tuple(map(self._asked, given))
        if tools is options.tools and hooks is options.hooks and asked == given:
            return options
        permission, user_input, limits, switch = asked
        return attrs.evolve(
            options,
            tools=tools,
            hooks=hooks,
            on_permission_request=permission,
            on_user_input_request=user_input,
            on_session_limits_exhausted=limits,
            on_auto_mode_switch_request=switch,
        )

    def _asked(self, handler: Hook | None) -> Hook | None:
        # `approve_all` spares the question altogether, and is known by what it is.
        return handler if handler in (None, approve_all, leave_pending) else self.hook(handler)

    def hook(self, handler: Hook) -> Hook:
        """Return what is to run in the place of a hook, or of a permission handler."""
        if isinstance(handler, BothHooks):
            return handler.each(self.hook)
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
