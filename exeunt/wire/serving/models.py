"""The models of sessions: what the client says of its provider, or the server's own."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import (
    ModelClient,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
)
from exeunt.actors.prices import Prices, price_of
from exeunt.configuration import priced
from exeunt.models import default_base_url, model_entries, model_from_provider
from exeunt.models.http.urls import parse_endpoint
from exeunt.wire.messages.sessions import ModelConfig, ProviderConfig, SessionConfig
from exeunt.wire.serving.carrying import Carrier
from exeunt.wire.serving.catalogue import Catalogue, Catalogued, api_of, fetched
from exeunt.wire.serving.client import Peer
from exeunt.wire.serving.pricing import PriceBook
from exeunt.wire.serving.request_headers import WithHeaders
from exeunt.wire.serving.tokens import WithToken
from exeunt.wire.serving.vision import WithSupport, support_of

if TYPE_CHECKING:
    from exeunt.wire.serving.hub import Hub
    from exeunt.wire.serving.served import Served

CARRIED = "https://api.githubcopilot.com"
"""Where requests go that a client sends, and that name no other place: what the client's handler expects."""

OF_THE_CLIENT: Mapping[str, Any] = {"type": "openai", "base_url": CARRIED}

NO_PROVIDER = (
    "no model provider: give the session one (`provider`), or start the server with --provider or "
    "EXEUNT_PROVIDER_BASE_URL"
)

NO_NAME = "no model: name one for the session, or start the server with --model or EXEUNT_PROVIDER_MODEL"


class NoModel:
    """In the place of a model where nobody has said which.

    A session can be made, looked at and configured without one; a message to it ends with an error that says so.
    """

    provider = ""

    def __init__(self, model: str, why: str) -> None:
        self.model = model
        self._why = why

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer nothing. Raises `ModelError`."""
        await trio.lowlevel.checkpoint()
        raise ModelError(ModelErrorKind.AUTHENTICATION, self._why)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer nothing. Raises `ModelError`."""
        yield await self.complete(request)


@attrs.frozen(kw_only=True)
class DefaultProvider:
    """Where the models are of sessions whose client names no provider."""

    model: str | None = None
    """The model of sessions that name none."""
    provider: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """As for `create_session`; `None`: each session must bring its own."""
    client: ModelClient | None = None
    """A model in this process, for all sessions that bring none: for tests and programs."""
    prices: Prices = attrs.field(default=None, converter=priced)
    """What calls cost, in credits; `"*"` is any other model. They win over those that the provider tells."""
    auto_model: str | None = None
    """The model with which sessions of this provider may go on when it limits their own."""
    auto_client: ModelClient | None = None
    """That model in this process, beside *client*: for tests and programs."""


