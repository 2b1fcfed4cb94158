"""Doors to model APIs, one folder each. Each model is a `ModelClient` of `exeunt.actors.models`.

`model_from_provider` makes one from plain configuration, as it stands in a file or comes over the wire.
"""

from collections.abc import Mapping
from typing import Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient

__all__ = ["model_from_provider"]

_TYPES = ("openai",)


def model_from_provider(model: str, provider: Mapping[str, Any]) -> ModelClient:
    """Return the client of *model* at *provider*. Nothing is connected yet.

    *provider* is for example `{"type": "openai", "base_url": ..., "api_key": ...}`; what else it may hold depends
    on its type. Called inside of a trio run, equal providers share their connections and equal (model, provider)
    pairs are one object, as long as a session holds it. Raises `InvalidConfiguration`.
    """
    if not isinstance(provider, Mapping):
        raise InvalidConfiguration(f"provider must be a mapping, not {type(provider).__name__}")
    kind = provider.get("type")
    if kind == "openai":
        from exeunt.models.openai.provider import openai_provider

        return openai_provider(model, provider)
    raise InvalidConfiguration(f"provider type {kind!r} is not known: use one of {', '.join(_TYPES)}")
