"""Replacing the beginning of the conversation by a shorter text. The log stays as it is. Handlers of the actor."""

from typing import Any

import outcome

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.events import SessionCompacted
from exeunt.actors.state.context import may_be_cut
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter
from exeunt.actors.turn.truncation import busy


def compact(
    actor: SessionActor,
    content: str,
    messages: int,
    generation: int,
    trigger: str,
    note: dict[str, Any] | None,
    waiter: Waiter,
) -> None:
    """Put *content* in the place of the first *messages*, and give *waiter* the event; refuse it otherwise."""
    context = actor.context
    if not actor.free:
        actor.wake(waiter, outcome.Error(busy(actor)))
    elif generation != context.generation:
        text = (
            f"the context of session {actor.id} has been replaced: it is number {context.generation}, and no longer "
            f"number {generation}, whose messages were to be compacted"
        )
        actor.wake(waiter, outcome.Error(InvalidConfiguration(text)))
    elif not may_be_cut(context, messages):
        text = (
            f"{messages!r} messages cannot be replaced: the context of session {actor.id} has {context.length}, and a "
            "result of a tool stays with its call"
        )
        actor.wake(waiter, outcome.Error(InvalidConfiguration(text)))
    else:
        event = actor.emit(SessionCompacted, content, messages, generation + 1, trigger, note)
        actor.wake(waiter, outcome.Value(event))
