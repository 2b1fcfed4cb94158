"""Clients from plain configuration, shared by the sessions that have the same."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.models.door.model import HttpModel
from exeunt.models.http import HttpClient, Timeouts

Kinds = Mapping[str, type | tuple[type, ...]]
"""The keys that a door takes of a provider, and of what type each is."""

CONNECTION_KINDS: Kinds = {
    "base_url": str,
    "api_key": str,
    "headers": Mapping,
    "proxy": str,
    "trust_env": bool,
}
"""The keys that all doors take. Clients that have them alike share their connections."""

M = TypeVar("M", bound=HttpModel)

_DAY = 86400.0

# Who describes a model by configuration has no other place for time-outs than the session's `Waits`, which bound the
# same waits: a second bound here would cut off a session that is willing to wait for longer.
_TIMEOUTS = Timeouts(first_byte=_DAY, gap=_DAY, total=_DAY, stream_total=_DAY)


class _Shared:
    """What one trio run shares. Weak: connections go with the last session that uses them."""

    def __init__(self) -> None:
        self.models: WeakValueDictionary[str, HttpModel] = WeakValueDictionary()
        self.clients: WeakValueDictionary[str, HttpClient] = WeakValueDictionary()


# Connections belong to the trio run that made them; two runs in two threads must not share any.
shared_by_run: trio.lowlevel.RunVar[_Shared] = trio.lowlevel.RunVar("exeunt.models.door")


def given_of(provider: Mapping[str, Any], kinds: Kinds) -> dict[str, Any]:
    """Return what *provider* gives, without its type and without `None`. Raises `InvalidConfiguration`."""
    kind = provider.get("type")
    unknown = sorted(str(key) for key in provider if key != "type" and key not in kinds)
    if unknown:
        raise InvalidConfiguration(
            f"provider holds {', '.join(unknown)}, which type {kind!r} does not know: "
            f"use {', '.join(sorted((*kinds, 'type')))}"
        )
    given = {key: value for key, value in provider.items() if key != "type" and value is not None}
    for key, value in given.items():
        if not isinstance(value, kinds[key]):
            raise InvalidConfiguration(f"provider has {key} of type {type(value).__name__}")
    return given


def shared_model(make: Callable[..., M], model: str, given: Mapping[str, Any], *, base_url: str) -> M:
    """Return the client that *make* makes of *model* and of what *given* says, or the one that it made for the same.

    *make* is the class of the door. *base_url* is where the door goes when nothing is said. Inside of one trio
    run, equal ones are one object as long as somebody holds it; outside of one, each is new.
    Raises `InvalidConfiguration`.
    """
    connections = {key: given.get(key) for key in CONNECTION_KINDS}
    connections["base_url"] = given.get("base_url", base_url)
    whole = _key({**given, **connections, "model": model, "door": make.__qualname__})
    try:
        shared = shared_by_run.get()
    except LookupError:
        shared = _Shared()
        shared_by_run.set(shared)
    except RuntimeError:
        return make(model, **given, timeouts=_TIMEOUTS)
    found = shared.models.get(whole)
    if found is not None and not found.http.is_closed:
        # Found under the name of its door, so it is of the door.
        return found  # type: ignore[return-value]
    part = _key(connections)
    http = shared.clients.get(part)
    client = make(model, **given, timeouts=_TIMEOUTS, http=None if http is None or http.is_closed else http)
    shared.clients[part] = client.http
    shared.models[whole] = client
    return client


def _key(value: Mapping[str, Any]) -> str:
    try:
        # Mappings of any kind count as dictionaries, and the order of their keys does not count.
        return json.dumps(value, sort_keys=True, default=dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"provider must hold plain values only: {error}") from None
