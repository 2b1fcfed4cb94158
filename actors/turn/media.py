"""Keeping what the context holds of media within its bound. A part of the handlers of the actor."""

from exeunt.actors.events import MediaRemoved
from exeunt.actors.state.media import surplus
from exeunt.actors.turn.actor import SessionActor


def make_room(actor: SessionActor) -> None:
    """Let the oldest media leave the context where it holds too much. Called when new ones have come."""
    found = surplus(actor.context, actor.options.media_limits.session)
    if found is not None:
        actor.emit(MediaRemoved, *found)
