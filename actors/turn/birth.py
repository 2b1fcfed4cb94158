"""How an activation of a session begins: new, or from its log. Handlers of the actor."""

import attrs

from exeunt.actors.events import Origin, SessionResume, SessionStart, SystemMessage
from exeunt.actors.options import SessionOptions
from exeunt.actors.state import SessionState
from exeunt.actors.turn import recovery, turns
from exeunt.actors.turn.actor import SessionActor


def begin(actor: SessionActor) -> None:
    """Log the beginning of a new session and its system and developer messages."""
    options = actor.options
    actor.emit(SessionStart, actor.id, options.tenant, options.model_name)
    _emit_preamble(actor)


def load(actor: SessionActor) -> None:
    """Make the state of a new activation from the log. Not a handler: runs before the actor has a mailbox."""
    events = actor.log.read()
    actor.state = SessionState.replay(events)
    actor.origin = Origin.fresh(events[-1].id if events else None, actor.state.seq + 1)
    actor.resumed = True


def take_up(actor: SessionActor, continue_pending_work: bool) -> None:
    """Log that the session goes on; close what the log shows as open; go on with what waits if asked."""
    actor.emit(SessionResume, actor.state.seq, continue_pending_work)
    _emit_preamble(actor)
    recovery.close_open_work(actor, None)
    if continue_pending_work:
        seed = actor.context.unanswered_seed
        if seed is not None:
            turns.begin_seeded(actor, seed, None)
        else:
            actor.active = actor.state.waiting > 0
            turns.begin_next(actor)


def reconfigure(actor: SessionActor, options: SessionOptions) -> None:
    """Use other options from the next step on. The tenant stays: slots are held in its name."""
    if options.tenant != actor.options.tenant:
        options = attrs.evolve(options, tenant=actor.options.tenant)
    before, actor.options = actor.options, options
    if _preamble(before) != _preamble(options):
        _emit_preamble(actor)


def _preamble(options: SessionOptions) -> tuple[str | None, tuple[str, ...]]:
    return options.system_message, options.developer_messages


def _emit_preamble(actor: SessionActor) -> None:
    system, developer = _preamble(actor.options)
    wanted = ([(system, "system")] if system else []) + [(text, "developer") for text in developer]
    if [(message.content, message.role) for message in actor.context.preamble] == wanted:
        return
    for position, (text, role) in enumerate(wanted):
        actor.emit(SystemMessage, text, role, position == 0)
