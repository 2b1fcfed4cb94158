"""How clients come to sessions: making them, taking them up, attaching to them."""

from collections.abc import Sequence
from functools import partial
from uuid import uuid4

import trio

from exeunt.actors.errors import InvalidConfiguration, SessionNotFound, UnknownEvent
from exeunt.actors.events import Event, SessionLimitsChanged, UsageCheckpoint
from exeunt.actors.events.envelope import seq_in
from exeunt.actors.state import SessionState
from exeunt.supervisor.journal import SessionMetadata, fork_log
from exeunt.wire.events.mapper import WireEvent
from exeunt.wire.files import opening as filing
from exeunt.wire.files.rebuilding.rebuild import rebuild
from exeunt.wire.instructions import Instructions
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.serving import configuration
from exeunt.wire.serving.abilities import tell_what_came
from exeunt.wire.serving.changing import know_prices, limit_credits, overruled_by, reconfigure
from exeunt.wire.serving.client import Client, Peer
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.transforming import transformed
from exeunt.wire.serving.turn_questions import ask_again, tell_again

TAIL = 200
"""Events of a log that are read back to know how it goes on: more than a turn usually has."""


async def create(hub: Hub, peer: Peer, tenant: str, config: SessionConfig) -> Client:
    """Make a session and attach *peer*, or attach it to the one in memory that has the id.

    Raises `InvalidConfiguration`, `SessionExists` for one that is stored, and their like.
    """
    configuration.check(config)
    session_id = config.sessionId or str(uuid4())
    client = Client(peer, config, hub.tools.tools(config.tools), session_id)
    instructions = await _prepare(hub, tenant, client)
    served = await hub.settled(session_id)
    if served is not None:
        if served.tenant != tenant:
            raise InvalidConfiguration(f"the session id {session_id!r} is taken: choose another")
        await _attach(hub, served, client, instructions)
        return client
    served = Served(hub, session_id, tenant, config)
    if config.instructionDirectories:
        served.instructions = instructions
    served.rewritten = client.rewritten
    served.clients[peer] = client
    hub.sessions[session_id] = served
    filing.open_files(hub, served, peer, hub.wall())
    if served.files is not None:
        served.files.transcript.begins_anew()
    try:
        name, options = served.options()
        served.began_with(name)
        hub.host.metrics.register_tools(options.tools.names)
        served.session = await hub.host.open_session(options, session_id)
    finally:
        hub.opened(served)
    if served.files is not None:
        served.files.touch()
    served.lifecycle("session.created")
    served.tell_problems()
    return client


async def resume(hub: Hub, peer: Peer, tenant: str, config: SessionConfig) -> Client:
    """Attach *peer* to a session in memory, or take up one that is stored.

    Raises `SessionNotFound`, also for a session of another tenant, `InvalidConfiguration`, `JournalError`.
    """
    configuration.check(config)
    session_id = config.sessionId
    if not session_id:
        raise InvalidConfiguration("session.resume needs a sessionId")
    client = Client(peer, config, hub.tools.tools(config.tools), session_id)
    instructions = await _prepare(hub, tenant, client)
    served = await hub.settled(session_id)
    if served is None:
        await _take_up(hub, client, tenant, config, session_id, instructions)
    elif served.tenant != tenant:
        raise not_found(session_id)
    else:
        await _attach(hub, served, client, instructions)
    return client


async def _prepare(hub: Hub, tenant: str, client: Client) -> Instructions | None:
    """Ask what the model costs, read the folders that clients have named, and let *client* rewrite what it wants to.

    Before anything else: a refusal changes nothing, and nobody sees a session that waits for a provider or a disk.
    Raises `InstructionsRefused`, `InvalidConfiguration`.
    """
    there, wanted = hub.sessions.get(client.session_id), client.config
    if there and there.tenant == tenant:
        wanted = configuration.merged(there.config, wanted)
    await know_prices(hub, wanted)
    instructions = await read_instructions(hub, wanted)
    client.rewritten = await transformed(hub, client, wanted, instructions)
    return instructions


async def read_instructions(hub: Hub, config: SessionConfig) -> Instructions | None:
    """Read what a session has in its folders, if it has any. Raises `InstructionsRefused`."""
    if not config.instructionDirectories or config.skipCustomInstructions:
        return None
    return await hub.instructions.read(
        config.instructionDirectories, config.workingDirectory or hub.working_directory
    )


def not_found(session_id: str) -> SessionNotFound:
    """Return what is raised for a session that *tenant* does not have."""
    return SessionNotFound(
        f"Failed to load session events: Session not found: {session_id}", session_id=session_id
    )


