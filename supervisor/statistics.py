"""A look at a host."""

from collections.abc import Mapping

import attrs

from exeunt.supervisor.admission import AdmissionStatistics
from exeunt.supervisor.children import SupervisorStatistics
from exeunt.supervisor.slots import SlotStatistics


@attrs.frozen
class HostStatistics:
    """What a host is doing at one moment. Costs O(sessions)."""

    sessions: Mapping[str, int]
    """Sessions by state: `live`, `restarting`, `stopping`, `failed`; and `passive`, which have left memory."""
    busy: int
    """Sessions with a turn, or a call of the host, at work or waiting."""
    mailbox_depth: int
    """Accepted messages that are not yet in a context, over all sessions."""
    mailbox_refused: int
    """Messages refused with `MailboxFull` or `JournalUnavailable` since the host began."""
    tool_calls_in_flight: int
    """Tool calls between their start and their recorded outcome."""
    pending_requests: int
    """Approvals and questions to users that nobody has answered."""
    subscriber_lag: int
    """Times that a subscriber's buffer was full."""
    subscriber_errors: int
    """Exceptions of observers and subscribers."""
    stuck_handlers: int
    """Tasks of calls whose outcome was decided without them and that have not come back."""
    pruned: int
    """Stored sessions that `prune_sessions` has deleted since the host began."""
    options_forgotten: int
    """Disconnected sessions whose options made room for those of others: their resume has to give options."""
    admission: Mapping[str, int]
    """Decisions about turns: `granted`, `queued`, `refused`."""
    turns: AdmissionStatistics
    """Slots of turns, in all and by tenant, and what was decided about messages."""
    tools: SlotStatistics
    """Slots of tool calls, in all and by tenant."""
    services: SupervisorStatistics
    """The host's own services."""
