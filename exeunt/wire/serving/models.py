"""The models of sessions: what the client says of its provider, or the server's own."""

from collections.abc import Mapping
from typing import Any

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient
from exeunt.models import model_from_provider
from exeunt.models.openai.listing import model_names
from exeunt.wire.messages.sessions import ProviderConfig, SessionConfig


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

    def choose(self, config: SessionConfig) -> tuple[str, ModelClient]:
        """Return the name of the session's model and its client. Raises `InvalidConfiguration`."""
        if config.models:
            return self._registered(config)
        if config.provider is not None:
            name = config.provider.modelId or config.model or self.default.model
            if name is None:
                raise InvalidConfiguration("a session with a provider of its own must name its model")
            shown = config.model or name
            return shown, self._client(config.provider.wireModel or name, config.provider, config)
        return self._default(config)

    def _registered(self, config: SessionConfig) -> tuple[str, ModelClient]:
        providers = {provider.name: provider for provider in config.providers or ()}
        models = config.models or []
        for model in models:
            shown = f"{model.provider}/{model.id}"
            if config.model in (None, model.id, shown):
                provider = providers.get(model.provider)
                if provider is None:
                    raise InvalidConfiguration(
                        f"model {model.id!r} names the provider {model.provider!r}, which is not among `providers`"
                    )
                return config.model or shown, self._client(model.wireModel or model.id, provider, config)
        return self._default(config)

    def _default(self, config: SessionConfig) -> tuple[str, ModelClient]:
        default = self.default
        name = config.model or default.model
        if default.client is not None:
            return name or str(getattr(default.client, "model", "")), default.client
        if default.provider is None:
            raise InvalidConfiguration(
                "no model provider: give the session one (`provider`), or start the server with --provider or "
                "EXEUNT_PROVIDER_BASE_URL"
            )
        if name is None:
            raise InvalidConfiguration("no model: name one for the session, or start the server with --model")
        return name, model_from_provider(name, _with_effort(default.provider, config))

    @staticmethod
    def _client(name: str, provider: ProviderConfig, config: SessionConfig) -> ModelClient:
        if provider.hasBearerTokenProvider:
            raise InvalidConfiguration(
                "provider: tokens by callback are not served; give apiKey, bearerToken or headers"
            )
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
        return model_from_provider(name, _with_effort(wanted, config))


def _with_effort(provider: Mapping[str, Any], config: SessionConfig) -> Mapping[str, Any]:
    if config.reasoningEffort is None:
        return provider
    options = {**provider.get("options", {}), "reasoning_effort": config.reasoningEffort}
    return {**provider, "options": options}
