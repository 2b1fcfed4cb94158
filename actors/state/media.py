"""Room for media in a context: the oldest leave it. Pure: the fold of `session.media_removed`, and when one is due."""

from typing import Any

import msgspec

from exeunt.actors.errors import ContextError
from exeunt.actors.events.session import MediaRemoved
from exeunt.actors.media import left_out, total_size
from exeunt.actors.state.context import Context

WHY = "newer ones have taken its place"


def surplus(context: Context, limit: int) -> tuple[int, int, int] | None:
    """Say what has to leave *context* so that it holds at most *limit* bytes; `None` where it does.

    Returns the number of the last event whose media leave, how many they are, and their bytes. Half of the limit is
    made free at once: what a provider has cached is of no use behind a change, so that is not to happen at each step.
    The media of the newest message stay in any case.
    """
    bringing = [event for event in context.shared[: context.length] if event.media]
    if sum(total_size(event.media) for event in bringing) <= limit:
        return None
    kept = 0
    for position in range(len(bringing) - 1, -1, -1):
        kept += total_size(bringing[position].media)
        if kept > limit // 2 and position < len(bringing) - 1:
            leaving = bringing[: position + 1]
            size = sum(total_size(event.media) for event in leaving)
            return leaving[-1].seq, sum(len(event.media) for event in leaving), size
    return None


def fold_media_removed(context: Context, event: MediaRemoved) -> Context:
    """Return the context without the media of its older messages."""
    if context.batch is not None:
        raise ContextError(f"media are removed by {event.id}, between a tool call and its result")
    shared = [
        _without(message, message.media) if message.media and message.seq <= event.up_to_seq else message
        for message in context.shared[: context.length]
    ]
    return Context(context.preamble, shared, len(shared), context.generation, None)


def _without(message: Any, media: Any) -> Any:
    lines = (left_out(one, WHY) for one in media)
    content = "\n\n".join(part for part in (message.content, *lines) if part)
    return msgspec.structs.replace(message, content=content, media=())
