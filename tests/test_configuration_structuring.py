"""Options given as mappings."""

from typing import Any

import pytest

from exeunt import InvalidConfiguration, Limits, RetryPolicy, Waits, build_options, tool
from exeunt.testing import ScriptedModel


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return topic


def build(**keywords: Any) -> Any:
    return build_options(model=ScriptedModel([]), **keywords)


def test_limits_waits_and_retries_may_be_mappings_of_their_fields() -> None:
    options = build(limits={"steps": 3}, waits={"approval": 5}, retries={"attempts": 1, "jitter": 0})

    assert Limits(steps=3) == options.limits
    assert Waits(approval=5.0) == options.waits
    assert RetryPolicy(attempts=1, jitter=0.0) == options.retries


def test_sessions_that_ask_for_nothing_share_the_defaults() -> None:
    one, two = build(), build()

    assert one.limits is two.limits
    assert one.waits is two.waits
    assert one.retries is two.retries


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"limits": {"steps": "3"}}, "'3' is no whole number @ limits.steps"),
        ({"limits": {"steps": True}}, "True is no whole number @ limits.steps"),
        ({"limits": {"steps": 0}}, "limit 'steps' must be a whole number of at least 1, not 0 @ limits"),
        (
            {"limits": {"stepz": 3}},
            "unknown: stepz; there are steps, failed_batches, tokens, credits @ limits",
        ),
        ({"waits": {"b": 1, "a": 2}}, "unknown: a, b; there are approval, "),
        ({"tools": 3}, "tools must be a list of tools, or a ToolSet, not 3"),
        ({"tools": look_up}, "tools must be a list of tools, or a ToolSet, not the tool 'look_up' alone"),
        ({"limits": 7}, "limits must be a mapping or a Limits, not 7"),
        ({"waits": {"hook": "x"}}, "'x' is no number @ waits.hook"),
        ({"waits": {"slot": -1}}, "slot must be a positive number of seconds, not -1.0"),
        ({"mailbox_size": 0}, "mailbox_size must be at least 1"),
        ({"retries": {"attempts": -1}}, "attempts must be a whole number of at least 0, not -1"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        build(**keywords)

    assert said in str(refused.value)
