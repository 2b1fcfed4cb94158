"""How an activation of a session begins: new, or from its log. Handlers of the actor."""

import attrs

from exeunt.actors.events import SessionIdle, SessionModelChange, SessionResume, SessionStart, SystemMessage
from exeunt.actors.options import SessionOptions
from exeunt.actors.turn import budget, recovery, resumption, turns
from exeunt.actors.turn.actor import SessionActor


def begin(actor: SessionActor) -> None:
    """Log the beginning of a new session and its system and developer messages."""
    options = actor.options
    actor.emit(SessionStart, actor.id, options.tenant, options.model_name)
    _emit_preamble(actor)
    _limit(actor)


async def load(actor: SessionActor) -> None:
    """Make the state of a new activation from the log. Not a handler: runs before the actor has a mailbox.

    Raises `JournalError`, `ContextError` for a log that is damaged.
    """
    snapshot, events = await recovery.read_log(actor.log)
    recovery.rebuild(actor, snapshot, events)


def take_up(actor: SessionActor, continue_pending_work: bool) -> None:
    """Log that the session goes on; close what the log shows as open; go on with what waits if asked."""
    actor.emit(SessionResume, actor.state.seq, continue_pending_work)
    _emit_preamble(actor)
    _limit(actor)
    if continue_pending_work and actor.state.turn_id is not None:
        resumption.close_host_calls(actor)
        resumption.revive(actor)
        return
    was_at_work = actor.state.turn_id is not None
    recovery.close_open_work(actor, None)
    if continue_pending_work:
        _go_on(actor)
    elif was_at_work and not actor.state.waiting:
        actor.emit(SessionIdle)


def _go_on(actor: SessionActor) -> None:
    seed = actor.context.unanswered_seed
    if seed is not None:
        turns.begin_seeded(actor, seed, None)
    else:
        actor.active = actor.state.waiting > 0
        turns.begin_next(actor)


def come_back(actor: SessionActor, continue_pending_work: bool) -> None:
    """Go on where the session has left memory; take it up where another host has been at work since."""
    if actor.state.turn_id is not None or actor.state.open_calls:
        actor.resumed = True
        take_up(actor, continue_pending_work)
        return
    _emit_preamble(actor)
    if continue_pending_work:
        _go_on(actor)


def reconfigure(actor: SessionActor, options: SessionOptions) -> None:
    """Use other options from the next step on. The tenant stays: slots are held in its name."""
    if options.tenant != actor.options.tenant:
        options = attrs.evolve(options, tenant=actor.options.tenant)
    before, actor.options = actor.options, options
    if _preamble(before) != _preamble(options):
        _emit_preamble(actor)
    if before.limits.credits != options.limits.credits:
        budget.set_limit(actor, options.limits.credits)


def given_anew(actor: SessionActor, options: SessionOptions) -> None:
    """Use the options that the program gives a session which is in memory; log another model."""
    before, after = actor.options.model_name, options.model_name
    reconfigure(actor, options)
    if before != after:
        actor.emit(SessionModelChange, after, before)


def _limit(actor: SessionActor) -> None:
    """Set the limit that the options name; where they name none, that of the log holds."""
    if actor.options.limits.credits is not None:
        budget.set_limit(actor, actor.options.limits.credits)


def _preamble(options: SessionOptions) -> tuple[str | None, tuple[str, ...]]:
    return options.system_message, options.developer_messages


def _emit_preamble(actor: SessionActor) -> None:
    system, developer = _preamble(actor.options)
    wanted = ([(system, "system")] if system else []) + [(text, "developer") for text in developer]
    if [(message.content, message.role) for message in actor.context.preamble] == wanted:
        return
    for position, (text, role) in enumerate(wanted):
        actor.emit(SystemMessage, text, role, position == 0)
