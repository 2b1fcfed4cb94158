"""What calls cost: sums that nothing is lost in, whatever providers say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt import InvalidConfiguration, Price, Usage
from exeunt.actors.prices import MOST_NANO, NANO, price_of, shown, to_nano

tokens = st.integers(-10, 1_000_000)
credits_each = st.floats(0.0, 1_000.0)
prices = st.builds(
    Price,
    input=credits_each,
    output=credits_each,
    cached_input=st.none() | credits_each,
    cache_write=st.none() | credits_each,
    request=credits_each,
)
usages = st.builds(
    Usage, tokens, tokens, cache_read_tokens=tokens, cache_write_tokens=tokens, reasoning_tokens=tokens
)


def test_a_call_costs_what_its_tokens_and_the_call_itself_do() -> None:
    price = Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75, request=0.01)
    usage = Usage(1_000, 100, cache_read_tokens=400, cache_write_tokens=200)
    by_hand = 400 * 3.0 + 400 * 0.3 + 200 * 3.75 + 100 * 15.0
    assert price.cost(usage) == to_nano(by_hand / 1_000_000 + 0.01)


def test_cached_input_costs_as_any_other_where_nobody_says_what() -> None:
    price = Price(input=2.0)
    assert price.cost(Usage(1_000_000, 0, cache_read_tokens=300_000, cache_write_tokens=100)) == 2 * NANO


@given(prices, usages)
def test_a_call_never_gives_credits_back(price: Price, usage: Usage) -> None:
    assert price.cost(usage) >= 0


absurd = st.integers(-(10**400), 10**400)


@given(prices, st.builds(Usage, absurd, absurd, absurd, absurd))
def test_no_call_costs_more_than_a_session_can_have(price: Price, usage: Usage) -> None:
    assert 0 <= price.cost(usage) <= MOST_NANO


@given(prices, st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_tokens_never_cost_less(price: Price, some: int, more: int) -> None:
    assert price.cost(Usage(some + more, some)) >= price.cost(Usage(some, some))
    assert price.cost(Usage(some, some + more)) >= price.cost(Usage(some, some))


@given(st.integers(0, 10**18))
def test_what_is_shown_is_never_more_than_there_is(nano: int) -> None:
    text = shown(nano)
    if text == "less than 0.01":
        assert 0 < nano < NANO // 100
    else:
        assert nano - NANO // 100 < float(text) * NANO < nano + 1 + nano * 1e-12


@pytest.mark.parametrize(
    ("amount", "text"),
    [(30, "30"), (29.999, "29.99"), (0.5, "0.5"), (0.001, "less than 0.01"), (0, "0"), (1_000.10, "1000.1")],
)
def test_credits_are_shown_as_a_person_reads_them(amount: float, text: str) -> None:
    assert shown(to_nano(amount)) == text


def test_a_price_of_its_own_wins_over_that_of_any_model() -> None:
    one, any_other = Price(input=1.0), Price(input=2.0)
    prices = {"m": one, "*": any_other}
    assert (price_of(prices, "m"), price_of(prices, "n")) == (one, any_other)
    assert price_of({"m": one}, "n") is None


@pytest.mark.parametrize("value", [-1, True, "3", float("nan"), float("inf"), 1e10, None])
def test_a_price_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="price 'input'"):
        Price(input=value)
