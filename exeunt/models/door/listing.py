"""Which models a provider has."""

from collections.abc import Iterable
from typing import Any

import trio

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.door.failures import censor, failure
from exeunt.models.door.headers import WireHeaders
from exeunt.models.door.jsontext import is_dict, is_list, loads
from exeunt.models.http import HttpClient
from exeunt.models.http.urls import parse_endpoint

SECONDS = 30.0
"""For the whole list: a person may be waiting for it."""

MOST_BYTES = 4 * 1024 * 1024
"""The longest lists have some hundred models, of 1 KiB each."""


async def listed_entries(
    http: HttpClient,
    base_url: str,
    path: str,
    headers: WireHeaders,
    *,
    secrets: Iterable[str | None],
    query: str = "",
) -> list[dict[str, Any]]:
    """Ask for the list at *path* below *base_url*; return what it holds under `data`, in the order of the provider.

    Each has an `id`, which is a text. *query* joins what the base URL has of it. *secrets* are kept out of the messages
    of errors. Raises `InvalidConfiguration`, `ModelError`.
    """
    _, target = parse_endpoint(base_url, path)
    if query:
        target += f"{'&' if '?' in target else '?'}{query}"
    deadline = trio.current_time() + SECONDS
    with await http.get(target.encode("ascii"), headers, deadline=deadline, max_bytes=MOST_BYTES) as response:
        body = await response.read(deadline=deadline)
        if not 200 <= response.status < 300:
            error = failure(response.status, response.headers, body)
            censor(error, (secret for secret in secrets if secret))
            raise error
    try:
        answer = loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            ModelErrorKind.MALFORMED_RESPONSE, "the provider's list of models is not JSON"
        ) from error
    entries = answer.get("data") if is_dict(answer) else None
    if not is_list(entries):
        raise ModelError(ModelErrorKind.MALFORMED_RESPONSE, "the provider's answer holds no list of models")
    return [entry for entry in entries if is_dict(entry) and isinstance(entry.get("id"), str)]
