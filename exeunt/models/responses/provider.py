"""Models behind the Responses API from plain configuration."""

from collections.abc import Mapping
from typing import Any

from exeunt.actors.errors import InvalidConfiguration
from exeunt.models import TRANSPORTS
from exeunt.models.door.sharing import CONNECTION_KINDS, Kinds, given_of, shared_model
from exeunt.models.http import HttpClient
from exeunt.models.openai.model import DEFAULT_BASE_URL
from exeunt.models.responses.model import ResponsesModel
from exeunt.models.responses.sockets import ResponsesSocketModel

_KINDS: Kinds = {
    **CONNECTION_KINDS,
    "wire_api": str,
    "options": Mapping,
    "developer_role": str,
    "media": Mapping,
    "transport": str,
}


def responses_provider(
    model: str, provider: Mapping[str, Any], http: HttpClient | None = None
) -> ResponsesModel:
    """Return the client of *model* at *provider*.

    Keys of *provider*: `type` (`"openai"`), `wire_api` (`"responses"`), `transport` (`"http"` or `"websockets"`),
    `base_url`, `api_key`, `headers`, `proxy`, `trust_env`, `options`, `developer_role`, as for `ResponsesModel`, and
    `media`, the fields of a `MediaSupport`; a missing one, or `None`, is the default. Connections are shared as with
    chat completions, with whose models too. How long an answer may take is up to the session's `Waits`. With *http*
    all requests go through it, and nothing is shared. Raises `InvalidConfiguration`.
    """
    given = given_of(provider, _KINDS)
    given.pop("wire_api", None)
    if given.get("developer_role", "system") not in ("system", "developer"):
        raise InvalidConfiguration("provider has a developer_role that is neither 'system' nor 'developer'")
    transport = given.pop("transport", "http")
    if transport not in TRANSPORTS:
        raise InvalidConfiguration(
            f"provider has the transport {transport!r}: use one of {', '.join(TRANSPORTS)}"
        )
    made: type[ResponsesModel] = ResponsesSocketModel if transport == "websockets" else ResponsesModel
    return shared_model(made, model, given, base_url=DEFAULT_BASE_URL, http=http)
