"""How clients leave sessions."""

from functools import partial

from exeunt.actors.errors import ExeuntError
from exeunt.wire.files import opening as filing
from exeunt.wire.serving import abilities
from exeunt.wire.serving.changing import reconfigure, reconfigure_now
from exeunt.wire.serving.client import Peer
from exeunt.wire.serving.hub import Hub, logger
from exeunt.wire.serving.served import Served


async def detach(hub: Hub, served: Served, peer: Peer) -> None:
    """Detach a client that says so. When it was the last, the session leaves memory; its turn is aborted.

    A session that nothing was done with is forgotten: it would only be in the way, in every list.
    """
    if not _leave(hub, served, peer) or served.clients:
        return
    if served.used:
        await end(hub, served, "detached")
        return
    files = served.files
    with hub.removal(served.session_id):
        with hub.departure(served):
            await hub.host.delete_session(served.session_id)
        if files is not None:
            await files.remove()


async def end(hub: Hub, served: Served, reason: str) -> None:
    """Let a session leave memory, whoever is attached. Raises `ExeuntError`; then it stays.

    When this returns, its files are written, as far as they can be: clients may look at them as soon as they are
    answered.
    """
    files = served.files
    with hub.departure(served):
        await served.handle.disconnect(reason=reason)
    if files is not None:
        await files.closed.wait()


def forsake(hub: Hub, served: Served, peer: Peer) -> None:
    """Detach a client whose connection is gone. The session finishes what it does, and then leaves memory."""
    if _leave(hub, served, peer) and not served.clients:
        hub.unload(served)


def _leave(hub: Hub, served: Served, peer: Peer) -> bool:
    client = served.clients.pop(peer, None)
    if client is None:
        return False
    if served.clients:
        # Its tools go with it, before the model hears that they do not answer.
        try:
            if not reconfigure_now(hub, served):
                hub.host.spawn(partial(_reconfigure_later, hub, served))
        except ExeuntError:
            logger.exception("session %s keeps the tools of a client that has left", served.session_id)
    filing.left(served, peer)
    served.asking.client_left(client)
    served.want_own()
    abilities.tell_what_left(served, client)
    return True


async def _reconfigure_later(hub: Hub, served: Served) -> None:
    try:
        await reconfigure(hub, served)
    except ExeuntError:
        logger.exception("session %s keeps the tools of a client that has left", served.session_id)
