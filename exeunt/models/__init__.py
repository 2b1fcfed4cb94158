"""Doors to model APIs, one folder each. Each model is a `ModelClient` of `exeunt.actors.models`.

`model_from_provider` makes one from plain configuration, as it stands in a file or comes over the wire. What the
doors have in common is in `door`, and their HTTP client in `http`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient

if TYPE_CHECKING:
    from exeunt.models.http import HttpClient

__all__ = [
    "PROVIDER_TYPES",
    "TRANSPORTS",
    "WIRE_APIS",
    "default_base_url",
    "model_entries",
    "model_from_provider",
    "model_names",
    "wire_api",
]

PROVIDER_TYPES = ("openai", "anthropic")
"""What `type` of a provider may be."""

WIRE_APIS = ("completions", "responses")
"""What `wire_api` of a provider of type `openai` may be."""

TRANSPORTS = ("http", "websockets")
"""What `transport` of a provider may be that speaks the Responses API."""


def model_from_provider(
    model: str, provider: Mapping[str, Any], *, http: "HttpClient | None" = None
) -> ModelClient:
    """Return the client of *model* at *provider*. Nothing is connected yet.

    *provider* is for example `{"type": "openai", "base_url": ..., "api_key": ...}`; what else it may hold depends
    on its type. Called inside of a trio run, equal providers share their connections and equal (model, provider)
    pairs are one object, as long as a session holds it. With *http* the client sends its requests through that, and
    is not shared. Raises `InvalidConfiguration`.
    """
    if not isinstance(provider, Mapping):
        raise InvalidConfiguration(f"provider must be a mapping, not {type(provider).__name__}")
    # Each door is imported by who uses it.
    if provider.get("type") == "openai":
        if wire_api(provider) == "responses":
            from exeunt.models.responses.provider import responses_provider

            return responses_provider(model, provider, http)
        from exeunt.models.openai.provider import openai_provider

        return openai_provider(model, provider, http)
    if provider.get("type") == "anthropic":
        from exeunt.models.anthropic.provider import anthropic_provider

        return anthropic_provider(model, provider, http)
    raise _unknown_type(provider)


def wire_api(provider: Mapping[str, Any]) -> str:
    """Return which API a provider of type `openai` speaks: `completions`, unless it says `responses`.

    Raises `InvalidConfiguration`.
    """
    given = provider.get("wire_api") or "completions"
    if given not in WIRE_APIS:
        raise InvalidConfiguration(f"provider has the wire_api {given!r}: use one of {', '.join(WIRE_APIS)}")
    return str(given)


async def model_names(provider: Mapping[str, Any]) -> list[str]:
    """Ask *provider*, as for `model_from_provider`, for the ids of its models, in its order.

    Waits 30 seconds at most. Raises `InvalidConfiguration`, `ModelError`.
    """
    return [entry["id"] for entry in await model_entries(provider)]


async def model_entries(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same, with all that the provider's list says of each model beside its `id`."""
    if provider.get("type") == "openai":
        from exeunt.models.openai.provider import openai_model_entries

        return await openai_model_entries(provider)
    if provider.get("type") == "anthropic":
        from exeunt.models.anthropic.provider import anthropic_model_entries

        return await anthropic_model_entries(provider)
    raise _unknown_type(provider)


def default_base_url(provider: Mapping[str, Any]) -> str:
    """Return where *provider* is when it does not say so. Raises `InvalidConfiguration`."""
    if provider.get("type") == "openai":
        from exeunt.models.openai import model as openai

        return openai.DEFAULT_BASE_URL
    if provider.get("type") == "anthropic":
        from exeunt.models.anthropic import model as anthropic

        return anthropic.DEFAULT_BASE_URL
    raise _unknown_type(provider)


def _unknown_type(provider: Mapping[str, Any]) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"provider type {provider.get('type')!r} is not known: use one of {', '.join(PROVIDER_TYPES)}"
    )