class Models:
    """Finds the model of each session."""

    def __init__(self, default: DefaultProvider) -> None:
        self.default = default
        self.book = PriceBook(default.prices)
        """What the calls of all models cost."""

    async def entries(self) -> list[dict[str, Any]]:
        """Return the models that the server's own provider has, or says that it has, each with its `id`.

        What it says of prices is noted. Raises `InvalidConfiguration` without a provider, `ModelError` when it cannot
        be asked.
        """
        default = self.default
        if default.client is not None:
            await trio.lowlevel.checkpoint()
            return [{"id": default.model or getattr(default.client, "model", "") or "default"}]
        if default.provider is None:
            raise InvalidConfiguration("Not authenticated. Please authenticate first.")
        entries = await model_entries(default.provider)
        self.book.learn(entries)
        return entries

    async def learn_prices(self, config: SessionConfig, overruled: str | None) -> None:
        """Ask the provider what a session's model costs, where that is not known, and it was not asked just now."""
        default = self.default
        if default.provider is None or default.client is not None:
            return
        if price_of(self.book.prices, self._named(config, overruled)) is None:
            await self.book.fill(self.entries)

    def _named(self, config: SessionConfig, overruled: str | None) -> str:
        """Return what the provider calls a session's model, as `choose` finds it."""
        wanted = _wanted(config, overruled)
        registered = _registered(config, wanted)
        if registered is not None:
            return registered.wireModel or registered.id
        own = None if config.models else config.provider
        named = None if own is None else own.wireModel or own.modelId
        return named or wanted or self.default.model or ""

    def auto(self, served: "Served", current: str) -> ModelClient | None:
        """Return the model with which a session may go on at a limit; `None` where there is no other."""
        default = self.default
        name = default.auto_model
        config = served.config
        if name is None or name == current or config.models or config.provider is not None:
            # Where a client brings its own provider, its own account is at a limit, and another's is not to pay.
            return None
        if default.client is not None:
            return default.auto_client
        client = self._default(served, name)[1]
        return client if served.headers is None else WithHeaders(client, served.headers)

    def choose(self, served: "Served") -> tuple[str, ModelClient]:
        """Return the name of the session's model and its client. Raises `InvalidConfiguration`."""
        name, client = self._chosen(served)
        support = support_of(served.config, name)
        if support is not None:
            client = WithSupport(client, support)
        return name, client if served.headers is None else WithHeaders(client, served.headers)

    def _chosen(self, served: "Served") -> tuple[str, ModelClient]:
        config = served.config
        if config.models:
            return self._of_several(served)
        if config.provider is not None:
            wanted = _wanted(config, served.overruled)
            name = config.provider.modelId or wanted or self.default.model
            if name is None:
                raise InvalidConfiguration("a session with a provider of its own must name its model")
            shown = wanted or name
            return shown, self._client(served, config.provider.wireModel or name, config.provider)
        return self._default(served)

    def _of_several(self, served: "Served") -> tuple[str, ModelClient]:
        config = served.config
        wanted = _wanted(config, served.overruled)
        model = _registered(config, wanted)
        if model is None:
            return self._default(served)
        provider = next((one for one in config.providers or () if one.name == model.provider), None)
        if provider is None:
            raise InvalidConfiguration(
                f"model {model.id!r} names the provider {model.provider!r}, which is not among `providers`"
            )
        return wanted or shown_name(model), self._client(served, model.wireModel or model.id, provider)

    def _default(self, served: "Served", wanted: str | None = None) -> tuple[str, ModelClient]:
        default = self.default
        name = wanted or _wanted(served.config, served.overruled) or default.model
        if default.client is not None:
            if name is not None and name == default.auto_model and default.auto_client is not None:
                return name, default.auto_client
            return name or str(getattr(default.client, "model", "")), default.client
        provider = default.provider
        if provider is None:
            if served.carrier is None:
                return name or "", NoModel(name or "", NO_PROVIDER)
            # The client that sends the requests knows where they go.
            provider = OF_THE_CLIENT
        if name is None:
            return "", NoModel("", NO_NAME)
        if served.carrier is not None and provider["type"] == "openai" and "wire_api" not in provider:
            return name, self._catalogued(served, served.carrier, name, provider)
        return name, self._made(served, name, provider)

    def _catalogued(
        self, served: "Served", peer: Peer, name: str, provider: Mapping[str, Any]
    ) -> ModelClient:
        """Return a model that speaks the API which its place says, and that the client is asked for."""
        self._made(served, name, provider)  # what is wrong with it is said now
        capi = served.config.capi
        sockets = capi is None or capi.enableWebSocketResponses is not False
        return Catalogued(
            name,
            partial(catalogue_of, served.hub, peer, provider, served.session_id),
            lambda endpoints: self._made(
                served, name, speaking(provider, api_of(endpoints, sockets=sockets)), peer
            ),
        )

    def _client(self, served: "Served", name: str, provider: ProviderConfig) -> ModelClient:
        wanted = azure(provider, name) if provider.type == "azure" else plain(provider)
        if not provider.hasBearerTokenProvider:
            return self._made(served, name, wanted)
        self._made(served, name, wanted)  # what is wrong with the rest is said now
        return WithToken(
            name,
            wanted["type"],
            partial(served.hub.token, provider),
            lambda token: self._made(served, name, {**wanted, token_key(wanted): token}),
        )

    def _made(
        self, served: "Served", name: str, provider: Mapping[str, Any], peer: Peer | None = None
    ) -> ModelClient:
        """Return the client of a model; *peer* sends its requests, or else whichever client does now."""
        config = served.config
        agent = user_agent(config.clientName)
        if agent is not None:
            provider = {**provider, "headers": {"user-agent": agent, **(provider.get("headers") or {})}}
        anthropic = provider["type"] == "anthropic"
        if anthropic and config.enableCitations:
            provider = {**provider, "citations": True}
        if config.reasoningEffort is not None and anthropic:
            provider = {**provider, "effort": config.reasoningEffort}
        elif not anthropic:
            provider = {
                **provider,
                "options": {**provider.get("options", {}), **_reasoning(config, provider)},
            }
        peer = peer or served.carrier
        if peer is None:
            return model_from_provider(name, provider)
        return model_from_provider(
            name, provider, http=_carrier(served.hub, peer, provider, served.session_id)
        )


def _carrier(hub: "Hub", peer: Peer, provider: Mapping[str, Any], session_id: str) -> Any:
    origin, _ = parse_endpoint(provider.get("base_url") or default_base_url(provider), "")
    return Carrier(hub, peer, session_id, origin)


async def catalogue_of(
    hub: "Hub", peer: Peer, provider: Mapping[str, Any], session_id: str = ""
) -> Catalogue:
    """Return what the place of a client's models says of them, by way of the client. Raises `ModelError`."""
    known = hub.catalogues.get(peer)
    if known is None:
        base_url = provider.get("base_url") or default_base_url(provider)
        known = await fetched(_carrier(hub, peer, provider, session_id), base_url, provider)
        hub.catalogues[peer] = known
    return known


async def names_for(hub: "Hub", peer: Peer) -> list[str]:
    """Return the names of the models that a client may choose among.

    Those of the server's own provider; without one, those of the place that the client sends requests to. Raises
    `InvalidConfiguration` where there is neither, `ModelError` where it does not say.
    """
    models = hub.handlers.models
    if models.default.provider is None and models.default.client is None and peer.carries_requests:
        found = await catalogue_of(hub, peer, OF_THE_CLIENT)
        if not found:
            raise ModelError(
                ModelErrorKind.NOT_FOUND, f"{CARRIED}/models names no model to the client that asks it"
            )
        return list(found)
    return [entry["id"] for entry in await models.entries()]


