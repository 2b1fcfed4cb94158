"""The server's own model provider and tokens: from options, a file, or the environment."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.prices import Price
from exeunt.cli.serve.switches import whole_number
from exeunt.configuration import priced
from exeunt.models import PROVIDER_TYPES, TRANSPORTS, WIRE_APIS, model_from_provider
from exeunt.structuring import structured
from exeunt.wire.options import WireOptions
from exeunt.wire.serving.models import DefaultProvider

TOKEN_VARIABLES = ("EXEUNT_CONNECTION_TOKEN", "COPILOT_CONNECTION_TOKEN")
"""Where a token is looked for when no option names a variable. Clients that start a server set the second."""


@attrs.frozen(kw_only=True)
class ProviderTable:
    """The table `[provider]` of a file."""

    type: str | None = None
    wire_api: str | None = None
    transport: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    model: str | None = None
    auto_model: str | None = None
    headers: dict[str, str] = attrs.field(factory=dict[str, str])
    options: dict[str, Any] = attrs.field(factory=dict[str, Any])
    media: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """What the models take beside text: the fields of a `MediaSupport`."""


@attrs.frozen(kw_only=True)
class ServeFile:
    """A file of `exeunt serve`."""

    provider: ProviderTable = attrs.field(factory=ProviderTable)
    tokens: dict[str, str] = attrs.field(factory=dict[str, str])
    """Variables that hold a token, by the tenant whose it is."""
    prices: dict[str, Price] = attrs.field(factory=dict[str, Price])
    """Credits for a million tokens, by the name of the model; `"*"` is any other."""


def read_file(path: Path | None) -> ServeFile:
    """Return what *path* says; without one, nothing. Raises `InvalidConfiguration`."""
    if path is None:
        return ServeFile()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error}") from error
    return structured(str(path), content, ServeFile, ServeFile())


def default_provider(
    environ: Mapping[str, str],
    table: ProviderTable | None = None,
    *,
    kind: str | None = None,
    wire_api: str | None = None,
    base_url: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    auto_model: str | None = None,
    prices: Mapping[str, Price] | None = None,
) -> DefaultProvider:
    """Return the provider: an option wins over the file, and the file over the environment.

    Raises `InvalidConfiguration` for a type or an API that is not known, for an address, a header or an option that
    cannot be sent, for a variable that is named and not set, for prices that are none, and where an option or the file
    says something of a provider that nobody names. A variable may say it without one: it may be meant for others, and
    `EXEUNT_AUTO_MODEL` holds for sessions whose client sends the requests itself.
    """
    table = table or ProviderTable()
    kind = kind or table.type or environ.get("EXEUNT_PROVIDER_TYPE")
    if kind is not None and kind not in PROVIDER_TYPES:
        raise InvalidConfiguration(
            f"provider type {kind!r} is not known: use one of {', '.join(PROVIDER_TYPES)}"
        )
    base_url = base_url or table.base_url or environ.get("EXEUNT_PROVIDER_BASE_URL")
    model = model or table.model or environ.get("EXEUNT_PROVIDER_MODEL")
    variable = api_key_env or table.api_key_env
    key = environ.get("EXEUNT_PROVIDER_API_KEY") if variable is None else _set(environ, variable)
    said = _without_a_provider(table, wire_api, auto_model)
    auto_model = auto_model or table.auto_model or environ.get("EXEUNT_AUTO_MODEL") or None
    known = prices or prices_in(environ)
    api = _api(wire_api or table.wire_api, table.transport, environ)
    if kind is None and base_url is None and key is None:
        if said is not None:
            raise InvalidConfiguration(
                f"{said} is for the server's own provider, and there is none: name it by --provider or --base-url"
            )
        return DefaultProvider(model=model, auto_model=auto_model, prices=known)
    provider: dict[str, Any] = {
        "type": kind or "openai",
        **api,
    }
    given = {
        "base_url": base_url,
        "api_key": key,
        "headers": table.headers,
        "options": table.options,
        "media": table.media,
    }
    provider |= {name: value for name, value in given.items() if value}
    # Who starts the server is told what is wrong with it, and not each of its clients.
    model_from_provider(model or auto_model or "any", provider)
    return DefaultProvider(model=model, provider=provider, auto_model=auto_model, prices=known)


def prices_in(environ: Mapping[str, str]) -> Mapping[str, Price]:
    """Return the prices in `EXEUNT_PRICES`, JSON as the table of a file. Raises `InvalidConfiguration`."""
    text = environ.get("EXEUNT_PRICES")
    if not text:
        return {}
    try:
        content = msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except msgspec.MsgspecError as error:
        raise InvalidConfiguration(f"EXEUNT_PRICES must be JSON, a price by model: {error}") from error
    return priced(content)


def _without_a_provider(table: ProviderTable, wire_api: str | None, auto_model: str | None) -> str | None:
    """Name an option or a key of the file that means nothing without a provider, if there is one."""
    keys = ("wire_api", "transport", "auto_model", "headers", "options", "media")
    of_file = next((f"provider.{key} of the file" for key in keys if getattr(table, key)), None)
    return ("--wire-api" if wire_api else None) or ("--auto-model" if auto_model else None) or of_file


def _api(wire_api: str | None, transport: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return which of OpenAI's APIs the provider speaks, and how, where that is said anywhere."""
    wire_api = wire_api or environ.get("EXEUNT_PROVIDER_WIRE_API")
    transport = transport or environ.get("EXEUNT_PROVIDER_TRANSPORT")
    if wire_api and wire_api not in WIRE_APIS:
        raise InvalidConfiguration(
            f"wire API {wire_api!r} of the provider is not known: use one of {', '.join(WIRE_APIS)}"
        )
    if transport and (transport not in TRANSPORTS or wire_api != "responses"):
        raise InvalidConfiguration(
            f"transport {transport!r} of the provider: it is one of {', '.join(TRANSPORTS)}, with the wire API "
            "'responses'"
        )
    said = {"wire_api": wire_api, "transport": transport}
    return {key: value for key, value in said.items() if value}


