"""Which model to talk with, from the options of the command line."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from exeunt.models import WIRE_APIS
from exeunt.models.local import open_local_model

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("EXEUNT_API_KEY", "OPENAI_API_KEY"),
    "anthropic": ("EXEUNT_API_KEY", "ANTHROPIC_API_KEY"),
}
"""Where the key of an API is looked for, by the type of its provider."""

_PLACES = {"anthropic": "https://api.anthropic.com"}
"""Where an API is that nobody else gives under other addresses."""

THREE_WAYS = """\
Choose one of three:
  exeunt chat --local                        a small model on this machine
  exeunt chat --gguf PATH                    the model in a file of your own
  exeunt chat --base-url URL --model NAME    a model behind an OpenAI-compatible API
                                             (--provider anthropic: a Messages API)"""


class WrongChoice(Exception):
    """The options do not say which model, or name more than one."""


@attrs.frozen(kw_only=True)
class LocalChoice:
    """A model on this machine."""

    gguf: Path | None
    """Its file; `None` for the one that is installed."""


@attrs.frozen(kw_only=True)
class ApiChoice:
    """A model behind an API."""

    base_url: str
    model: str
    api_key: str | None = attrs.field(repr=False)
    key_variable: str | None
    """Where the key was found."""
    api_key_env: str | None = None
    """Where it had to be, as the options said."""
    provider_type: str = "openai"
    wire_api: str | None = None
    """Which of OpenAI's APIs, as the options said."""


ModelChoice = LocalChoice | ApiChoice


@attrs.frozen
class OpenModel:
    """A model that can be talked with."""

    name: str
    provider: Mapping[str, Any] = attrs.field(repr=False)
    where: str
    """What a person is told about it."""


def choose_model(
    *,
    local: bool = False,
    gguf: Path | None = None,
    provider: str | None = None,
    wire_api: str | None = None,
    base_url: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ModelChoice:
    """Return the choice that the options make. Raises `WrongChoice`."""
    api = any(said is not None for said in (base_url, model, provider, wire_api))
    if api and (local or gguf is not None):
        raise WrongChoice(
            f"--provider, --wire-api, --base-url and --model do not go with a model on this machine.\n{THREE_WAYS}"
        )
    if not api:
        if api_key_env is not None:
            raise WrongChoice(f"--api-key-env goes with --base-url and --model.\n{THREE_WAYS}")
        if not local and gguf is None:
            raise WrongChoice(f"Which model?\n{THREE_WAYS}")
        return LocalChoice(gguf=gguf)
    kind = provider or "openai"
    if kind not in KEY_VARIABLES:
        raise WrongChoice(f"--provider {kind} is not known: use one of {', '.join(KEY_VARIABLES)}")
    if wire_api is not None and (wire_api not in WIRE_APIS or kind != "openai"):
        raise WrongChoice(
            f"--wire-api {wire_api} is not known: use one of {', '.join(WIRE_APIS)}, for a provider of type openai"
        )
    base_url = base_url or _PLACES.get(kind)
    if not base_url:
        raise WrongChoice("--model needs --base-url, such as --base-url https://api.openai.com/v1")
    if not model:
        raise WrongChoice("--base-url needs --model NAME: an API serves several")
    variables = KEY_VARIABLES[kind] if api_key_env is None else (api_key_env,)
    variable = next((name for name in variables if environment.get(name)), None)
    if api_key_env is not None and variable is None:
        raise WrongChoice(f"the variable {api_key_env} of --api-key-env is not set")
    key = None if variable is None else environment[variable]
    return ApiChoice(
        base_url=base_url,
        model=model,
        api_key=key,
        key_variable=variable,
        api_key_env=api_key_env,
        provider_type=kind,
        wire_api=wire_api,
    )


@asynccontextmanager
async def open_model(choice: ModelChoice) -> AsyncGenerator[OpenModel]:
    """Have the model ready. Raises `LocalModelUnavailable`."""
    provider: dict[str, Any]
    if isinstance(choice, LocalChoice):
        async with open_local_model(choice.gguf) as server:
            # What the environment says of proxies is not meant for a server of our own.
            provider = {"type": "openai", "base_url": server.base_url, "trust_env": False}
            yield OpenModel(server.model, provider, "on this machine")
        return
    provider = {
        "type": choice.provider_type,
        "base_url": choice.base_url,
        "api_key": choice.api_key,
    }
    if choice.wire_api is not None:
        provider["wire_api"] = choice.wire_api
    key = "without a key" if choice.key_variable is None else f"key from {choice.key_variable}"
    yield OpenModel(choice.model, provider, f"at {choice.base_url}, {key}")
