"""OpenAI-compatible models from plain configuration."""

from collections.abc import Mapping
from typing import Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.models.door.headers import bearer, wire_headers
from exeunt.models.door.listing import listed_entries
from exeunt.models.door.sharing import CONNECTION_KINDS, Kinds, given_of, shared_model
from exeunt.models.http import HttpClient
from exeunt.models.openai.model import DEFAULT_BASE_URL, OpenAIModel

_KINDS: Kinds = {
    **CONNECTION_KINDS,
    "wire_api": str,
    "options": Mapping,
    "developer_role": str,
    "stream_usage": bool,
    "media": Mapping,
}


def openai_provider(model: str, provider: Mapping[str, Any], http: HttpClient | None = None) -> OpenAIModel:
    """Return the client of *model* at *provider*.

    Keys of *provider*: `type` (`"openai"`), `wire_api` (`"completions"`), `base_url`, `api_key`, `headers`, `proxy`,
    `trust_env`, `options`, `developer_role`, `stream_usage`, as for `OpenAIModel`, and `media`, the fields of a
    `MediaSupport` (such as `{"images": False}`); a missing one, or `None`, is the default. Clients of the same
    `base_url`, `api_key`, `headers` and `proxy` share their connections, inside of one trio run. How long an answer
    may take is up to the session's `Waits`. With *http* all requests go through it, and nothing is shared. Raises
    `InvalidConfiguration`.
    """
    given = given_of(provider, _KINDS)
    given.pop("wire_api", None)
    if given.get("developer_role", "system") not in ("system", "developer"):
        raise InvalidConfiguration("provider has a developer_role that is neither 'system' nor 'developer'")
    return shared_model(OpenAIModel, model, given, base_url=DEFAULT_BASE_URL, http=http)


async def openai_model_entries(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ask *provider*, whichever API it speaks, for its models, in its order; each has an `id`.

    Raises `InvalidConfiguration`, `ModelError`.
    """
    # Any model of the provider has the connections.
    reached = {key: value for key, value in provider.items() if key in CONNECTION_KINDS}
    http = openai_provider("-", {"type": "openai", **reached}).http
    headers, _ = wire_headers(bearer(provider.get("api_key")), provider.get("headers") or {})
    base_url = provider.get("base_url") or DEFAULT_BASE_URL
    return await listed_entries(http, base_url, "/models", headers, secrets=(provider.get("api_key"),))
