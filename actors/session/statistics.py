"""A look at a session."""

from typing import TYPE_CHECKING

import attrs

from exeunt.actors.session.waiting import in_flight, phase
from exeunt.actors.turn import requests, turn_questions

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor


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


def statistics_of(actor: "SessionActor") -> SessionStatistics:
    """Return a look at the session of *actor*."""
    state = actor.state
    return SessionStatistics(
        session_id=actor.id,
        tenant=actor.options.tenant,
        status=actor.status,
        phase=phase(actor),
        turn_id=None if actor.turn is None else actor.turn.turn_id,
        generation=state.context.generation,
        messages=state.context.conversation_length,
        events=state.seq,
        unsaved=max(0, state.seq - actor.log.durable_seq),
        journal_available=actor.log.has_room,
        queued=len(state.queue or ()),
        steered=len(state.steering or ()),
        in_flight=in_flight(actor),
        mailbox_depth=actor.mailbox_depth,
        clear_staged=actor.clear is not None,
        clears_in_a_row=state.clears_in_a_row,
        restarts=actor.epoch,
        subscribers=len(actor.subscribers),
        pending_requests=sum(1 for _ in requests.listed(actor))
        + (turn_questions.open_question(actor) is not None),
        credits_spent=state.account.spent_credits,
        credit_limit=state.account.limit_credits,
    )
