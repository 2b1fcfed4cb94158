"""What a session runs with, changed while it lives: from its next step on."""

from typing import Any

import attrs
import trio

from exeunt.actors.turn import birth, budget
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.rpc import no_session
from exeunt.wire.serving import configuration
from exeunt.wire.serving.hub import Hub
from exeunt.wire.serving.served import Served


async def change(hub: Hub, served: Served, **fields: Any) -> None:
    """Let a session run with other values of some fields of its configuration.

    Raises `InvalidConfiguration`, and `RpcError` where the session has left memory meanwhile; then nothing has changed.
    """
    await know_prices(hub, attrs.evolve(served.config, **fields), overruled_by(served, **fields))
    # Others may have changed the rest while a provider was asked, or ended the session.
    if hub.sessions.get(served.session_id) is not served:
        raise no_session(served.session_id)
    before = served.config, served.overruled
    served.overruled = overruled_by(served, **fields)
    changed = served.config = attrs.evolve(served.config, **fields)
    try:
        await reconfigure(hub, served)
    except BaseException:
        if served.config is changed:
            served.config, served.overruled = before
        raise


def overruled_by(served: Served, **fields: Any) -> str | None:
    """Return the agent whose model does not hold once these fields do: of agent and model, what was said last."""
    if "agent" in fields:
        return None
    return served.config.agent if "model" in fields else served.overruled


async def know_prices(
    hub: Hub, config: SessionConfig, overruled: str | None = None, *, counts: bool = False
) -> None:
    """Find out what the model of a session costs that is limited in credits, or *counts* what it spends.

    For before anything is changed: a provider may take its time.
    """
    if counts or configuration.credits_of(config) is not None:
        await hub.handlers.models.learn_prices(config, overruled)


def limit_credits(hub: Hub, served: Served) -> None:
    """Let the limit of the session be what its configuration says."""
    actor = hub.host.find(served.session_id)
    if actor is not None:
        actor.put(budget.set_limit, configuration.credits_of(served.config))


async def reconfigure(hub: Hub, served: Served) -> None:
    """Let the session run with what its clients want now. Raises `InvalidConfiguration`; then nothing has changed."""
    await trio.lowlevel.checkpoint_if_cancelled()
    if not reconfigure_now(hub, served):
        _, options = served.options()
        await hub.host.reopen_session(served.session_id, options)
    # The session has been told: a caller that is cancelled now must not take back what it wanted.
    await trio.lowlevel.cancel_shielded_checkpoint()


def reconfigure_now(hub: Hub, served: Served) -> bool:
    """The same, at once; `False` where the session has left memory, and would have to come back for it."""
    name, options = served.options()
    hub.host.metrics.register_tools(options.tools.names)
    served.model = name
    actor = hub.host.find(served.session_id)
    if actor is None:
        return False
    actor.put(birth.reconfigure, options)
    return True