def context_tokens(environ: Mapping[str, str]) -> int:
    """Return how many tokens models take in, where clients do not say. Raises `InvalidConfiguration`."""
    return whole_number(environ, "EXEUNT_CONTEXT_TOKENS") or WireOptions().context_tokens


def attachments_root(environ: Mapping[str, str], option: Path | None = None) -> Path | None:
    """Return the folder below which files are read that clients attach by their path: an option wins.

    Raises `InvalidConfiguration` for what is no folder.
    """
    named = environ.get("EXEUNT_ATTACHMENTS_ROOT")
    folder = option or (Path(named) if named else None)
    if folder is None:
        return None
    if not folder.is_dir():
        raise InvalidConfiguration(f"{str(folder)!r} is no folder from which attachments could be read")
    return folder.absolute()


def session_files(environ: Mapping[str, str], option: Path | None = None) -> Path | None:
    """Return the folder for files of sessions, if there is to be one: an option wins over the environment."""
    named = environ.get("EXEUNT_SESSION_FILES")
    return option or (Path(named) if named else None)


def base_directory_files(environ: Mapping[str, str]) -> Path | None:
    """The same for a server that a client has started: without one, what is below the client's base directory."""
    base = environ.get("COPILOT_HOME")
    return session_files(environ) or (Path(base) / "session-state" if base else None)


def tokens(environ: Mapping[str, str], named: Sequence[str], table: Mapping[str, str]) -> dict[str, str]:
    """Return tenants by their tokens.

    *named* are options `[TENANT=]VARIABLE`, *table* is that of a file. Without both, a variable that clients set.
    Raises `InvalidConfiguration` for a variable that is not set, and for a token of two tenants.
    """
    pairs = [(tenant, variable) for tenant, variable in table.items()]
    for option in named:
        tenant, _, variable = option.rpartition("=")
        pairs.append((tenant, variable))
    if not pairs:
        pairs = [("", variable) for variable in TOKEN_VARIABLES if environ.get(variable)][:1]
    found: dict[str, str] = {}
    for tenant, variable in pairs:
        token = _set(environ, variable)
        if found.setdefault(token, tenant) != tenant:
            raise InvalidConfiguration(f"{variable} holds a token that another tenant has: choose another")
    return found


def _set(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable)
    if not value:
        raise InvalidConfiguration(f"the environment variable {variable} is not set, or empty")
    return value
