"""The models of sessions: what the client says of its provider, or the server's own."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient
from exeunt.models import model_from_provider
from exeunt.models.http.urls import parse_endpoint
from exeunt.models.openai.listing import model_names
from exeunt.models.openai.model import DEFAULT_BASE_URL, OpenAIModel
from exeunt.wire.messages.sessions import ProviderConfig
from exeunt.wire.serving.carrying import Carrier
from exeunt.wire.serving.tokens import WithToken

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served

CARRIED = "https://api.githubcopilot.com"
"""Where requests go that a client sends, and that name no other place: what the client's handler expects."""


@attrs.frozen(kw_only=True)
class DefaultProvider:
    """Where the models are of sessions whose client names no provider."""

    model: str | None = None
    """The model of sessions that name none."""
    provider: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """As for `create_session`; `None`: each session must bring its own."""
    client: ModelClient | None = None
    """A model in this process, for all sessions that bring none: for tests and programs."""


class Models:
    """Finds the model of each session."""

    def __init__(self, default: DefaultProvider) -> None:
        self.default = default

    async def names(self) -> list[str]:
        """Return the names of the models that the server's own provider has, or says that it has.

        Raises `InvalidConfiguration` without a provider, `ModelError` when it cannot be asked.
        """
        default = self.default
        if default.client is not None:
            await trio.lowlevel.checkpoint()
            return [default.model or getattr(default.client, "model", "") or "default"]
        if default.provider is None:
            raise InvalidConfiguration("Not authenticated. Please authenticate first.")
        return await model_names(default.provider)

    def choose(self, served: "Served") -> tuple[str, ModelClient]:
        """Return the name of the session's model and its client. Raises `InvalidConfiguration`."""
        config = served.config
        if config.models:
            return self._registered(served)
        if config.provider is not None:
            name = config.provider.modelId or config.model or self.default.model
            if name is None:
                raise InvalidConfiguration("a session with a provider of its own must name its model")
            shown = config.model or name
            return shown, self._client(served, config.provider.wireModel or name, config.provider)
        return self._default(served)

    def _registered(self, served: "Served") -> tuple[str, ModelClient]:
        config = served.config
        providers = {provider.name: provider for provider in config.providers or ()}
        for model in config.models or ():
            shown = f"{model.provider}/{model.id}"
            if config.model in (None, model.id, shown):
                provider = providers.get(model.provider)
                if provider is None:
                    raise InvalidConfiguration(
                        f"model {model.id!r} names the provider {model.provider!r}, which is not among `providers`"
                    )
                return config.model or shown, self._client(served, model.wireModel or model.id, provider)
        return self._default(served)

    def _default(self, served: "Served") -> tuple[str, ModelClient]:
        default, config = self.default, served.config
        name = config.model or default.model
        if default.client is not None:
            return name or str(getattr(default.client, "model", "")), default.client
        provider = default.provider
        if provider is None:
            if served.carrier is None:
                raise InvalidConfiguration(
                    "no model provider: give the session one (`provider`), or start the server with --provider or "
                    "EXEUNT_PROVIDER_BASE_URL"
                )
            # The client that sends the requests knows where they go.
            provider = {"type": "openai", "base_url": CARRIED}
        if name is None:
            raise InvalidConfiguration("no model: name one for the session, or start the server with --model")
        return name, self._made(served, name, provider)

    def _client(self, served: "Served", name: str, provider: ProviderConfig) -> ModelClient:
        if provider.wireApi not in (None, "completions"):
            raise InvalidConfiguration(
                f"provider: wireApi {provider.wireApi!r} is not served; 'completions' is"
            )
        wanted: dict[str, Any] = {"type": provider.type or "openai"}
        if provider.baseUrl is not None:
            wanted["base_url"] = provider.baseUrl
        key = provider.bearerToken or provider.apiKey
        if key:
            wanted["api_key"] = key
        if provider.headers:
            wanted["headers"] = provider.headers
        if not provider.hasBearerTokenProvider:
            return self._made(served, name, wanted)
        self._made(served, name, wanted)  # what is wrong with the rest is said now
        return WithToken(
            name,
            partial(served.hub.token, provider.name or "default"),
            lambda token: self._made(served, name, {**wanted, "api_key": token}),
        )

    def _made(self, served: "Served", name: str, provider: Mapping[str, Any]) -> ModelClient:
        config = served.config
        if config.reasoningEffort is not None:
            options = {**provider.get("options", {}), "reasoning_effort": config.reasoningEffort}
            provider = {**provider, "options": options}
        peer = served.carrier
        if peer is None or provider["type"] != "openai":
            return model_from_provider(name, provider)
        origin, _ = parse_endpoint(provider.get("base_url") or DEFAULT_BASE_URL, "")
        carrier: Any = Carrier(served.hub, peer, served.session_id, origin)
        return OpenAIModel(
            name, **{key: value for key, value in provider.items() if key != "type"}, http=carrier
        )
