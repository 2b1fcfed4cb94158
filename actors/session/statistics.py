"""A look at a session."""

import attrs


@attrs.frozen
class SessionStatistics:
    """What a session is doing at one moment."""

    session_id: str
    """The session's id."""
    tenant: str
    """The tenant whose share of the host it uses; `""` for none in particular."""
    status: str
    """`live`, `passive`, `unconfigured`, `restarting`, `stopping`, `failed` or `closed`. What is said of a passive
    session is what it was when it left memory."""
    phase: str
    """`idle`, `waiting` (for a slot), `prompt_hooks`, `model`, `tools`, `question` (the turn asks people before it goes
    on), `host_call`, `errand` (what its host does between turns) or `session_end_hook`."""
    turn_id: str | None
    """The turn that runs; `None` while none does."""
    generation: int
    """Clears so far."""
    messages: int
    """Messages in the context, system and developer messages not counted."""
    events: int
    """Events in the log."""
    unsaved: int
    """Events of these that are not durable yet."""
    journal_available: bool
    """Whether the journal takes new work. While it does not, `send` raises `JournalUnavailable`, running turns wait
    before their next request or call, and what was accepted is kept until the store is back."""
    queued: int
    """Messages that wait for a turn of their own."""
    steered: int
    """Messages that wait for the running turn's next request."""
    in_flight: tuple[str, ...]
    """Names of the tools whose calls have no outcome yet, in call order."""
    mailbox_depth: int
    """Everything accepted that is not at work yet; the mailbox's bound counts these."""
    clear_staged: bool
    """Whether a clear waits for the outcome of the call that owns it."""
    clears_in_a_row: int
    """Turns up to now that did nothing but clear the context and took in no message; their bound is
    `max_consecutive_clears`."""
    restarts: int
    """Restarts of the actor in this activation."""
    subscribers: int
    """Callbacks and event streams that get its events."""
    pending_requests: int = 0
    """Approvals, questions to the user, and requests for credits or another model that nobody has answered."""
    credits_spent: float = 0.0
    """What its calls of models have cost since it began, as far as they have a price."""
    credit_limit: float | None = None
    """What they may cost in all; `None` without a limit."""
