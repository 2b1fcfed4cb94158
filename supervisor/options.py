"""What a host is configured with."""

from collections.abc import Mapping

import attrs

from exeunt.supervisor.checks import number, whole_number
from exeunt.supervisor.restarts import Backoff, RestartIntensity


@attrs.frozen(kw_only=True)
class HostOptions:
    """Bounds of a host, for all of its sessions together."""

    running_turns: int = attrs.field(default=10_000, validator=whole_number(least=1))
    """Turns at work at once. Ten thousand at once keep half of a core busy with the collector alone."""
    waiting_turns: int = attrs.field(default=100_000, validator=whole_number(least=0))
    """Turns that may wait for one of these, before messages are refused with `Overloaded`."""
    tenant_turns: int | None = None
    """Running and waiting turns of one tenant; `None` lets a tenant fill the host."""
    tool_slots: int = attrs.field(default=10_000, validator=whole_number(least=1))
    """Handlers of tools at work at once."""
    tenant_tool_slots: int | None = None
    """Of one tenant; `None` lets a tenant take all."""
    weights: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Shares of tenants while several wait; 1 for those that are not named."""
    threads: int = attrs.field(default=64, validator=whole_number(least=1))
    """Worker threads of synchronous handlers. They mostly wait; 64 stacks are 0.5 GiB of address space."""
    intensity: RestartIntensity = attrs.field(factory=RestartIntensity)
    """Restarts that one session may have before it is given up."""
    backoff: Backoff = attrs.field(factory=Backoff)
    """Waits before them."""
    passivate_after: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number(least=0, open_at_least=True))
    )
    """Seconds that a session is idle before it leaves memory; `None` never. With a journal in memory its log stays."""
    most_live: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(whole_number(least=1))
    )
    """Sessions in memory at once; beyond it idle ones leave, the one used longest ago first. Busy ones stay."""
    remembered_options: int = attrs.field(default=10_000, validator=whole_number(least=0))
    """Disconnected sessions whose options are known to a resume that gives none; beyond it the ones that were
    disconnected first are forgotten. Handlers and models that nobody else holds stay in memory with them."""
    journal_wait: float = attrs.field(default=0.0, validator=number(least=0))
    """Seconds that `open_host` waits for a journal whose database is away, such as one that starts at the same time;
    the log says so. Then, and with 0 at once, it raises."""
    shutdown_grace: float = attrs.field(default=5.0, validator=number(least=0))
    """Seconds that the sessions together may take to end their turns when the host ends."""


STUCK_REPORT_EVERY = 5.0
"""Seconds between two log lines about handlers that keep the host from ending: often enough for a person who
watches, rare enough for a log."""
