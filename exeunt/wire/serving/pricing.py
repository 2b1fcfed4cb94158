"""What the calls of models cost: as the server's configuration says, or else as the provider's own list does."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelError
from exeunt.actors.prices import Price, Prices, price_of

logger = logging.getLogger("exeunt.wire")

ASK_AGAIN = 300.0
"""Seconds until a provider is asked anew for prices that it did not tell: a limited session needs them to begin."""

MOST_PRICES = 10_000
"""Models of one list whose prices are kept: the longest lists have some hundred."""

MILLION = 1_000_000


def price_from_billing(billing: Any) -> Price | None:
    """Return the price that a model's `billing` tells, as catalogues of the protocol's own provider have it.

    That of tokens counts, and where there is none, the multiplier: so many credits for each call. `None` for what says
    neither, or nonsense.
    """
    if not isinstance(billing, Mapping):
        return None
    fields = cast("Mapping[str, Any]", billing)
    prices = _first(fields, "tokenPrices", "token_prices")
    try:
        if isinstance(prices, Mapping):
            return _of_tokens(cast("Mapping[str, Any]", prices))
        multiplier = fields.get("multiplier")
        return None if multiplier is None else Price(request=multiplier)
    except (InvalidConfiguration, TypeError, ZeroDivisionError):
        return None


def _of_tokens(prices: Mapping[str, Any]) -> Price:
    batch = _first(prices, "batchSize", "batch_size")
    scale = 1.0 if batch is None else MILLION / batch

    def price(*names: str) -> Any:
        value = _first(prices, *names)
        return None if value is None else value * scale

    return Price(
        input=price("inputPrice", "input_price") or 0.0,
        output=price("outputPrice", "output_price") or 0.0,
        cached_input=price("cacheReadPrice", "cache_read_price", "cachePrice", "cache_price"),
        cache_write=price("cacheWritePrice", "cache_write_price"),
    )


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def billing_of(price: Price) -> dict[str, Any]:
    """Return a price as clients see it."""
    billing: dict[str, Any] = {}
    if price.request:
        billing["multiplier"] = price.request
    if price.counts_tokens:
        tokens = {
            "inputPrice": price.input,
            "outputPrice": price.output,
            "cacheReadPrice": price.cached_input,
            "cacheWritePrice": price.cache_write,
            "batchSize": MILLION,
        }
        billing["tokenPrices"] = {name: value for name, value in tokens.items() if value is not None}
    return billing


def priced(prices: Prices, name: str) -> dict[str, Any]:
    """Return the field of a model's description that tells its price, where that is known."""
    price = price_of(prices, name)
    return {} if price is None else {"billing": billing_of(price)}


class PriceBook:
    """The prices of a server. `prices` is shared by its sessions, and grows when the provider tells more."""

    def __init__(self, configured: Mapping[str, Price]) -> None:
        self.prices: dict[str, Price] = dict(configured)
        self._configured = frozenset(configured)
        self._asking = trio.Lock()
        self._asked_at: float | None = None

    async def fill(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Let the provider be asked, unless it was just now; who comes meanwhile waits for the same answer.

        One that does not tell is not asked again for a while. Cancelled: it was not asked.
        """
        async with self._asking:
            if self._asked_at is not None and trio.current_time() - self._asked_at < ASK_AGAIN:
                return
            try:
                await ask()
            except ModelError as error:
                logger.warning(
                    "the provider's list of models, and so its prices, could not be read: %s", error
                )
            self._asked_at = trio.current_time()

    def learn(self, entries: list[dict[str, Any]]) -> None:
        """Take over what a provider's list tells. What is configured stays."""
        for entry in entries[:MOST_PRICES]:
            name = entry["id"]
            price = price_from_billing(entry.get("billing"))
            if price is not None and name not in self._configured:
                self.prices[name] = price
