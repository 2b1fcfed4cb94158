"""What a session's clients choose while it lives: model, mode, name, options, tools, agents, permissions."""

from collections.abc import Iterable
from typing import Any, cast

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import SessionModeChanged, SessionModelChange, SessionTitleChanged
from exeunt.actors.permissions import PermissionRequest
from exeunt.actors.session import PendingRequest
from exeunt.wire.connection import Connection
from exeunt.wire.events.calls import approval
from exeunt.wire.messages import settings as se
from exeunt.wire.messages.sessions import CustomAgent, OneSession, ProviderConfig, SessionConfig
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving import opening
from exeunt.wire.serving.client import Client
from exeunt.wire.serving.pricing import priced
from exeunt.wire.serving.served import Served

LONGEST_NAME = 200
"""Characters of a session's name: a line of a list."""


def _find(connection: Connection, session_id: str) -> Served:
    return connection.hub.find(connection.owner, session_id)


# --- The model ---------------------------------------------------------------------------------------------


def current_model(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say which model the session has."""
    return _model_state(_find(connection, params.sessionId))


async def switch_model(connection: Connection, params: se.SwitchModel) -> dict[str, Any]:
    """Let the session go on with another model, from its next request on."""
    served = _find(connection, params.sessionId)
    before = served.model
    if not params.modelId.strip():
        raise RpcError(FAILED, "a model must be named")
    # What was said of the model before does not hold for another one.
    config = attrs.evolve(served.config, model=params.modelId, modelCapabilities=params.modelCapabilities)
    if params.reasoningEffort is not None:
        config = attrs.evolve(config, reasoningEffort=params.reasoningEffort)
    await _become(connection, served, config)
    served.record(SessionModelChange, served.model, before, served.config.reasoningEffort or "")
    return {"modelId": served.model, "deferred": False, "modelState": _model_state(served)}


async def set_reasoning_effort(connection: Connection, params: se.SetReasoningEffort) -> dict[str, Any]:
    """Say how much the model thinks, from the next request on."""
    served = _find(connection, params.sessionId)
    await _change(connection, served, reasoningEffort=params.reasoningEffort)
    return {"reasoningEffort": params.reasoningEffort}


async def list_models(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the models that the session may switch to."""
    served = _find(connection, params.sessionId)
    called = {f"{model.provider}/{model.id}": model.name for model in served.config.models or ()}
    names = await model_names(connection, served)
    prices = connection.hub.handlers.models.book.prices
    return {
        "list": [{"id": name, "name": called.get(name) or name, **priced(prices, name)} for name in names]
    }


async def model_names(connection: Connection, served: Served) -> list[str]:
    """Return the models that a session may switch to. Raises `InvalidConfiguration`, `ModelError`."""
    registered = [f"{model.provider}/{model.id}" for model in served.config.models or ()]
    if registered or served.config.provider is not None:
        return registered or [served.model]
    return await connection.hub.handlers.models.names()


async def _change(connection: Connection, served: Served, **changes: Any) -> None:
    """Let the session run with other options; those that are `None` stay."""
    given = {name: value for name, value in changes.items() if value is not None}
    await _become(connection, served, attrs.evolve(served.config, **given))


async def _become(connection: Connection, served: Served, config: SessionConfig) -> None:
    before, served.config = served.config, config
    try:
        await opening.know_prices(connection.hub, served)
        await opening.reconfigure(connection.hub, served)
    except BaseException:
        served.config = before
        raise


def _model_state(served: Served) -> dict[str, Any]:
    state = {"modelId": served.model}
    if served.config.reasoningEffort is not None:
        state["reasoningEffort"] = served.config.reasoningEffort
    return state


# --- Mode and name -----------------------------------------------------------------------------------------


def get_mode(connection: Connection, params: OneSession) -> str:
    """Say which mode the session is in."""
    return _find(connection, params.sessionId).mode


def set_mode(connection: Connection, params: se.SetMode) -> dict[str, Any]:
    """Note another mode, for the clients: nothing of the turns depends on it."""
    served = _find(connection, params.sessionId)
    before = served.mode
    if params.expectedMode not in (None, before):
        return {"status": "conflict", "modelChanged": False, "modeApplied": False}
    if params.mode == before:
        return {"status": "unchanged", "modelChanged": False, "modeApplied": True}
    served.record(SessionModeChanged, before, params.mode)
    served.lifecycle("session.updated")
    return {"status": "applied", "modelChanged": False, "modeApplied": True}


def get_name(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say what the session is called."""
    return {"name": _find(connection, params.sessionId).title or None}


def set_name(connection: Connection, params: se.SetName) -> None:
    """Give the session a name."""
    rename(_find(connection, params.sessionId), params.name)


def set_name_if_none(connection: Connection, params: se.SetAutoName) -> dict[str, Any]:
    """Give a session a name that has none."""
    served = _find(connection, params.sessionId)
    if served.title or not params.summary.strip():
        return {"applied": False}
    rename(served, params.summary)
    return {"applied": True}


def rename(served: Served, name: str) -> None:
    """Give a session a name. Raises `RpcError`."""
    title = name.strip()
    if not title:
        raise RpcError(FAILED, "a session's name must not be empty, nor only white space")
    if len(title) > LONGEST_NAME:
        raise RpcError(FAILED, f"a session's name has at most {LONGEST_NAME} characters, not {len(title)}")
    served.record(SessionTitleChanged, title)
    served.lifecycle("session.updated")


# --- Options and tools -------------------------------------------------------------------------------------


async def update_options(connection: Connection, params: se.UpdateOptions) -> dict[str, Any]:
    """Change some of what the session was made with."""
    served = _find(connection, params.sessionId)
    fields = attrs.asdict(params, recurse=False)
    del fields["sessionId"]
    fields["modelCapabilities"] = fields.pop("modelCapabilitiesOverrides")
    limits = fields.pop("sessionLimits")
    if limits is not se.NOT_SAID:
        if limits is not None and not isinstance(limits, dict):
            raise InvalidConfiguration("sessionLimits must be an object, or null")
        fields["sessionLimits"] = cast("dict[str, Any]", limits or {})
    changes = {name: value for name, value in fields.items() if value is not None}
    client = served.clients.get(connection)
    before = None if client is None else client.config
    _must_be_there_for_tokens(client, [params.provider])
    if client is not None:
        # Filters are those of the client whose tools they let through, a provider of who gets its tokens.
        own = ("availableTools", "excludedTools", "provider")
        client.config = attrs.evolve(
            client.config, **{key: value for key, value in changes.items() if key in own}
        )
    read_before = served.instructions
    try:
        if read_before is None and params.skipCustomInstructions is False:
            again = attrs.evolve(served.config, skipCustomInstructions=False)
            served.instructions = await opening.read_instructions(connection.hub, again)
        await _change(connection, served, **changes)
    except BaseException:
        served.instructions = read_before
        if client is not None and before is not None:
            client.config = before
        raise
    if served.instructions is not read_before:
        served.tell_problems()
    if "sessionLimits" in changes:
        opening.limit_credits(connection.hub, served)
    return {"success": True}


async def add_provider(connection: Connection, params: se.AddProvider) -> dict[str, Any]:
    """Let the session choose among more models."""
    served = _find(connection, params.sessionId)
    config = served.config
    providers = [*(config.providers or ()), *(params.providers or ())]
    names = {provider.name for provider in providers}
    for model in params.models or ():
        if model.provider not in names:
            raise InvalidConfiguration(f"model {model.id!r} names the unknown provider {model.provider!r}")
    models = [*(config.models or ()), *(params.models or ())]
    client = served.clients.get(connection)
    _must_be_there_for_tokens(client, params.providers or ())
    before = None if client is None else client.config
    if client is not None:
        own = [*(client.config.providers or ()), *(params.providers or ())]
        client.config = attrs.evolve(client.config, providers=own)
    try:
        await _change(connection, served, providers=providers, models=models)
    except BaseException:
        if client is not None and before is not None:
            client.config = before
        raise
    return {
        "models": [
            {"id": f"{model.provider}/{model.id}", "name": model.name or model.id}
            for model in params.models or ()
        ]
    }


def _must_be_there_for_tokens(client: Client | None, providers: Iterable[ProviderConfig | None]) -> None:
    """Refuse a provider whose tokens nobody could be asked for."""
    if client is None and any(one is not None and one.hasBearerTokenProvider for one in providers):
        raise RpcError(FAILED, "only a client that is attached to the session can be asked for tokens")


def get_endpoint(connection: Connection, params: se.GetEndpoint) -> dict[str, Any]:
    """Say where the session's model is, of a provider that the session's client has given."""
    config = _find(connection, params.sessionId).config
    provider = config.provider
    if provider is None:
        name = params.modelId or config.model
        wanted = {
            model.provider
            for model in config.models or ()
            if name in (model.id, f"{model.provider}/{model.id}")
        }
        provider = next((one for one in config.providers or () if one.name in wanted), None)
    if provider is None or provider.baseUrl is None:
        raise RpcError(FAILED, "the session has the server's own model provider, whose place is not told")
    about: dict[str, Any] = {
        "type": provider.type or "openai",
        "baseUrl": provider.baseUrl,
        "headers": provider.headers or {},
    }
    if provider.type != "anthropic":
        about["wireApi"] = provider.wireApi or "completions"
        if provider.transport is not None:
            about["transport"] = provider.transport
    if provider.apiKey is not None:
        about["apiKey"] = provider.apiKey
    return about


async def set_tools(connection: Connection, params: se.SetTools) -> dict[str, Any]:
    """Give the session other tools of this client."""
    served = _find(connection, params.sessionId)
    client = served.clients.get(connection)
    if client is None:
        raise RpcError(FAILED, "only a client that is attached to the session has tools in it")
    before = client.tools
    client.tools = connection.hub.tools.tools(msgspec.Raw(msgspec.json.encode(params.tools)))
    try:
        await opening.reconfigure(connection.hub, served)
    except BaseException:
        client.tools = before
        raise
    return {}


def tool_metadata(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the tools that the model is given."""
    actor = connection.hub.host.find(_find(connection, params.sessionId).session_id)
    tools = () if actor is None else tuple(actor.options.tools)
    return {
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.definition.parameters,
                "deferLoading": False,
            }
            for tool in tools
        ]
    }


