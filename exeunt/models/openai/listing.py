"""Which models a provider has."""

from collections.abc import Mapping
from typing import Any

import trio

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.urls import parse_endpoint
from exeunt.models.openai.failures import failure
from exeunt.models.openai.headers import wire_headers
from exeunt.models.openai.jsontext import is_dict, is_list, loads
from exeunt.models.openai.model import DEFAULT_BASE_URL
from exeunt.models.openai.provider import openai_provider

SECONDS = 30.0
"""For the whole list: a person may be waiting for it."""

MOST_BYTES = 4 * 1024 * 1024
"""The longest lists have some hundred models, of 1 KiB each."""


async def model_names(provider: Mapping[str, Any]) -> list[str]:
    """Ask *provider*, as for `openai_provider`, for the ids of its models, in its order.

    Raises `InvalidConfiguration`, `ModelError`.
    """
    # Any model of the provider has the connections.
    http = openai_provider("-", provider).http
    _, target = parse_endpoint(provider.get("base_url") or DEFAULT_BASE_URL, "/models")
    headers, _ = wire_headers(provider.get("api_key"), provider.get("headers") or {})
    deadline = trio.current_time() + SECONDS
    with await http.get(target.encode("ascii"), headers, deadline=deadline, max_bytes=MOST_BYTES) as response:
        body = await response.read(deadline=deadline)
        if not 200 <= response.status < 300:
            raise failure(response.status, response.headers, body)
    try:
        answer = loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            ModelErrorKind.MALFORMED_RESPONSE, "the provider's list of models is not JSON"
        ) from error
    entries = answer.get("data") if is_dict(answer) else None
    if not is_list(entries):
        raise ModelError(ModelErrorKind.MALFORMED_RESPONSE, "the provider's answer holds no list of models")
    return [entry["id"] for entry in entries if is_dict(entry) and isinstance(entry.get("id"), str)]
