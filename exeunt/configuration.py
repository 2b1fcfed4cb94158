"""From the keywords of `create_session` to the options of a session."""

import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.hooks import NO_HOOKS, Hook, Hooks
from exeunt.actors.media import DEFAULT_MEDIA_LIMITS, MediaLimits
from exeunt.actors.models import ModelClient
from exeunt.actors.options import Durability, RetryPolicy, SessionOptions, Siblings, Waits, messages_from
from exeunt.actors.permissions import PermissionHandler
from exeunt.actors.prices import NO_PRICES, Price, Prices
from exeunt.actors.state import Limits
from exeunt.actors.tools import Tool, ToolSet
from exeunt.actors.turn_requests import TurnRequestHandler
from exeunt.actors.user_input import UserInputHandler
from exeunt.structuring import structured

HOOK_NAMES = (
    "on_session_start",
    "on_user_prompt_submitted",
    "on_user_prompt_transformed",
    "on_pre_tool_use",
    "on_post_tool_use",
    "on_post_tool_use_failure",
    "on_agent_stop",
    "on_session_end",
    "on_error_occurred",
)

Tools = Iterable[Any]
"""Tools, or a `ToolSet`. `Any`, since mypy takes `[one, another]` for a list of objects; it is checked at run time."""


class SessionKeywords(TypedDict, total=False):
    """The keywords of `create_session` beside the id, and of `build_options`, which explains nothing twice.

    For type checkers; a test holds it against the parameters of `build_options`.
    """

    model: ModelClient | str
    provider: Mapping[str, Any] | None
    tools: Tools
    system_message: str | Mapping[str, Any] | None
    developer_messages: Sequence[str] | str | None
    on_permission_request: PermissionHandler | None
    on_user_input_request: UserInputHandler | None
    hooks: Hooks | Mapping[str, Hook] | None
    tenant: str
    streaming: bool
    current_datetime: bool
    limits: Limits | Mapping[str, Any] | None
    waits: Waits | Mapping[str, Any] | None
    retries: RetryPolicy | Mapping[str, Any] | None
    media_limits: MediaLimits | Mapping[str, Any] | None
    mailbox_size: int
    siblings: Siblings
    max_consecutive_clears: int
    durability: Durability
    prices: Mapping[str, Price | Mapping[str, Any]] | None
    on_session_limits_exhausted: TurnRequestHandler | None
    auto_model: ModelClient | str | None
    on_auto_mode_switch_request: TurnRequestHandler | None
    on_session_start: Hook | None
    on_user_prompt_submitted: Hook | None
    on_user_prompt_transformed: Hook | None
    on_pre_tool_use: Hook | None
    on_post_tool_use: Hook | None
    on_post_tool_use_failure: Hook | None
    on_agent_stop: Hook | None
    on_session_end: Hook | None
    on_error_occurred: Hook | None


def check_keywords(keywords: Mapping[str, Any]) -> None:
    """Raise `InvalidConfiguration` for a keyword that there is not, or when there is no model."""
    known = SessionKeywords.__annotations__
    for name in keywords:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise InvalidConfiguration(f"a session has no option {name!r:.80}; {hint}")
    if "model" not in keywords:
        raise InvalidConfiguration("a session needs a model: an object, or a name with a provider")


def build_options(
    *,
    model: ModelClient | str,
    provider: Mapping[str, Any] | None = None,
    tools: Tools = (),
    system_message: str | Mapping[str, Any] | None = None,
    developer_messages: Sequence[str] | str | None = None,
    on_permission_request: PermissionHandler | None = None,
    on_user_input_request: UserInputHandler | None = None,
    hooks: Hooks | Mapping[str, Hook] | None = None,
    tenant: str = "",
    streaming: bool = False,
    current_datetime: bool = False,
    limits: Limits | Mapping[str, Any] | None = None,
    waits: Waits | Mapping[str, Any] | None = None,
    retries: RetryPolicy | Mapping[str, Any] | None = None,
    media_limits: MediaLimits | Mapping[str, Any] | None = None,
    mailbox_size: int = 256,
    siblings: Siblings = "wait",
    max_consecutive_clears: int = 16,
    durability: Durability = "default",
    prices: Mapping[str, Price | Mapping[str, Any]] | None = None,
    on_session_limits_exhausted: TurnRequestHandler | None = None,
    auto_model: ModelClient | str | None = None,
    on_auto_mode_switch_request: TurnRequestHandler | None = None,
    on_session_start: Hook | None = None,
    on_user_prompt_submitted: Hook | None = None,
    on_user_prompt_transformed: Hook | None = None,
    on_pre_tool_use: Hook | None = None,
    on_post_tool_use: Hook | None = None,
    on_post_tool_use_failure: Hook | None = None,
    on_agent_stop: Hook | None = None,
    on_session_end: Hook | None = None,
    on_error_occurred: Hook | None = None,
) -> SessionOptions:
    """Return the options that these keywords describe; `SessionHost.create_session` explains them.

    Raises `InvalidConfiguration`, naming the keyword.
    """
    named = {
        "on_session_start": on_session_start,
        "on_user_prompt_submitted": on_user_prompt_submitted,
        "on_user_prompt_transformed": on_user_prompt_transformed,
        "on_pre_tool_use": on_pre_tool_use,
        "on_post_tool_use": on_post_tool_use,
        "on_post_tool_use_failure": on_post_tool_use_failure,
        "on_agent_stop": on_agent_stop,
        "on_session_end": on_session_end,
        "on_error_occurred": on_error_occurred,
    }
    return SessionOptions(
        model=_model(model, provider),
        tools=_tool_set(tools),
        system_message=_system_message(system_message),
        developer_messages=_developer_messages(developer_messages),
        on_permission_request=on_permission_request,
        on_user_input_request=on_user_input_request,
        hooks=_hooks(hooks, {name: hook for name, hook in named.items() if hook is not None}),
        tenant=tenant,
        streaming=streaming,
        current_datetime=current_datetime,
        limits=structured("limits", limits, Limits, DEFAULT_LIMITS),
        waits=structured("waits", waits, Waits, DEFAULT_WAITS),
        retries=structured("retries", retries, RetryPolicy, DEFAULT_RETRIES),
        media_limits=structured("media_limits", media_limits, MediaLimits, DEFAULT_MEDIA_LIMITS),
        mailbox_size=mailbox_size,
        siblings=siblings,
        max_consecutive_clears=max_consecutive_clears,
        durability=durability,
        prices=priced(prices),
        on_session_limits_exhausted=on_session_limits_exhausted,
        auto_model=None if auto_model is None else _auto_model(auto_model, provider),
        on_auto_mode_switch_request=on_auto_mode_switch_request,
    )


