"""How long a provider asks to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.models.http.retry_after import MAX_WAIT, RetryAdvice, limited_for, parse_wait, retry_advice

NOW = 1_790_000_000.0
"""Mon, 21 Sep 2026 14:13:20 GMT."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 0.5 ", 0.5),
        (".5", 0.5),
        ("1.57s", 1.57),
        ("120ms", 0.12),
        ("6m0s", 360.0),
        ("1h 2m", 3720.0),
        ("Mon, 21 Sep 2026 14:13:50 GMT", 30.0),
        ("Mon, 21 Sep 2026 14:13:50", 30.0),
        ("Mon, 21 Sep 2026 14:00:00 GMT", 0.0),
        ("1790000005", 5.0),
        ("1790000005000", 5.0),
    ],
)
def test_a_wait_is_understood_in_each_form(text: str, seconds: float) -> None:
    assert parse_wait(text, now=NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "inf",
        "Infinity",
        "nan",
        "-1",
        "1e10000",
        "1e3",
        "0x10",
        "7 apples",
        "\u0665",
        "s",
        "9" * 5000,
    ],
)
def test_nonsense_is_no_wait(text: str) -> None:
    assert parse_wait(text, now=NOW) is None


@given(st.text(alphabet="0123456789.smhd :,GMTFri-+e", max_size=70))
def test_whatever_is_sent_a_wait_is_finite_and_not_negative(text: str) -> None:
    wait = parse_wait(text, now=NOW)
    assert wait is None or 0 <= wait < float("inf")


@pytest.mark.parametrize(
    ("headers", "advice"),
    [
        ({}, RetryAdvice(True, None)),
        ({"retry-after": "0.5"}, RetryAdvice(True, 0.5)),
        ({"retry-after": str(MAX_WAIT)}, RetryAdvice(True, MAX_WAIT)),
        ({"retry-after": "61"}, RetryAdvice(False, None)),
        ({"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}, RetryAdvice(False, None)),
        ({"retry-after": "1e10000"}, RetryAdvice(True, None)),
        ({"retry-after-ms": "250", "retry-after": "9"}, RetryAdvice(True, 0.25)),
        ({"retry-after": "soon", "x-ratelimit-reset-tokens": "1.57s"}, RetryAdvice(True, 1.57)),
        (
            {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "1.57s"},
            RetryAdvice(True, 1.57),
        ),
        ({"x-ratelimit-reset-requests": "6m0s"}, RetryAdvice(True, None)),
    ],
)
def test_an_order_to_wait_too_long_forbids_the_retry_and_a_hint_does_not(
    headers: dict[str, str], advice: RetryAdvice
) -> None:
    assert retry_advice(headers, now=NOW) == advice


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "604800"}, 604_800.0),
        ({"retry-after": "soon"}, None),
        ({"x-ratelimit-reset": "5"}, None),
        ({}, None),
    ],
)
def test_how_long_a_limit_lasts_is_told_however_long(headers: dict[str, str], seconds: float | None) -> None:
    assert limited_for(headers, now=0.0) == seconds
