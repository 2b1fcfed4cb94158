"""Events about what a session spends, and about what its turns ask people before they go on."""

from typing import ClassVar

from exeunt.actors.events.envelope import Event


class UsageCheckpoint(Event, frozen=True, gc=False, tag="session.usage_checkpoint"):
    """A model call was paid for. Only in sessions whose model has a price."""

    type: ClassVar[str] = "session.usage_checkpoint"
    model: str
    nano_aiu: int
    """What the call cost, in billionths of a credit."""
    total_nano_aiu: int
    """What the session has spent since it began, this call included."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False
    """Whether the provider did not count, or input or output only; so the rest is guessed from the texts."""


class SessionLimitsChanged(Event, frozen=True, gc=False, tag="session.session_limits_changed"):
    """The session may spend more, or less, than before."""

    type: ClassVar[str] = "session.session_limits_changed"
    max_ai_credits: float | None
    """In all, since the session began; `None`: there is no limit."""


class SessionLimitsExhaustedRequested(Event, frozen=True, gc=False, tag="session_limits_exhausted.requested"):
    """The credits are spent, and somebody is asked what is to become of the turn. It makes no request meanwhile."""

    type: ClassVar[str] = "session_limits_exhausted.requested"
    request_id: str
    turn_id: str
    used_ai_credits: float
    max_ai_credits: float
    deadline: float | None = None
    """When the request ends without an answer, in seconds since the epoch."""


class SessionLimitsExhaustedCompleted(Event, frozen=True, gc=False, tag="session_limits_exhausted.completed"):
    """There is an answer, or there will be none."""

    type: ClassVar[str] = "session_limits_exhausted.completed"
    request_id: str
    turn_id: str
    kind: str
    """`answered`, `unavailable`, `timeout` or `cancelled`."""
    action: str = "cancel"
    """`add`, `set`, `unset` or `cancel`."""
    ai_credits: float | None = None
    """How many to add, or how many there are to be in all."""


class AutoModeSwitchRequested(Event, frozen=True, gc=False, tag="auto_mode_switch.requested"):
    """The provider of the model is at a limit, and somebody is asked whether the turn goes on with another model."""

    type: ClassVar[str] = "auto_mode_switch.requested"
    request_id: str
    turn_id: str
    auto_model: str
    error_type: str
    """The `ModelErrorKind` of the failure."""
    message: str
    """What the provider said."""
    error_code: str = ""
    """The provider's own code, where it has said one."""
    status_code: int | None = None
    retry_after_seconds: float | None = None
    """Until the limit is over, as far as the provider says."""
    deadline: float | None = None
    """When the request ends without an answer, in seconds since the epoch."""


class AutoModeSwitchCompleted(Event, frozen=True, gc=False, tag="auto_mode_switch.completed"):
    """There is an answer, or there will be none."""

    type: ClassVar[str] = "auto_mode_switch.completed"
    request_id: str
    turn_id: str
    kind: str
    """`answered`, `unavailable`, `timeout` or `cancelled`."""
    response: str = "no"
    """`yes`, `yes_always` (also the next time, unasked) or `no`."""
