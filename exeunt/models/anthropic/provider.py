"""Models behind the Messages API from plain configuration."""

from collections.abc import Mapping
from typing import Any

from exeunt.models.anthropic.model import DEFAULT_BASE_URL, AnthropicModel, api_path, headers_of
from exeunt.models.door.listing import listed_entries
from exeunt.models.door.sharing import CONNECTION_KINDS, Kinds, given_of, shared_model
from exeunt.models.http import HttpClient

_KINDS: Kinds = {
    **CONNECTION_KINDS,
    "auth_token": str,
    "betas": (list, tuple),
    "options": Mapping,
    "max_tokens": int,
    "effort": str,
    "prompt_cache": bool,
    "citations": bool,
    "media": Mapping,
}

# The most that one answer of the API may list; it would be 20. More models than that nobody has.
_PAGE = "limit=1000"


def anthropic_provider(
    model: str, provider: Mapping[str, Any], http: HttpClient | None = None
) -> AnthropicModel:
    """Return the client of *model* at *provider*.

    Keys of *provider*: `type` (`"anthropic"`), `base_url`, `api_key`, `auth_token`, `headers`, `betas`, `proxy`,
    `trust_env`, `options`, `max_tokens`, `effort`, `prompt_cache`, `citations`, as for `AnthropicModel`, and
    `media`, the fields of a `MediaSupport` (such as `{"images": False}`); a missing one, or `None`, is the default.
    Clients of the same `base_url`, keys, `headers` and `proxy` share their connections, inside of one trio run. How
    long an answer may take is up to the session's `Waits`. With *http* all requests go through it, and nothing is
    shared. Raises `InvalidConfiguration`.
    """
    return shared_model(
        AnthropicModel, model, given_of(provider, _KINDS), base_url=DEFAULT_BASE_URL, http=http
    )


async def anthropic_model_entries(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ask *provider* for its models, in its order; each has an `id`. Raises `InvalidConfiguration`, `ModelError`."""
    # Any model of the provider has the connections.
    http = anthropic_provider("-", provider).http
    given = given_of(provider, _KINDS)
    headers, _ = headers_of(
        given.get("api_key"), given.get("auth_token"), given.get("betas", ()), given.get("headers", {})
    )
    base_url = given.get("base_url", DEFAULT_BASE_URL)
    secrets = (given.get("api_key"), given.get("auth_token"))
    return await listed_entries(
        http, base_url, api_path(base_url, "models"), headers, secrets=secrets, query=_PAGE
    )
