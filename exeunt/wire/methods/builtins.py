"""Slash commands that the server has itself. A client's command of the same name takes its place."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from exeunt.actors.errors import ExeuntError
from exeunt.wire.connection import Connection
from exeunt.wire.messages.history import Compact
from exeunt.wire.messages.settings import SwitchModel
from exeunt.wire.methods import history, models
from exeunt.wire.serving.served import Served

Command = Callable[[Connection, Served, str], Awaitable[dict[str, Any]]]


async def model(connection: Connection, served: Served, given: str) -> dict[str, Any]:
    """Switch to the model that is named; without one, say which there are."""
    if given:
        await models.switch_model(connection, SwitchModel(sessionId=served.session_id, modelId=given))
        return {"kind": "completed", "message": f"The model is {served.model} now."}
    lines = [f"The model is {served.model or 'not chosen'}."]
    try:
        names = await models.model_names(connection, served)
    except ExeuntError as error:
        lines.append(f"Which others there are is not known: {error}")
    else:
        lines += ["There are:", *(f"* {name}" for name in names)]
    return {"kind": "text", "text": "\n".join(lines), "markdown": True}


async def compact(connection: Connection, served: Served, given: str) -> dict[str, Any]:
    """Compact the conversation; what is given says what the summary is to look at."""
    asked = Compact(sessionId=served.session_id, customInstructions=given or None)
    done = await history.compact(connection, asked)
    if not done["success"]:
        return {"kind": "text", "text": "The conversation was not compacted."}
    return {"kind": "completed", "message": f"{done['messagesRemoved']} messages became a summary."}


COMMANDS: Mapping[str, Command] = {"model": model, "compact": compact}

LISTED: tuple[dict[str, Any], ...] = (
    {
        "name": "model",
        "description": "Say which model the session has, or switch to another",
        "kind": "builtin",
        "allowDuringAgentExecution": True,
        "input": {"hint": "a model's id"},
    },
    {
        "name": "compact",
        "description": "Sum the conversation up, and go on with the summary",
        "kind": "builtin",
        "allowDuringAgentExecution": False,
        "input": {"hint": "what the summary is to look at"},
    },
)
