"""Which limits of a provider call for another model. Pure rules."""

import attrs

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.actors.options import SessionOptions
from exeunt.actors.prices import price_of
from exeunt.actors.state import SessionState

LASTING = ("hourly", "daily", "weekly", "monthly", "global")
"""Words in a provider's code for limits that trying again does not outlast."""

HOPELESS = ("insufficient_quota", "billing", "integration_rate_limited")
"""Words in codes of limits that hold for whoever pays, whatever the model."""


def is_lasting(options: SessionOptions, state: SessionState, error: ModelError) -> bool:
    """Say whether it is better to offer the other model than to call this one again."""
    if options.auto_model is None:
        return False
    code = error.code.lower()
    return any(word in code for word in LASTING) and may_switch(options, state, error)


def may_switch(options: SessionOptions, state: SessionState, error: ModelError) -> bool:
    """Say whether the turn may go on with the other model, or whether somebody can be asked that."""
    if options.auto_model is None or error.kind is not ModelErrorKind.RATE_LIMITED:
        return False
    if any(word in error.code.lower() for word in HOPELESS):
        return False
    if not countable(options, state):
        return False
    return unasked(state) or options.on_auto_mode_switch_request is not None


def countable(options: SessionOptions, state: SessionState) -> bool:
    """Say whether the calls of the other model can be counted, if they have to be.

    What the options say of a limit counts too, whatever became of it: they cannot be those of a model without a price.
    """
    if state.account.limit is None and options.limits.credits is None:
        return True
    return price_of(options.prices, auto_name(options)) is not None


def unasked(state: SessionState) -> bool:
    """Say whether somebody has answered earlier for all times."""
    return (state.labels or {}).get("auto_mode_switch") == "always"


def gone_on(options: SessionOptions, chosen: str) -> SessionOptions:
    """Return *options* with their other model, if that is the one that was *chosen* while the session ran."""
    if options.auto_model is None or chosen != auto_name(options) or chosen == options.model_name:
        return options
    return attrs.evolve(options, model=options.auto_model, auto_model=None)


def auto_name(options: SessionOptions) -> str:
    """Return what the other model is called."""
    model = options.auto_model
    name = getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__
