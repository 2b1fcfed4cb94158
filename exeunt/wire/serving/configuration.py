"""From what clients want of a session to the options that it runs with."""

from typing import TYPE_CHECKING, Any

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.hooks import Hooks
from exeunt.actors.options import SessionOptions
from exeunt.actors.permissions import PermissionHandler, approve_all
from exeunt.actors.prices import checked_credits
from exeunt.actors.state import Limits
from exeunt.actors.tools import Tool
from exeunt.actors.turn_requests import TurnRequestHandler
from exeunt.actors.user_input import UserInputHandler
from exeunt.configuration import build_options
from exeunt.wire.messages.sessions import CustomAgent, DefaultAgent, SessionConfig
from exeunt.wire.serving.client import Client
from exeunt.wire.serving.models import Models
from exeunt.wire.serving.system_message import system_message
from exeunt.wire.serving.turn_questions import can_be_asked_to_switch

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served

_FIELDS = tuple(field.name for field in attrs.fields(SessionConfig))


@attrs.frozen(kw_only=True)
class Handlers:
    """What all sessions of a server share."""

    models: Models
    on_permission_request: PermissionHandler
    on_user_input_request: UserInputHandler
    on_session_limits_exhausted: TurnRequestHandler
    on_auto_mode_switch_request: TurnRequestHandler
    ask_user: Tool[..., Any]
    """The tool with which a model asks the user of a client that shows questions."""
    hooks: Hooks
    base_message: str
    current_datetime: bool


def check(config: SessionConfig) -> None:
    """Refuse what this server does not do. Raises `InvalidConfiguration`."""
    if config.mcpServers:
        raise InvalidConfiguration("mcpServers are not served: give the session tools of the client")
    if config.cloud:
        raise InvalidConfiguration("cloud sessions are not served")
    credits_of(config)


def credits_of(config: SessionConfig) -> float | None:
    """Return what the session may spend, `None` without a limit. Raises `InvalidConfiguration`."""
    return checked_credits("sessionLimits.maxAiCredits", (config.sessionLimits or {}).get("maxAiCredits"))


def merged(before: SessionConfig, config: SessionConfig) -> SessionConfig:
    """Return what holds after another client has said what it wants: that, and for the rest what was said before."""
    said = {name: value for name in _FIELDS if (value := getattr(config, name)) is not None}
    if config.traceparent is not None:
        said["tracestate"] = config.tracestate  # the two belong together
    return attrs.evolve(before, **said)


def options_for(served: "Served", handlers: Handlers) -> tuple[str, SessionOptions]:
    """Return the name of the model, and the options. Raises `InvalidConfiguration`."""
    config = served.config
    attached = list(served.clients.values())
    name, model = handlers.models.choose(served)
    asks = any(client.config.requestPermission for client in attached)
    hooked = any(client.config.hooks for client in attached)
    agent = _agent(config)
    message = system_message(
        config.systemMessage, handlers.base_message, served.instructions_told(), served.rewritten
    )
    if agent is not None and agent.prompt:
        message = agent.prompt if message is None else f"{message}\n\n{agent.prompt}"
    approving = handlers.on_permission_request if asks else None
    asks_user = [client for client in attached if client.config.requestUserInput]
    tools = _tools(attached, agent, config.defaultAgent)
    if any(_lets_ask(client.config) for client in asks_user) and all(
        tool.name != handlers.ask_user.name for tool in tools
    ):
        # A tool of a client with this name takes its place.
        tools = (handlers.ask_user, *tools)
    most = credits_of(config)
    auto = handlers.models.auto(served, name)
    switches = auto is not None and can_be_asked_to_switch(served)
    options = build_options(
        model=model,
        tools=tools,
        system_message=message,
        on_permission_request=approve_all if served.approves_all else approving,
        on_user_input_request=handlers.on_user_input_request if asks_user else None,
        hooks=handlers.hooks if hooked else None,
        tenant=served.tenant,
        streaming=bool(config.streaming),
        media_limits=served.hub.options.media_limits,
        current_datetime=handlers.current_datetime,
        limits=None if most is None else Limits(credits=most),
        prices=handlers.models.book.prices,
        on_session_limits_exhausted=handlers.on_session_limits_exhausted,
        auto_model=auto,
        on_auto_mode_switch_request=handlers.on_auto_mode_switch_request if switches else None,
    )
    return name, options


def _lets_ask(config: SessionConfig) -> bool:
    """Whether the filters of a client let the tool through with which a model asks its user."""
    names = {"ask_user", "builtin:ask_user", "builtin:*", "*"}
    available = config.availableTools
    return (available is None or not names.isdisjoint(available)) and names.isdisjoint(
        config.excludedTools or ()
    )


def _agent(config: SessionConfig) -> CustomAgent | None:
    """Return the custom agent that the session is. Raises `InvalidConfiguration`."""
    if config.agent is None:
        return None
    for agent in config.customAgents or ():
        if agent.name == config.agent:
            return agent
    raise InvalidConfiguration(f"agent {config.agent!r} is not among customAgents")


def _tools(
    clients: list[Client], agent: CustomAgent | None, default: DefaultAgent | None
) -> tuple[Tool[..., Any], ...]:
    """The tools of all clients; of two with one name, that of the client that came last.

    Without a custom agent those are missing that only such an agent has.
    """
    only = None if agent is None else agent.tools
    without = default.excludedTools or () if agent is None and default is not None else ()
    made: dict[str, Tool[..., Any]] = {}
    for client in clients:
        made.update(client.offered_tools)
    return tuple(
        tool for name, tool in made.items() if (only is None or name in only) and name not in without
    )
