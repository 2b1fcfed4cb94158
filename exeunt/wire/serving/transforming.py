"""Sections of the system message that a client rewrites with functions of its own (`systemMessage.transform`)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from exeunt.actors.errors import ClientGone, ClientRefused, InvalidConfiguration
from exeunt.wire.instructions import Instructions
from exeunt.wire.messages.sessions import SessionConfig
from exeunt.wire.serving.client import NOTHING, Client
from exeunt.wire.serving.system_message import instructions_told, own_sections

if TYPE_CHECKING:
    from exeunt.wire.serving.hub import Hub

METHOD = "systemMessage.transform"


class _Section(msgspec.Struct):
    content: str


class _Answer(msgspec.Struct):
    sections: dict[str, _Section]


async def transformed(
    hub: "Hub", client: Client, config: SessionConfig, instructions: Instructions | None
) -> Mapping[str, str]:
    """Ask *client* what becomes of the sections that it rewrites; without any, nothing is asked.

    *config* is what holds of the session. Once for each time that the client makes the session or takes it up. A
    section that has no text here is asked for with an empty one. Raises `InvalidConfiguration` when the client gives
    no answer, or one that is none: a model without the rules that it was to have would be worse than no session.
    """
    said = client.config.systemMessage
    if said is None or said.mode != "customize":
        return NOTHING
    names = [name for name, section in (said.sections or {}).items() if section.action == "transform"]
    if not names:
        return NOTHING
    own = own_sections(hub.options.system_message, instructions_told(config, instructions))
    sections = {name: {"content": own.get(name, "")} for name in names}
    try:
        answer = await client.peer.ask(METHOD, {"sessionId": client.session_id, "sections": sections})
        rewritten = msgspec.convert(answer, _Answer).sections
    except (ClientGone, ClientRefused, msgspec.ValidationError) as error:
        raise InvalidConfiguration(
            f"systemMessage: the client did not say what becomes of the sections it transforms: {error}"
        ) from error
    return {name: rewritten[name].content if name in rewritten else own.get(name, "") for name in names}
