"""What calls of models have taken, as the protocol sums it up."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from exeunt.actors.state.account import Account, Spent

if TYPE_CHECKING:
    from exeunt.wire.events.mapper import Usage


def of_models(seen: Mapping[str, "Usage"], paid: Mapping[str, Spent]) -> dict[str, Any]:
    """Return the sums of each model.

    *paid* are those of models with a price, which are in the log and count since the session began; *seen* is what was
    seen of all since it came into memory, and knows besides which tokens were reasoning.
    """
    metrics = {name: _of_model(sums, sums.reasoning_tokens) for name, sums in seen.items()}
    for name, spent in paid.items():
        reasoning = seen[name].reasoning_tokens if name in seen else 0
        metrics[name] = {**_of_model(spent, reasoning), "totalNanoAiu": spent.nano}
    return metrics


def _of_model(sums: "Usage | Spent", reasoning_tokens: int) -> dict[str, Any]:
    tokens = {
        "inputTokens": sums.input_tokens,
        "outputTokens": sums.output_tokens,
        "cacheReadTokens": sums.cache_read_tokens,
        "cacheWriteTokens": sums.cache_write_tokens,
    }
    if reasoning_tokens:
        tokens["reasoningTokens"] = reasoning_tokens
    return {"requests": {"count": sums.calls, "cost": 0}, "usage": tokens}


def milliseconds(seen: Mapping[str, "Usage"]) -> int:
    """Return what all calls have taken together."""
    return int(sum(sums.seconds for sums in seen.values()) * 1000)


def of_session(seen: Mapping[str, "Usage"], account: Account) -> dict[str, Any]:
    """Return the figures of a session that ends."""
    figures: dict[str, Any] = {
        "totalApiDurationMs": milliseconds(seen),
        "modelMetrics": of_models(seen, account.models),
    }
    if account.models:
        figures["totalNanoAiu"] = account.spent
    return figures
