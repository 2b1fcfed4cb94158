"""What is known of a session."""

from typing import Any

import attrs

from exeunt.wire.connection import Connection
from exeunt.wire.events.clock import iso
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.messages.settings import ContextInfo, HeaviestMessages, RecordContext, SetWorkingDirectory
from exeunt.wire.rpc import encode
from exeunt.wire.serving.served import Served

CHARACTERS_A_TOKEN = 4
"""A rule of thumb: models count differently, and do not say how."""


def snapshot(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return what is known of a session."""
    served = connection.hub.find(connection.owner, params.sessionId)
    about: dict[str, Any] = {
        "sessionId": served.session_id,
        **connection.hub.times(served),
        "isRemote": False,
        "alreadyInUse": False,
        "workspacePath": None,
        "workingDirectory": served.working_directory,
        "currentMode": served.mode,
        "selectedModel": served.model,
        "sessionLimits": None,
        "workspace": None,
    }
    if served.title:
        about["summary"] = served.title
    if served.config.clientName:
        about["clientName"] = served.config.clientName
    return about


def is_processing(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether the session is at work."""
    return {"processing": _at_work(connection.hub.find(connection.owner, params.sessionId))}


def activity(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Say whether the session is at work, and so can be aborted."""
    works = _at_work(connection.hub.find(connection.owner, params.sessionId))
    return {"abortable": works, "hasActiveWork": works}


def _at_work(served: Served) -> bool:
    return served.handle.statistics().phase != "idle"


def heaviest_messages(connection: Connection, params: HeaviestMessages) -> dict[str, Any]:
    """List the messages of the context, the longest first."""
    served = connection.hub.find(connection.owner, params.sessionId)
    found = [
        {
            "id": getattr(message, "id", ""),
            "label": message.content[:80],
            "role": message.role,
            "tokens": len(message.content) // CHARACTERS_A_TOKEN,
        }
        for message in served.handle.history.messages()
        if message.role not in ("system", "developer")
    ]
    found.sort(key=lambda item: -int(str(item["tokens"])))
    most = MOST_MESSAGES if params.limit is None else max(0, min(params.limit, MOST_MESSAGES))
    return {"totalTokens": sum(int(str(item["tokens"])) for item in found), "messages": found[:most]}


MOST_MESSAGES = 50
"""Of one answer: a person reads the first ten."""


def recompute_tokens(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Estimate the tokens of the context."""
    served = connection.hub.find(connection.owner, params.sessionId)
    system, conversation = _tokens(served)
    return {
        "totalTokens": system + conversation,
        "messagesTokenCount": conversation,
        "systemTokenCount": system,
    }


def _tokens(served: Served) -> tuple[int, int]:
    """Estimate the tokens of the system and developer messages, and of the conversation."""
    system = conversation = 0
    for message in served.handle.history.messages():
        tokens = len(message.content) // CHARACTERS_A_TOKEN
        if message.role in ("system", "developer"):
            system += tokens
        else:
            conversation += tokens
    return system, conversation


def _tool_tokens(connection: Connection, served: Served) -> int:
    actor = connection.hub.host.find(served.session_id)
    definitions = () if actor is None else actor.options.tools.definitions
    return len(encode(definitions)) // CHARACTERS_A_TOKEN


def context_info(connection: Connection, params: ContextInfo) -> dict[str, Any]:
    """Estimate what the context takes of the limit that the client names."""
    served = connection.hub.find(connection.owner, params.sessionId)
    system, conversation = _tokens(served)
    tools = _tool_tokens(connection, served)
    return {
        "contextInfo": {
            "modelName": params.selectedModel or served.model,
            "systemTokens": system,
            "conversationTokens": conversation,
            "toolDefinitionsTokens": tools,
            "mcpToolsTokens": 0,
            "totalTokens": system + conversation + tools,
            "promptTokenLimit": params.promptTokenLimit,
            "compactionThreshold": params.promptTokenLimit,
            "limit": params.promptTokenLimit + params.outputTokenLimit,
            "bufferTokens": params.outputTokenLimit,
        }
    }


def set_working_directory(connection: Connection, params: SetWorkingDirectory) -> dict[str, Any]:
    """Note what clients call the session's folder."""
    served = connection.hub.find(connection.owner, params.sessionId)
    _move(served, params.workingDirectory)
    return {"workingDirectory": params.workingDirectory}


def record_context(connection: Connection, params: RecordContext) -> dict[str, Any]:
    """Note the folder, and tell the clients what lies in it."""
    served = connection.hub.find(connection.owner, params.sessionId)
    cwd = params.context.get("cwd")
    if isinstance(cwd, str):
        _move(served, cwd)
    served.notify("session.context_changed", {"cwd": served.working_directory, **params.context})
    return {}


def _move(served: Served, working_directory: str) -> None:
    served.config = attrs.evolve(served.config, workingDirectory=working_directory)
    served.working_directory = working_directory


def usage(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return what the session's model calls have taken since it came into memory."""
    served = connection.hub.find(connection.owner, params.sessionId)
    sums = served.usage
    metrics: dict[str, Any] = {}
    if sums.calls:
        metrics[served.model] = {
            "requests": {"count": sums.calls, "cost": 0},
            "usage": {
                "inputTokens": sums.input_tokens,
                "outputTokens": sums.output_tokens,
                "cacheReadTokens": 0,
                "cacheWriteTokens": 0,
            },
        }
    return {
        "totalPremiumRequestCost": 0,
        "totalUserRequests": sums.calls,
        "totalApiDurationMs": int(sums.seconds * 1000),
        "sessionStartTime": iso(served.started),
        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModifiedCount": 0, "filesModified": []},
        "modelMetrics": metrics,
        "currentModel": served.model,
        "lastCallInputTokens": sums.last_input,
        "lastCallOutputTokens": sums.last_output,
    }


def no_sources(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the files with instructions: there are none."""
    connection.hub.find(connection.owner, params.sessionId)
    return {"sources": []}
