"""How much a model may think and say, in the words that it understands. Pure.

Models from version 4.6 on decide themselves how much they think, by an effort; later ones refuse a budget. Those
before, and what other makers put behind the API, know a budget of tokens.
"""

import re
from collections.abc import Mapping
from typing import Any

from exeunt.actors.errors import InvalidConfiguration

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""What may be asked for, from the least on. `none` is the model's own default, which for many is not to think."""

# As in claude-sonnet-4-5-20250929, claude-3-7-sonnet-latest, anthropic.claude-opus-4-6-v1:0 and claude-opus-4.6.
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])", re.ASCII)

_ADAPTIVE = (4, 6)
_KNOWS_XHIGH = (4, 7)

# Tokens. The least that the API takes is 1024; each step about doubles.
_BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 31_000,
}
_LEAST_BUDGET = 1024

# Tokens that are left for the answer itself.
_LEAST_ANSWER = 1024

_MOST_TOKENS = 32_000
_MOST_TOKENS_OF: Mapping[tuple[int, int], int] = {(3, 0): 4096, (3, 5): 8192}


def version_of(model: str) -> tuple[int, int] | None:
    """Return the version in the name of a Claude model, `None` for other models."""
    match = _VERSION.search(model.lower())
    return None if match is None else (int(match[1]), int(match[2] or 0))


def most_tokens_of(model: str) -> int:
    """Return the tokens that an answer may have when nobody has said it.

    The API refuses more than a model can give, so it is what every model of a version has.
    """
    version = version_of(model)
    return _MOST_TOKENS if version is None else _MOST_TOKENS_OF.get(version, _MOST_TOKENS)


def fields_of_effort(model: str, effort: str | None, max_tokens: int) -> dict[str, Any]:
    """Return the fields of a request that ask for *effort*. Raises `InvalidConfiguration` for an unknown one.

    A budget leaves room for the answer in *max_tokens*; where there is none, the model does not think.
    """
    if effort is None or effort == "none":
        return {}
    if effort not in EFFORTS:
        raise InvalidConfiguration(f"effort {effort!r} is not known: use one of {', '.join(EFFORTS)}")
    version = version_of(model)
    if version is not None and version >= _ADAPTIVE:
        return _adaptive(version, effort)
    budget = min(_BUDGETS[effort], max_tokens - _LEAST_ANSWER)
    # Claude learned to think with 3.7.
    if budget < _LEAST_BUDGET or (version is not None and version < (3, 7)):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(version: tuple[int, int], effort: str) -> dict[str, Any]:
    thinking: dict[str, Any] = {"type": "adaptive"}
    if version >= _KNOWS_XHIGH:
        # These keep their thoughts to themselves unless one asks.
        thinking["display"] = "summarized"
    elif effort == "xhigh":
        effort = "high"
    return {"thinking": thinking, "output_config": {"effort": "low" if effort == "minimal" else effort}}
