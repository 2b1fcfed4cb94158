"""OpenAI-compatible models from plain configuration, shared by the sessions that have the same."""

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MediaSupport
from exeunt.models.http import HttpClient, Timeouts
from exeunt.models.openai.model import DEFAULT_BASE_URL, OpenAIModel

_KEYS = frozenset(
    {
        "type",
        "base_url",
        "api_key",
        "headers",
        "proxy",
        "trust_env",
        "options",
        "developer_role",
        "stream_usage",
        "media",
    }
)


_KINDS: dict[str, type | tuple[type, ...]] = {
    "base_url": str,
    "api_key": str,
    "headers": Mapping,
    "proxy": str,
    "trust_env": bool,
    "options": Mapping,
    "developer_role": str,
    "stream_usage": bool,
    "media": Mapping,
}

_DAY = 86400.0

# Who describes a model by configuration has no other place for time-outs than the session's `Waits`, which bound the
# same waits: a second bound here would cut off a session that is willing to wait for longer.
_TIMEOUTS = Timeouts(first_byte=_DAY, gap=_DAY, total=_DAY, stream_total=_DAY)


class _Shared:
    """What one trio run shares. Weak: connections go with the last session that uses them."""

    def __init__(self) -> None:
        self.models: WeakValueDictionary[str, OpenAIModel] = WeakValueDictionary()
        self.clients: WeakValueDictionary[str, HttpClient] = WeakValueDictionary()


# Connections belong to the trio run that made them; two runs in two threads must not share any.
shared_by_run: trio.lowlevel.RunVar[_Shared] = trio.lowlevel.RunVar("exeunt.models.openai")


def openai_provider(model: str, provider: Mapping[str, Any]) -> OpenAIModel:
    """Return the client of *model* at *provider*.

    Keys of *provider*: `type` (`"openai"`), `base_url`, `api_key`, `headers`, `proxy`, `trust_env`, `options`,
    `developer_role`, `stream_usage`, as for `OpenAIModel`, and `media`, the fields of a `MediaSupport` (such as
    `{"images": False}`); a missing one, or `None`, is the default. Clients of the same `base_url`, `api_key`,
    `headers` and `proxy` share their connections, inside of one trio run. How long an answer may take is up to the
    session's `Waits`. Raises `InvalidConfiguration`.
    """
    unknown = sorted(str(key) for key in provider if key not in _KEYS)
    if unknown:
        raise InvalidConfiguration(
            f"provider holds {', '.join(unknown)}, which type 'openai' does not know: use {', '.join(sorted(_KEYS))}"
        )
    given = {key: value for key, value in provider.items() if key != "type" and value is not None}
    for key, kinds in _KINDS.items():
        if key in given and not isinstance(given[key], kinds):
            raise InvalidConfiguration(f"provider has {key} of type {type(given[key]).__name__}")
    if given.get("developer_role", "system") not in ("system", "developer"):
        raise InvalidConfiguration("provider has a developer_role that is neither 'system' nor 'developer'")
    media = media_support(given.pop("media")) if "media" in given else None
    connections = {key: given.get(key) for key in ("base_url", "api_key", "headers", "proxy", "trust_env")}
    connections["base_url"] = given.get("base_url", DEFAULT_BASE_URL)
    whole = _key({"model": model, **given, **connections, "media": repr(media)})
    try:
        shared = shared_by_run.get()
    except LookupError:
        shared = _Shared()
        shared_by_run.set(shared)
    except RuntimeError:
        return OpenAIModel(model, **given, media=media, timeouts=_TIMEOUTS)
    found = shared.models.get(whole)
    if found is not None and not found.http.is_closed:
        return found
    part = _key(connections)
    http = shared.clients.get(part)
    client = OpenAIModel(
        model, **given, media=media, timeouts=_TIMEOUTS, http=None if http is None or http.is_closed else http
    )
    shared.clients[part] = client.http
    shared.models[whole] = client
    return client


def media_support(fields: Mapping[str, Any]) -> MediaSupport:
    """Return what the configuration of a provider says of media. Raises `InvalidConfiguration`."""
    unknown = sorted(str(key) for key in fields if key not in MediaSupport.__struct_fields__)
    if unknown:
        raise InvalidConfiguration(
            f"provider has media with {', '.join(unknown)}: use {', '.join(MediaSupport.__struct_fields__)}"
        )
    try:
        return msgspec.convert(dict(fields), MediaSupport)
    except msgspec.ValidationError as error:
        raise InvalidConfiguration(f"provider has media that cannot be: {error}") from error


def _key(value: Mapping[str, Any]) -> str:
    try:
        # Mappings of any kind count as dictionaries, and the order of their keys does not count.
        return json.dumps(value, sort_keys=True, default=dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"provider must hold plain values only: {error}") from None
