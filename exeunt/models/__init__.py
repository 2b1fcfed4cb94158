"""Doors to model APIs, one folder each. Each model is a `ModelClient` of `exeunt.actors.models`.

`model_from_provider` makes one from plain configuration, as it stands in a file or comes over the wire. What the
doors have in common is in `door`, and their HTTP client in `http`.
"""

from collections.abc import Mapping
from typing import Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient

__all__ = ["PROVIDER_TYPES", "model_entries", "model_from_provider", "model_names"]

PROVIDER_TYPES = ("openai",)
"""What `type` of a provider may be."""


def model_from_provider(model: str, provider: Mapping[str, Any]) -> ModelClient:
    """Return the client of *model* at *provider*. Nothing is connected yet.

    *provider* is for example `{"type": "openai", "base_url": ..., "api_key": ...}`; what else it may hold depends
    on its type. Called inside of a trio run, equal providers share their connections and equal (model, provider)
    pairs are one object, as long as a session holds it. Raises `InvalidConfiguration`.
    """
    if not isinstance(provider, Mapping):
        raise InvalidConfiguration(f"provider must be a mapping, not {type(provider).__name__}")
    # Each door is imported by who uses it.
    if provider.get("type") == "openai":
        from exeunt.models.openai.provider import openai_provider

        return openai_provider(model, provider)
    raise _unknown_type(provider)


async def model_names(provider: Mapping[str, Any]) -> list[str]:
    """Ask *provider*, as for `model_from_provider`, for the ids of its models, in its order.

    Waits 30 seconds at most. Raises `InvalidConfiguration`, `ModelError`.
    """
    if provider.get("type") == "openai":
        from exeunt.models.openai.provider import openai_model_names

        return await openai_model_names(provider)
    raise _unknown_type(provider)


async def model_entries(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same, with all that the provider's list says of each model, where that is more than its `id`."""
    if provider.get("type") == "openai":
        from exeunt.models.openai.provider import openai_model_entries

        return await openai_model_entries(provider)
    return [{"id": name} for name in await model_names(provider)]


def _unknown_type(provider: Mapping[str, Any]) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"provider type {provider.get('type')!r} is not known: use one of {', '.join(PROVIDER_TYPES)}"
    )
