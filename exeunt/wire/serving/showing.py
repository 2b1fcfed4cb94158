"""What follows from the events of a session: for its clients, its files, and its size."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import attrs

from exeunt.actors.events import (
    AssistantUsage,
    AutoModeSwitchRequested,
    Event,
    SessionIdle,
    SessionLimitsChanged,
    SessionLimitsExhaustedRequested,
    SessionLost,
    SessionModelChange,
    SessionResume,
    SessionShutdown,
    SessionStart,
    SessionTitleChanged,
    SessionTruncated,
    SystemMessage,
    UserMessage,
)
from exeunt.wire.files.session import SessionFiles
from exeunt.wire.serving.compacting import BY_ITSELF, Compaction, in_background, is_due
from exeunt.wire.serving.sizes import estimate

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served

BEGINNINGS = frozenset({SessionStart, SessionResume, SystemMessage})
"""Events of a session with which nothing was done yet."""

CHANGES = frozenset(
    {
        AutoModeSwitchRequested,
        SessionLimitsChanged,
        SessionLimitsExhaustedRequested,
        SessionModelChange,
    }
)
"""Events that may change what the session runs with, or say what it asks."""


def show(served: "Served", events: Sequence[Event]) -> None:
    """Tell the clients of a session what has happened, and do what follows from it. Never waits."""
    mapper, headers, files = served.mapper, served.headers, served.files
    for event in events:
        if type(event) is SessionLost and served.session is None:
            return  # one of several attempts to take it up
        for wire in mapper.map(event):
            served.tell(wire)
            if files is not None:
                files.note(wire)
        if headers is not None:
            headers.see(event)
        kind = type(event)
        if not served.used and not event.ephemeral:
            served.used = kind not in BEGINNINGS
        if kind is AssistantUsage:
            _tell_size(served, cast("AssistantUsage", event))
        elif kind is SessionIdle:
            _rests(served)
        elif kind is UserMessage and served.config.infiniteSessions is not None and is_due(served):
            compaction = served.compaction = Compaction(served, BY_ITSELF)
            served.hub.host.spawn(partial(in_background, served, compaction))
        elif kind in CHANGES:
            _changed(served, event)
        elif kind is SessionShutdown:
            served.hub.left(served)
        elif kind is SessionLost:
            served.hub.lost(served)
        elif files is not None:
            _filed(files, event)


def _filed(files: SessionFiles, event: Event) -> None:
    """Let the session's files follow what is more than one more event."""
    if isinstance(event, SessionTruncated):
        files.transcript.start_over()
        files.touch()
    elif isinstance(event, SessionTitleChanged) and files.workspace is not None:
        files.workspace.name = event.title
        files.touch()


def _changed(served: "Served", event: Event) -> None:
    """Keep what was decided in the middle of a turn, so that nothing later takes it back."""
    if isinstance(event, SessionLimitsChanged):
        most = event.max_ai_credits
        served.config = attrs.evolve(
            served.config, sessionLimits={} if most is None else {"maxAiCredits": most}
        )
    elif isinstance(event, SessionModelChange) and event.cause:
        served.config = attrs.evolve(served.config, model=event.new_model)
        served.overruled = served.config.agent
    elif isinstance(event, SessionLimitsExhaustedRequested | AutoModeSwitchRequested):
        served.asking.shown = event.request_id


def _tell_size(served: "Served", usage: AssistantUsage) -> None:
    """Say how much of its room the context takes: by what the provider counts, or else by an estimate."""
    actor = served.hub.host.find(served.session_id)
    if actor is None or not served.clients:
        return
    tokens = usage.input_tokens + usage.output_tokens
    definitions = actor.options.tools.definitions
    data = {
        "tokenLimit": served.token_limit,
        "currentTokens": tokens or estimate(actor.context.visible(), definitions, cited=served.cites).total,
        "messagesLength": actor.context.conversation_length,
    }
    served.tell(served.mapper.beside(usage, "session.usage_info", data))


def _rests(served: "Served") -> None:
    if served.clients:
        served.lifecycle("session.updated")
    else:
        served.hub.unload(served)
