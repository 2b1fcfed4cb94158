"""What model calls cost, in credits. Pure.

A credit is whatever the host counts in: a unit of a provider's bill, a cent, a share of a plan. Sums are kept in whole
billionths of a credit, so that what is counted live and what is added up from a log are equal.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MOST_TOKENS, Usage

NANO = 1_000_000_000
"""Parts of a credit in which is counted; the Copilot SDK calls one a nano AI unit."""

MOST_CREDITS = 1e9
"""A sum that no session comes to, and whose parts a float still tells apart."""

MOST_NANO = int(MOST_CREDITS) * NANO
"""The same in billionths, of which the sum stays a whole number of 64 bits."""

ANY_MODEL = "*"
"""Under this name stands the price of models that have none of their own."""

_NANO_A_TOKEN = NANO / 1_000_000


def _price(instance: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is None and attribute.default is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_CREDITS:
        raise InvalidConfiguration(
            f"price {attribute.name!r} must be a number of credits from 0 to {MOST_CREDITS:g}, not {value!r:.80}"
        )


@attrs.frozen(kw_only=True)
class Price:
    """What the calls of one model cost: credits for a million tokens, and for each call."""

    input: float = attrs.field(default=0.0, validator=_price)
    output: float = attrs.field(default=0.0, validator=_price)
    cached_input: float | None = attrs.field(default=None, validator=_price)
    """For input that the provider had in its cache; `None`: as any other."""
    cache_write: float | None = attrs.field(default=None, validator=_price)
    """For input that the provider puts into its cache; `None`: as any other."""
    request: float = attrs.field(default=0.0, validator=_price)
    """For each call, whatever its size."""

    @property
    def counts_tokens(self) -> bool:
        """Whether the cost of a call depends on its size."""
        return bool(self.input or self.output or self.cached_input or self.cache_write)

    def cost(self, usage: Usage) -> int:
        """Return what a call with this usage costs, in billionths of a credit: from 0 to `MOST_CREDITS`."""
        usage = plausible(usage)
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        plain = max(0, usage.input_tokens - read - written)
        cached = self.input if self.cached_input is None else self.cached_input
        writing = self.input if self.cache_write is None else self.cache_write
        tokens = plain * self.input + read * cached + written * writing
        tokens += usage.output_tokens * self.output
        return min(round(tokens * _NANO_A_TOKEN + self.request * NANO), MOST_NANO)


def plausible(usage: Usage) -> Usage:
    """Return what can be counted of *usage*: a client may say anything, and a call never gives credits back."""
    return Usage(*(_count(getattr(usage, name)) for name in Usage.__struct_fields__))


def _count(tokens: Any) -> int:
    return min(max(tokens, 0), MOST_TOKENS) if isinstance(tokens, int) else 0


Prices = Mapping[str, Price]
"""By the name of the model, as its client calls it."""

NO_PRICES: Prices = MappingProxyType({})
"""Where nothing is counted. Shared, and known by what it is: sessions without prices do no work for them."""


def price_of(prices: Prices, model: str) -> Price | None:
    """Return the price of a model's calls; `None` where nobody has said one."""
    return prices.get(model) or prices.get(ANY_MODEL)


def to_nano(amount: float) -> int:
    """Return credits in billionths."""
    return round(amount * NANO)


def checked_credits(name: str, value: Any) -> float | None:
    """Return a limit in credits, `None` for none. Raises `InvalidConfiguration`."""
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 1 / NANO <= value <= MOST_CREDITS
    ):
        raise InvalidConfiguration(
            f"{name} must be a number of credits above 0 and at most {MOST_CREDITS:g}, or None, not {value!r:.80}"
        )
    return float(value)


def shown(nano: int) -> str:
    """Return billionths of a credit as a person reads credits: with two decimals, rounded down, and no zeros behind."""
    hundredths = max(0, nano) * 100 // NANO
    if not hundredths and nano > 0:
        return "less than 0.01"
    whole, part = divmod(hundredths, 100)
    return f"{whole}.{part:02d}".rstrip("0").rstrip(".")
