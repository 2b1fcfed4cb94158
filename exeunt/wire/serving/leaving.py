"""How clients leave sessions."""

from functools import partial

from exeunt.actors.errors import ExeuntError
from exeunt.wire.serving.client import Peer
from exeunt.wire.serving.hub import Hub, logger
from exeunt.wire.serving.opening import reconfigure
from exeunt.wire.serving.served import Served


async def detach(hub: Hub, served: Served, peer: Peer) -> None:
    """Detach a client that says so. When it was the last, the session leaves memory; its turn is aborted."""
    if not _leave(served, peer):
        return
    if served.clients:
        await _go_on(hub, served)
        return
    await served.handle.disconnect(reason="detached")
    hub.left(served)


def forsake(hub: Hub, served: Served, peer: Peer) -> None:
    """Detach a client whose connection is gone. The session finishes what it does, and then leaves memory."""
    if not _leave(served, peer):
        return
    if served.clients:
        # In a task of the host: it may have to wait for a journal, and the connection has no time.
        hub.host.spawn(partial(_go_on, hub, served))
    else:
        hub.unload(served)


def _leave(served: Served, peer: Peer) -> bool:
    client = served.clients.pop(peer, None)
    if client is None:
        return False
    served.client_left(client)
    served.want_own()
    return True


async def _go_on(hub: Hub, served: Served) -> None:
    """The tools of the client that has left go with it."""
    try:
        await reconfigure(hub, served)
    except ExeuntError:
        logger.exception("session %s keeps the tools of a client that has left", served.session_id)