def tools_are_valid(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say that the tools are ready: they were checked when they were declared."""
    _find(connection, params.sessionId)
    return {}


# --- Custom agents -----------------------------------------------------------------------------------------


def list_agents(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the session's custom agents."""
    return {"agents": [_agent(one) for one in _find(connection, params.sessionId).config.customAgents or ()]}


def current_agent(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say which of them the session is."""
    config = _find(connection, params.sessionId).config
    chosen = next((one for one in config.customAgents or () if one.name == config.agent), None)
    return {"agent": None if chosen is None else _agent(chosen)}


async def select_agent(connection: Connection, params: se.SelectAgent) -> dict[str, Any]:
    """Let the session go on as one of its agents: with its prompt, and its tools only."""
    served = _find(connection, params.sessionId)
    chosen = next((one for one in served.config.customAgents or () if one.name == params.name), None)
    if chosen is None:
        raise RpcError(FAILED, f"the session has no agent named {params.name!r}")
    await _change(connection, served, agent=chosen.name)
    about = {
        "agentName": chosen.name,
        "agentDisplayName": chosen.displayName or chosen.name,
        "tools": chosen.tools,
    }
    served.notify("subagent.selected", about)
    return {"agent": _agent(chosen)}


async def deselect_agent(connection: Connection, params: OneSession) -> None:
    """Let the session go on as itself."""
    served = _find(connection, params.sessionId)
    await _become(connection, served, attrs.evolve(served.config, agent=None))
    served.notify("subagent.deselected", {})


def _agent(agent: CustomAgent) -> dict[str, Any]:
    about = {
        "id": agent.name,
        "name": agent.name,
        "displayName": agent.displayName or agent.name,
        "description": agent.description or "",
    }
    if agent.model is not None:
        about["model"] = agent.model
    return about


# --- Permissions -------------------------------------------------------------------------------------------


async def set_approve_all(connection: Connection, params: se.SetApproveAll) -> dict[str, Any]:
    """Approve every call without a question, or ask again."""
    await _approve_all(connection, _find(connection, params.sessionId), params.enabled)
    return {"success": True}


async def set_permission_mode(connection: Connection, params: se.SetPermissionMode) -> dict[str, Any]:
    """The same; there is nobody here who could assist."""
    served = _find(connection, params.sessionId)
    if params.mode == "assisted":
        raise RpcError(
            FAILED, "approvals are given by clients, or all at once; there is no model that assists"
        )
    await _approve_all(connection, served, params.mode == "allow-all")
    return {"success": True, "mode": params.mode}


def get_permission_mode(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether calls are approved without a question."""
    return {"mode": "allow-all" if _find(connection, params.sessionId).approves_all else "manual"}


async def _approve_all(connection: Connection, served: Served, enabled: bool) -> None:
    before, served.approves_all = served.approves_all, enabled
    try:
        await opening.reconfigure(connection.hub, served)
    except BaseException:
        served.approves_all = before
        raise


def reset_approvals(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Forget which tools were approved for the session."""
    actor = connection.hub.host.find(_find(connection, params.sessionId).session_id)
    if actor is not None:
        actor.approved_tools = None
    return {"success": True}


def pending_approvals(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the requests for approval that nobody has answered."""
    served = _find(connection, params.sessionId)
    return {
        "items": [
            {"requestId": pending.request_id, "request": _about(pending)}
            for pending in served.asking.open_requests("permission")
        ]
    }


def _about(pending: PendingRequest) -> dict[str, Any]:
    request = pending.request
    assert isinstance(request, PermissionRequest)
    return approval(
        request.tool_call_id,
        request.tool_name,
        request.tool_description,
        request.arguments,
        request.hook_message,
    )
