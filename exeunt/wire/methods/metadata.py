"""What is known of a session."""

from collections.abc import Sequence
from typing import Any

import attrs

from exeunt.actors.models import Message, ToolDefinition
from exeunt.actors.prices import to_nano
from exeunt.actors.sizes import CHARACTERS_A_TOKEN
from exeunt.actors.state.account import NO_ACCOUNT, Account
from exeunt.wire.connection import Connection
from exeunt.wire.events.clock import iso
from exeunt.wire.events.figures import milliseconds, of_models
from exeunt.wire.files.paths import is_absolute, same
from exeunt.wire.messages.sessions import OneSession
from exeunt.wire.messages.settings import ContextInfo, HeaviestMessages, RecordContext, SetWorkingDirectory
from exeunt.wire.rpc import FAILED, RpcError
from exeunt.wire.serving.served import Served
from exeunt.wire.serving.sizes import Sizes, estimate, tokens_of


def snapshot(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return what is known of a session."""
    served = connection.hub.find(connection.owner, params.sessionId)
    workspace = None if served.files is None else served.files.workspace
    about: dict[str, Any] = {
        "sessionId": served.session_id,
        **connection.hub.times(served),
        "isRemote": False,
        "alreadyInUse": False,
        "workspacePath": served.workspace_path,
        "workingDirectory": served.working_directory,
        "currentMode": served.mode,
        "selectedModel": served.model,
        "sessionLimits": _limits(served),
        "workspace": None if workspace is None else workspace.public(),
    }
    if served.title:
        about["summary"] = served.title
    if served.config.clientName:
        about["clientName"] = served.config.clientName
    return about


def _limits(served: Served) -> dict[str, Any] | None:
    most = served.handle.statistics().credit_limit
    return None if most is None else {"maxAiCredits": most}


def _account(connection: Connection, served: Served) -> Account:
    actor = connection.hub.host.find(served.session_id)
    return NO_ACCOUNT if actor is None else actor.state.account


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
            "tokens": tokens_of(message, cited=served.cites),
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
    sizes = _sizes(connection, connection.hub.find(connection.owner, params.sessionId))
    return {
        "totalTokens": sizes.system + sizes.conversation,
        "messagesTokenCount": sizes.conversation,
        "systemTokenCount": sizes.system,
    }


def _sizes(connection: Connection, served: Served) -> Sizes:
    actor = connection.hub.host.find(served.session_id)
    definitions = () if actor is None else actor.options.tools.definitions
    return estimate(served.handle.history.messages(), definitions, cited=served.cites)


def context_info(connection: Connection, params: ContextInfo) -> dict[str, Any]:
    """Estimate what the context takes of the limit that the client names."""
    served = connection.hub.find(connection.owner, params.sessionId)
    sizes = _sizes(connection, served)
    return {
        "contextInfo": {
            "modelName": params.selectedModel or served.model,
            "systemTokens": sizes.system,
            "conversationTokens": sizes.conversation,
            "toolDefinitionsTokens": sizes.tools,
            "mcpToolsTokens": 0,
            "totalTokens": sizes.total,
            "promptTokenLimit": params.promptTokenLimit,
            "compactionThreshold": params.promptTokenLimit,
            "limit": params.promptTokenLimit + params.outputTokenLimit,
            "bufferTokens": params.outputTokenLimit,
        }
    }


def context_attribution(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Estimate what of the context takes how much of it: the system messages, each tool, each kind of message."""
    served = connection.hub.find(connection.owner, params.sessionId)
    actor = connection.hub.host.find(served.session_id)
    definitions = () if actor is None else actor.options.tools.definitions
    messages = served.handle.history.messages()
    sizes, limit = estimate(messages, definitions, cited=served.cites), served.token_limit
    free = max(0, limit - sizes.total)
    instructions = _instructions(served, messages)
    return {
        "contextAttribution": {
            "totalTokens": sizes.total,
            "modelId": served.model,
            "modelSource": "default" if served.config.model is None else "selected",
            "promptTokenLimit": limit,
            "limit": limit,
            "bufferTokens": 0,
            "compactionThreshold": limit,
            "categories": {
                "systemPrompt": sizes.system - instructions,
                "customInstructions": instructions,
                "systemTools": sizes.tools,
                "mcpTools": 0,
                "messages": sizes.conversation,
                "freeSpace": free,
                "buffer": 0,
            },
            "entries": _entries(messages, definitions, served.cites),
            "compactions": {"count": 0},
        }
    }


def _instructions(served: Served, messages: Sequence[Message]) -> int:
    """Estimate what the instructions take of the system messages; nothing where a client has replaced those."""
    told = served.instructions_told()
    there = any(told in message.content for message in messages if message.role in ("system", "developer"))
    return len(told) // CHARACTERS_A_TOKEN if there else 0


def _entries(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], cited: bool
) -> list[dict[str, Any]]:
    tokens: dict[tuple[str, str], int] = {}
    for message in messages:
        system = message.role in ("system", "developer")
        source = ("system" if system else "message", str(message.role))
        tokens[source] = tokens.get(source, 0) + tokens_of(message, cited=cited)
    for tool in tools:
        tokens["toolDefinition", tool.name] = estimate((), (tool,)).tools
    return [
        {"kind": kind, "id": f"{kind}:{name}", "label": name, "tokens": count}
        for (kind, name), count in tokens.items()
    ]


