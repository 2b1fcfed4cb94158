"""Which model a session has, which others there are, and where they are."""

from collections.abc import Iterable
from typing import Any

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import SessionModelChange
from exeunt.wire.connection import Connection
from exeunt.wire.messages import settings as se
from exeunt.wire.messages.sessions import OneSession, ProviderConfig
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.changing import change
from exeunt.wire.serving.client import Client
from exeunt.wire.serving.models import names_for, shown_name
from exeunt.wire.serving.pricing import priced
from exeunt.wire.serving.served import Served


def _find(connection: Connection, session_id: str) -> Served:
    return connection.hub.find(connection.owner, session_id)


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
    fields: dict[str, Any] = {"model": params.modelId, "modelCapabilities": params.modelCapabilities}
    if params.reasoningEffort is not None:
        fields["reasoningEffort"] = params.reasoningEffort
    await change(connection.hub, served, **fields)
    served.record(SessionModelChange, served.model, before, served.config.reasoningEffort or "")
    return {"modelId": served.model, "deferred": False, "modelState": _model_state(served)}


async def set_reasoning_effort(connection: Connection, params: se.SetReasoningEffort) -> dict[str, Any]:
    """Say how much the model thinks, from the next request on."""
    served = _find(connection, params.sessionId)
    await change(connection.hub, served, reasoningEffort=params.reasoningEffort)
    return {"reasoningEffort": params.reasoningEffort}


async def list_models(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the models that the session may switch to."""
    served = _find(connection, params.sessionId)
    called = {shown_name(model): model.name for model in served.config.models or ()}
    names = await model_names(connection, served)
    prices = connection.hub.handlers.models.book.prices
    return {
        "list": [{"id": name, "name": called.get(name) or name, **priced(prices, name)} for name in names]
    }


async def model_names(connection: Connection, served: Served) -> list[str]:
    """Return the models that a session may switch to. Raises `InvalidConfiguration`, `ModelError`."""
    registered = [shown_name(model) for model in served.config.models or ()]
    if registered or served.config.provider is not None:
        return registered or [served.model]
    return await names_for(connection.hub, served.carrier or connection)


def _model_state(served: Served) -> dict[str, Any]:
    state = {"modelId": served.model}
    if served.config.reasoningEffort is not None:
        state["reasoningEffort"] = served.config.reasoningEffort
    return state


# --- Providers of clients -----------------------------------------------------------------------------------


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
    must_be_there_for_tokens(client, params.providers or ())
    before = None if client is None else client.config
    if client is not None:
        own = [*(client.config.providers or ()), *(params.providers or ())]
        client.config = attrs.evolve(client.config, providers=own)
    try:
        await change(connection.hub, served, providers=providers, models=models)
    except BaseException:
        if client is not None and before is not None:
            client.config = before
        raise
    return {
        "models": [{"id": shown_name(model), "name": model.name or model.id} for model in params.models or ()]
    }


def must_be_there_for_tokens(client: Client | None, providers: Iterable[ProviderConfig | None]) -> None:
    """Refuse a provider whose tokens nobody could be asked for."""
    if client is None and any(one is not None and one.hasBearerTokenProvider for one in providers):
        raise RpcError(FAILED, "only a client that is attached to the session can be asked for tokens")


def get_endpoint(connection: Connection, params: se.GetEndpoint) -> dict[str, Any]:
    """Say where the session's model is, of a provider that the session's client has given."""
    config = _find(connection, params.sessionId).config
    provider = config.provider
    if provider is None:
        name = params.modelId or config.model
        wanted = {model.provider for model in config.models or () if name in (model.id, shown_name(model))}
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