# Shared by all sessions that do not ask for others: an option that is an object takes memory in each session.
DEFAULT_LIMITS = Limits()
DEFAULT_WAITS = Waits()
DEFAULT_RETRIES = RetryPolicy()

FREE = Price()


def _model(model: Any, provider: Mapping[str, Any] | None) -> ModelClient:
    if isinstance(model, str):
        if provider is None:
            raise InvalidConfiguration(
                f"model {model!r} is a name, so provider must say where it is, such as "
                '{"type": "openai", "base_url": ..., "api_key": ...}'
            )
        from exeunt.models import model_from_provider

        return model_from_provider(model, provider)
    if provider is not None:
        raise InvalidConfiguration("provider goes with a model's name; this model is an object")
    client: ModelClient = model
    return client


def _auto_model(model: Any, provider: Mapping[str, Any] | None) -> ModelClient:
    """Return the other model: a name is one of the same provider."""
    if isinstance(model, str) and provider is None:
        raise InvalidConfiguration(
            f"auto_model {model!r} is a name, so it needs the provider of a model by name"
        )
    return _model(model, provider if isinstance(model, str) else None)


def priced(prices: Any) -> Prices:
    """Return prices by the name of the model. Raises `InvalidConfiguration`.

    What holds `Price` values already is kept as it is: sessions may share it, and it may grow.
    """
    if prices is None:
        return NO_PRICES
    given = prices
    if not isinstance(prices, Mapping):
        raise InvalidConfiguration(f"prices must be a mapping of models' names to prices, not {prices!r:.80}")
    if all(isinstance(price, Price) for price in given.values()):
        return cast("Prices", given)
    return {name: structured(f"prices[{name!r:.80}]", price, Price, FREE) for name, price in given.items()}


def _tool_set(tools: Tools) -> ToolSet:
    if isinstance(tools, ToolSet):
        return tools
    if isinstance(tools, (str, Tool)) or not isinstance(tools, Iterable):
        what = f"the tool {tools.name!r} alone" if isinstance(tools, Tool) else f"{tools!r:.80}"
        raise InvalidConfiguration(f"tools must be a list of tools, or a ToolSet, not {what}")
    return _shared_tool_set(tuple(tools))


@functools.lru_cache(maxsize=256)
def _shared_tool_set(tools: tuple[Tool[..., Any], ...]) -> ToolSet:
    """Give sessions with the same tools the same set. 256 kinds of agent in one process are many."""
    return ToolSet(tools)


def _system_message(value: Any) -> str | None:
    text: str | None = (
        cast("Mapping[str, Any]", value).get("content") if isinstance(value, Mapping) else value
    )
    return text  # what it is not is said by the options


def _developer_messages(value: Any) -> tuple[str, ...]:
    if value is not None and not isinstance(value, Iterable):
        raise InvalidConfiguration(f"developer_messages is a text or a list of texts, not {value!r:.80}")
    return messages_from(cast("Sequence[str] | str | None", value))


def _hooks(hooks: Hooks | Mapping[str, Hook] | None, named: dict[str, Hook]) -> Hooks:
    if isinstance(hooks, Hooks):
        chosen = {name: hook for name in HOOK_NAMES if (hook := getattr(hooks, name)) is not None}
    elif hooks is None or isinstance(hooks, Mapping):
        chosen = dict(hooks or {})
    else:
        raise InvalidConfiguration(f"hooks is a mapping or Hooks, not {hooks!r:.80}")
    twice = sorted(chosen.keys() & named.keys())
    if twice:
        raise InvalidConfiguration(f"{', '.join(twice)} is given twice: beside hooks, and in it")
    chosen.update(named)
    unknown = sorted(set(chosen) - set(HOOK_NAMES))
    if unknown:
        raise InvalidConfiguration(f"unknown hooks {unknown}; there are {', '.join(HOOK_NAMES)}")
    for name, hook in chosen.items():
        if not callable(hook):
            raise InvalidConfiguration(f"{name} must be callable, not {hook!r:.80}")
    return Hooks(**chosen) if chosen else NO_HOOKS