async def _take_up(
    hub: Hub,
    client: Client,
    tenant: str,
    config: SessionConfig,
    session_id: str,
    instructions: Instructions | None,
) -> None:
    served = Served(hub, session_id, tenant, config)
    if config.instructionDirectories:
        served.instructions = instructions
    served.rewritten = client.rewritten
    hub.sessions[session_id] = served
    try:
        metadata = await _known(hub, session_id)
        if metadata is None and await rebuild(hub, client, tenant, session_id):
            metadata = await _known(hub, session_id)
        if metadata is None or metadata.tenant != tenant:
            raise not_found(session_id)
        tail = await _how_it_went(hub, served, metadata)
        served.clients[client.peer] = client
        # It is stored, and so it is not this client's to forget.
        served.used = True
        counted = any(isinstance(event, UsageCheckpoint | SessionLimitsChanged) for event in tail)
        await know_prices(hub, served.config, counts=counted)
        name, options = served.options()
        served.prime(tail, name, metadata.start_time)
        filing.open_files(hub, served, client.peer, metadata.start_time)
        if served.files is not None:
            served.files.transcript.begins_behind(served.last_id)
        hub.host.metrics.register_tools(options.tools.names)
        served.session = await hub.host.reopen_session(
            session_id, options, continue_pending_work=bool(config.continuePendingWork)
        )
    finally:
        hub.opened(served)
    served.take_labels()
    served.tell_problems()
    if served.files is not None:
        if served.files.workspace is not None:
            served.files.workspace.name = served.title
        served.files.touch()


async def _known(hub: Hub, session_id: str) -> SessionMetadata | None:
    """Return what the journal knows of a session, if it does."""
    try:
        return await hub.host.journal.metadata(session_id)
    except SessionNotFound:
        return None


async def _how_it_went(hub: Hub, served: Served, metadata: SessionMetadata) -> list[Event]:
    """Return the last events; and where no client says which model, that of the log holds."""
    journal = hub.host.journal
    config = served.config
    if config.model is None and config.provider is None and config.models is None:
        events = list(await journal.read(metadata.session_id))
        model = (SessionState.replay(events).labels or {}).get("model")
        if model is not None:
            served.config = configuration.merged(config, SessionConfig(model=model))
        return events[-TAIL:]
    return list(await journal.read(metadata.session_id, max(1, metadata.events - TAIL + 1)))


async def _attach(hub: Hub, served: Served, client: Client, instructions: Instructions | None) -> None:
    """Attach a client to a session in memory: what it wants holds from the next step on."""
    before = served.config, served.overruled, served.instructions, served.rewritten
    alone = not served.clients
    said = {name: getattr(client.config, name) for name in ("agent", "model")}
    served.overruled = overruled_by(served, **{name: value for name, value in said.items() if value})
    wanted = served.config = configuration.merged(served.config, client.config)
    if instructions is not None or not served.config.instructionDirectories:
        served.instructions = instructions
    if client.config.systemMessage is not None:
        served.rewritten = client.rewritten
    former = served.clients.pop(client.peer, None)
    served.clients[client.peer] = client
    try:
        await reconfigure(hub, served)
    except BaseException:
        if served.config is wanted:
            served.config, served.overruled, served.instructions, served.rewritten = before
        served.clients.pop(client.peer, None)
        if former is not None:
            served.clients[client.peer] = former
        elif not served.clients:
            # Others have left meanwhile, who counted on this one to stay.
            hub.unload(served)
        raise
    if former is not None:
        client.interests = former.interests
        served.asking.replaced(former, client)
    filing.attached(hub, served, client.peer)
    if client.config.sessionLimits is not None:
        # What a client says anew holds, also against what was decided meanwhile.
        limit_credits(hub, served)
    if client.config.workingDirectory:
        served.move(client.config.workingDirectory)
    tell_what_came(served, client)
    served.tell_problems()
    tell_again(served, client)
    if client.config.requestAutoModeSwitch:
        hub.host.spawn(partial(ask_again, served))
    if alone and served.asking.waits_for_clients and not client.config.continuePendingWork:
        # What waited for the client that has left is not gone on with. A moment: an abort is bounded. Cut off in it,
        # the client would be attached, and nobody would know that it has to leave.
        with trio.CancelScope(shield=True):
            await served.handle.abort(queued="keep")
    if client.config.suppressResumeEvent:
        return
    served.taken_up(bool(client.config.continuePendingWork), was_active=not alone)


async def fork(hub: Hub, tenant: str, session_id: str, at: str | None) -> str:
    """Make a session of another's log before the event *at*, or of all of it, and let it rest; return its id.

    Messages that wait in the other session do not wait in the copy: what a client sees of the log has none of them.
    Raises `SessionNotFound`, also for a session of another tenant, `UnknownEvent`, `InvalidConfiguration` for the
    log's first event, `JournalError`.
    """
    try:
        metadata = await hub.host.journal.metadata(session_id)
    except SessionNotFound:
        raise not_found(session_id) from None
    if metadata.tenant != tenant:
        raise not_found(session_id)
    last = None if at is None else await _number_of(hub, session_id, at) - 1
    if last == 0:
        raise InvalidConfiguration(
            f"nothing stands before event {at}, the first of the log: name a later one"
        )
    made = str(uuid4())
    await fork_log(hub.host.journal, session_id, made, last, keep_queue=False)
    return made


async def _number_of(hub: Hub, session_id: str, event_id: str) -> int:
    seq = seq_in(event_id)
    found = await hub.host.journal.read(session_id, seq, 1) if seq else ()
    if seq is None or not found or found[0].id != event_id:
        raise UnknownEvent(
            f"event {event_id:.80} not found: the log of session {session_id!r} has no event of that id",
            session_id=session_id,
        )
    return seq


def stored_history(hub: Hub, session_id: str, events: Sequence[Event]) -> list[WireEvent]:
    """Return the log of a session that is not in memory, as clients see it."""
    return Served(hub, session_id, "", SessionConfig()).history(events)