def set_working_directory(connection: Connection, params: SetWorkingDirectory) -> dict[str, Any]:
    """Note what clients call the session's folder, and tell them. Whether it exists, only their machine knows."""
    served = connection.hub.find(connection.owner, params.sessionId)
    require_directory(params.workingDirectory)
    served.move(params.workingDirectory)
    return {"workingDirectory": params.workingDirectory}


def require_directory(path: str) -> None:
    """Refuse what is no folder on any client's machine. Raises `RpcError`."""
    if not is_absolute(path) or len(path) > LONGEST_PATH:
        raise RpcError(
            FAILED, f"a working directory is an absolute path of at most {LONGEST_PATH} characters"
        )


LONGEST_PATH = 4096
"""Characters: what Linux takes."""


def record_context(connection: Connection, params: RecordContext) -> dict[str, Any]:
    """Tell the clients what lies in the session's folder. A report about another folder is out of date, and ignored."""
    served = connection.hub.find(connection.owner, params.sessionId)
    context = params.context
    if same(context.cwd, served.working_directory):
        report = {name: value for name, value in attrs.asdict(context).items() if value is not None}
        served.lies_in(report)
        served.notify("session.context_changed", {**report, "cwd": served.working_directory})
    return {}


def usage(connection: Connection, params: OneSession) -> dict[str, Any]:
    """Return what the session's model calls have taken.

    Those of models with a price count since the session began: they are in its log. Others, and the tokens of
    reasoning, since it came into memory.
    """
    served = connection.hub.find(connection.owner, params.sessionId)
    seen, paid, last = served.usage, _account(connection, served).models, served.mapper.last_call
    metrics = of_models(seen, paid)
    return {
        "totalPremiumRequestCost": 0,
        "totalUserRequests": sum(one["requests"]["count"] for one in metrics.values()),
        "totalNanoAiu": to_nano(served.handle.statistics().credits_spent),
        "totalApiDurationMs": milliseconds(seen),
        "sessionStartTime": iso(served.started),
        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModifiedCount": 0, "filesModified": []},
        "modelMetrics": metrics,
        "currentModel": served.model,
        "lastCallInputTokens": 0 if last is None else last.input_tokens,
        "lastCallOutputTokens": 0 if last is None else last.output_tokens,
    }


def instruction_sources(connection: Connection, params: OneSession) -> dict[str, Any]:
    """List the files with instructions that the model is told of, in its order."""
    served = connection.hub.find(connection.owner, params.sessionId)
    read = None if served.config.skipCustomInstructions else served.instructions
    return {"sources": [] if read is None else [source.shown() for source in read.sources]}
