"""What a session is configured with. Values only; checked once, when they are made."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Literal

import attrs

from exeunt.actors.errors import InvalidConfiguration, PriceUnknown
from exeunt.actors.hooks import NO_HOOKS, Hooks
from exeunt.actors.media import DEFAULT_MEDIA_LIMITS, MediaLimits
from exeunt.actors.models import ModelClient
from exeunt.actors.permissions import PermissionHandler
from exeunt.actors.prices import NO_PRICES, Price, Prices, price_of
from exeunt.actors.state.termination import Limits
from exeunt.actors.tools import ToolSet
from exeunt.actors.turn_requests import TurnRequestHandler
from exeunt.actors.user_input import UserInputHandler

Siblings = Literal["wait", "cancel"]
Durability = Literal["default", "strict", "relaxed"]


def _seconds(instance: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InvalidConfiguration(f"{attribute.name} must be a positive number of seconds, not {value!r}")


def _count(instance: object, attribute: "attrs.Attribute[int]", value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidConfiguration(f"{attribute.name} must be a whole number of at least 0, not {value!r}")


def _room(instance: object, attribute: "attrs.Attribute[int]", value: int) -> None:
    _count(instance, attribute, value)
    if value < 1:
        raise InvalidConfiguration(
            f"{attribute.name} must be at least 1: with none, every message is refused"
        )


@attrs.frozen(kw_only=True)
class Waits:
    """Bounds of a session's waits, in seconds. A tool's own time-out stands with the tool."""

    approval: float = attrs.field(default=3600.0, validator=_seconds)
    """People go to lunch; an hour later the model is told that nobody answered. A tool may have its own."""
    user_input: float = attrs.field(default=3600.0, validator=_seconds)
    """For the answer to a question that does not say how long it waits. As long as for an approval."""
    hook: float = attrs.field(default=60.0, validator=_seconds)
    slot: float = attrs.field(default=60.0, validator=_seconds)
    """For a tool slot of the host and the tenant."""
    model_first: float = attrs.field(default=120.0, validator=_seconds)
    """For the first piece of a streamed answer."""
    model_gap: float = attrs.field(default=60.0, validator=_seconds)
    """Between two pieces of a streamed answer."""
    model_stream: float = attrs.field(default=3600.0, validator=_seconds)
    """For a streamed answer in all: a model that drips for ever would never be silent."""
    model_total: float = attrs.field(default=600.0, validator=_seconds)
    """For an answer that is not streamed: its first byte comes when all of it has been made."""


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """How often, and after what time, a failed model call is tried again."""

    attempts: int = attrs.field(default=5, validator=_count)
    """Further attempts after the first. Five with these delays ride out about 15 s."""
    first_delay: float = attrs.field(default=0.5, validator=_seconds)
    factor: float = attrs.field(default=2.0, validator=_seconds)
    longest_delay: float = attrs.field(default=8.0, validator=_seconds)
    """A `Retry-After` of the provider is obeyed even when it is longer; doors refuse absurd ones."""
    jitter: float = attrs.field(default=0.25, validator=attrs.validators.ge(0))
    """Share of the delay that is random, so that sessions that failed together do not return together."""


def _needs(what: str, fits: Callable[[Any], bool]) -> Any:
    """Return a validator: a value that does not fit is refused with *what* it must be."""

    def check(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not fits(value):
            raise InvalidConfiguration(f"{attribute.name} must be {what}, not {value!r:.80}")

    return check


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _one_of(*choices: str) -> Any:
    return _needs(" or ".join(map(repr, choices)), lambda value: value in choices)


_handler = _needs("callable", lambda value: value is None or callable(value))
_model = _needs(
    "an object with complete() and stream(), or a name",
    lambda value: callable(getattr(value, "complete", None)) and callable(getattr(value, "stream", None)),
)


def _optional_model(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None:
        _model(instance, attribute, value)


def _priced(instance: object, attribute: "attrs.Attribute[Prices]", value: Any) -> None:
    given = value
    if not isinstance(value, Mapping) or not all(map(_is_price, given.items())):
        raise InvalidConfiguration(
            f"prices must be a mapping of models' names to exeunt.Price, not {value!r:.80}"
        )


def _is_price(item: tuple[Any, Any]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], Price)


_texts = attrs.validators.deep_iterable(
    member_validator=_needs("texts that are not empty", lambda value: isinstance(value, str) and value != ""),
    iterable_validator=_needs("a tuple of texts", _of(tuple)),
)


def _label(model: ModelClient, attribute: str) -> str:
    name = getattr(model, attribute, None)
    return name if isinstance(name, str) else type(model).__name__


def _model_label(options: "SessionOptions") -> str:
    return _label(options.model, "model")


def _provider_label(options: "SessionOptions") -> str:
    return _label(options.model, "provider")


@attrs.frozen(kw_only=True)
class SessionOptions:
    """Everything that the embedding program gives a session, and gives it anew when it is resumed."""

    model: ModelClient = attrs.field(validator=_model)
    tools: ToolSet = attrs.field(factory=lambda: ToolSet(()), validator=_needs("a ToolSet", _of(ToolSet)))
    system_message: str | None = attrs.field(default=None, validator=_needs("a text", _of(str, NoneType)))
    developer_messages: tuple[str, ...] = attrs.field(default=(), validator=_texts)
    on_permission_request: PermissionHandler | None = attrs.field(default=None, validator=_handler)
    """Without one, only tools with `skip_permission` run."""
    on_user_input_request: UserInputHandler | None = attrs.field(default=None, validator=_handler)
    """Without one, a question to the user is refused."""
    hooks: Hooks = attrs.field(default=NO_HOOKS, validator=_needs("Hooks", _of(Hooks)))
    tenant: str = attrs.field(default="", validator=_needs("a text", _of(str)))
    streaming: bool = attrs.field(default=False, validator=_needs("True or False", _of(bool)))
    current_datetime: bool = attrs.field(default=False, validator=_needs("True or False", _of(bool)))
    """Whether the message that begins a turn is preceded by the date and the time at which the turn began."""
    limits: Limits = attrs.field(factory=Limits, validator=_needs("Limits", _of(Limits)))
    waits: Waits = attrs.field(factory=Waits, validator=_needs("Waits", _of(Waits)))
    retries: RetryPolicy = attrs.field(
        factory=RetryPolicy, validator=_needs("a RetryPolicy", _of(RetryPolicy))
    )
    media_limits: MediaLimits = attrs.field(
        default=DEFAULT_MEDIA_LIMITS, validator=_needs("MediaLimits", _of(MediaLimits))
    )
    mailbox_size: int = attrs.field(default=256, validator=_room)
    """Accepted messages that may wait for the context. 256 is minutes of a person's typing."""
    siblings: Siblings = attrs.field(default="wait", validator=_one_of("wait", "cancel"))
    """What becomes of the other calls of a batch when one of them clears the context."""
    durability: Durability = attrs.field(default="default", validator=_one_of("default", "strict", "relaxed"))
    """What waits until the journal cannot lose what came before. `default`: the acknowledgement of a message, the
    start of a tool, the request after a clear. `strict`: events and replies too. `relaxed`: nothing."""
    max_consecutive_clears: int = attrs.field(default=16, validator=_count)
    """Turns in a row that take in nothing and do nothing but clear, before a clear is refused."""
    prices: Prices = attrs.field(default=NO_PRICES, validator=_priced)
    """What calls cost, by the name of the model; `"*"` is any other. Without them nothing is counted in credits."""
    on_session_limits_exhausted: TurnRequestHandler | None = attrs.field(default=None, validator=_handler)
    """Asked what is to become of a turn when the credits are spent. Without one, the turn ends."""
    auto_model: ModelClient | None = attrs.field(default=None, validator=_optional_model)
    """The model with which a turn may go on when the provider of `model` is at a limit."""
    on_auto_mode_switch_request: TurnRequestHandler | None = attrs.field(default=None, validator=_handler)
    """Asked whether it is to. Without one, it does not."""
    model_name: str = attrs.field(init=False, default=attrs.Factory(_model_label, takes_self=True))
    """What the model client calls its model (`model`), or the name of its class."""
    provider_name: str = attrs.field(init=False, default=attrs.Factory(_provider_label, takes_self=True))
    """What it calls its provider (`provider`), or the name of its class."""

    def __attrs_post_init__(self) -> None:
        if self.limits.credits is not None and self.price is None:
            raise PriceUnknown(
                f"the session is to spend at most {self.limits.credits:g} credits, and {self.model_name!r:.80} has no "
                "price, so that nobody could count them: give prices={...} for it, or for '*'"
            )

    @property
    def price(self) -> Price | None:
        """What a call of the model costs; `None` where nobody has said."""
        return price_of(self.prices, self.model_name)


def messages_from(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return developer messages given as one text, several, or none."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