def _reasoning(config: SessionConfig, provider: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say how much a model is to reason, under the names of the provider's API."""
    effort, summary = config.reasoningEffort, config.reasoningSummary
    if provider.get("wire_api") != "responses":
        return {} if effort is None else {"reasoning_effort": effort}
    given: dict[str, Any] = dict(provider.get("options", {}).get("reasoning") or {})
    if effort is not None:
        given["effort"] = effort
    if summary is not None and summary != "none":
        given["summary"] = summary
    return {"reasoning": given} if given else {}


def _wanted(config: SessionConfig, overruled: str | None) -> str | None:
    """Return the model that the session's custom agent has, or else the one that was chosen for the session.

    The agent named *overruled* had another one chosen for it.
    """
    agent = next((one for one in config.customAgents or () if one.name == config.agent), None)
    return (None if agent is None or agent.name == overruled else agent.model) or config.model


def _registered(config: SessionConfig, wanted: str | None) -> ModelConfig | None:
    """Return the first model that is wanted, of those that clients have brought for the session."""
    return next((one for one in config.models or () if wanted in (None, one.id, shown_name(one))), None)


def shown_name(model: ModelConfig) -> str:
    """Return the name that clients see of a model that they have brought."""
    return f"{model.provider}/{model.id}"


def plain(provider: ProviderConfig) -> dict[str, Any]:
    """Return what a client says of its provider, as `model_from_provider` takes it."""
    wanted: dict[str, Any] = {"type": provider.type or "openai"}
    if provider.baseUrl is not None:
        wanted["base_url"] = provider.baseUrl
    if provider.type == "anthropic" and provider.maxOutputTokens is not None:
        wanted["max_tokens"] = provider.maxOutputTokens
    if provider.bearerToken:
        wanted[token_key(wanted)] = provider.bearerToken
    elif provider.apiKey:
        wanted["api_key"] = provider.apiKey
    if provider.headers:
        wanted["headers"] = provider.headers
    return wanted if provider.type == "anthropic" else {**wanted, **_wire_api(provider)}


def _wire_api(provider: ProviderConfig) -> dict[str, Any]:
    """Return which API a provider speaks, and how. Raises `InvalidConfiguration`."""
    if provider.transport == "websockets" and provider.wireApi != "responses":
        raise InvalidConfiguration("provider: transport 'websockets' is for wireApi 'responses'")
    wanted: dict[str, Any] = {}
    if provider.wireApi is not None:
        wanted["wire_api"] = provider.wireApi
    if provider.transport is not None and provider.wireApi == "responses":
        wanted["transport"] = provider.transport
    if provider.maxOutputTokens is not None and provider.wireApi == "responses":
        wanted["options"] = {"max_output_tokens": provider.maxOutputTokens}
    return wanted


def speaking(provider: Mapping[str, Any], api: Mapping[str, Any]) -> dict[str, Any]:
    """Return a provider of type `openai` as what its catalogue says that it is."""
    if api.get("type") != "anthropic":
        return {**provider, **api}
    # The place is the same, and so is the key: other APIs of one place do not have keys of their own.
    alike = ("base_url", "headers", "proxy", "trust_env", "media")
    kept = {name: provider[name] for name in alike if name in provider}
    key = provider.get("api_key")
    return {**kept, **api, **({} if key is None else {"auth_token": key})}


def token_key(wanted: Mapping[str, Any]) -> str:
    """Return under which key a provider has a bearer token: Anthropic's keys are sent in another header."""
    return "auth_token" if wanted["type"] == "anthropic" else "api_key"


def azure(provider: ProviderConfig, deployment: str) -> dict[str, Any]:
    """Return the same for Azure: its own paths and its own header for a key. Raises `InvalidConfiguration`.

    With a version of the API the path names the deployment; without one it is the versionless path, and the model
    names it.
    """
    if provider.baseUrl is None:
        raise InvalidConfiguration("provider: type 'azure' needs the baseUrl of the resource")
    base = provider.baseUrl.rstrip("/")
    version = provider.azure.apiVersion if provider.azure is not None else None
    place = f"{base}/openai/v1"
    if version is not None:
        # The Responses API names the model in the request, not in the path.
        named = "" if provider.wireApi == "responses" else f"/deployments/{quote(deployment, safe='')}"
        place = f"{base}/openai{named}?api-version={quote(version, safe='')}"
    headers = dict(provider.headers or {})
    if provider.apiKey and not provider.bearerToken:
        headers.setdefault("api-key", provider.apiKey)
    wanted: dict[str, Any] = {"type": "openai", "base_url": place, "headers": headers}
    if provider.bearerToken:
        wanted["api_key"] = provider.bearerToken
    return {**wanted, **_wire_api(provider)}


def user_agent(client_name: str | None) -> str | None:
    """Return what providers are told of who calls; `None` where the client has no name that a header can hold."""
    name = (client_name or "").strip()
    return f"exeunt {name}" if name and name.isascii() and name.isprintable() else None
