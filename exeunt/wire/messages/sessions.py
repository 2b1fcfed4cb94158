"""Making, taking up and ending sessions."""

from typing import Any, Literal

import attrs
import msgspec

from exeunt.wire.messages.capabilities import ModelCapabilities

NO_TEXT = msgspec.Raw(b"")


@attrs.frozen(kw_only=True)
class ToolDeclaration:
    """A tool that the client runs."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    isTerminal: bool | None = None
    skipPermission: bool | None = None
    defer: Literal["auto", "never"] | None = None


@attrs.frozen(kw_only=True)
class SystemMessageSection:
    """One section of a customized system message."""

    action: Literal["replace", "remove", "append", "prepend", "transform", "preserve"] = "replace"
    content: str | None = None


@attrs.frozen(kw_only=True)
class SystemMessageConfig:
    """What becomes of the system message."""

    mode: Literal["append", "replace", "customize"] = "append"
    content: str | None = None
    sections: dict[str, SystemMessageSection] | None = None


@attrs.frozen(kw_only=True)
class AzureOptions:
    """What only Azure has."""

    apiVersion: str | None = None


@attrs.frozen(kw_only=True)
class ProviderConfig:
    """Where the model of a session is."""

    name: str | None = None
    type: str | None = None
    baseUrl: str | None = None
    apiKey: str | None = None
    bearerToken: str | None = None
    hasBearerTokenProvider: bool | None = None
    wireApi: str | None = None
    transport: str | None = None
    azure: AzureOptions | None = None
    headers: dict[str, str] | None = None
    modelId: str | None = None
    wireModel: str | None = None
    maxPromptTokens: int | None = None
    maxOutputTokens: int | None = None
    modelCapabilities: ModelCapabilities | None = None


@attrs.frozen(kw_only=True)
class ModelConfig:
    """One model of a registry of providers."""

    id: str
    provider: str
    wireModel: str | None = None
    modelId: str | None = None
    name: str | None = None
    maxPromptTokens: int | None = None
    maxContextWindowTokens: int | None = None
    capabilities: ModelCapabilities | None = None


@attrs.frozen(kw_only=True)
class CapiOptions:
    """What holds for the server's own models."""

    enableWebSocketResponses: bool | None = None
    """`False`: over HTTP also those models that say that they can be reached over web sockets."""


@attrs.frozen(kw_only=True)
class CommandDeclaration:
    """A slash command that the client runs."""

    name: str
    description: str | None = None


@attrs.frozen(kw_only=True)
class CustomAgent:
    """A way for the session to be: a prompt of its own, and some of the tools."""

    name: str
    displayName: str | None = None
    description: str | None = None
    prompt: str | None = None
    tools: list[str] | None = None
    model: str | None = None


@attrs.frozen(kw_only=True)
class DefaultAgent:
    """What the session is while no custom agent is chosen."""

    excludedTools: list[str] | None = None
    """Tools that only custom agents have."""


@attrs.frozen(kw_only=True)
class LargeOutput:
    """What becomes of results that are too long for a model to read at once, where the session has files."""

    enabled: bool | None = None
    maxSizeBytes: int | None = None
    outputDirectory: str | None = None
    """A folder of the client's own: of no use here, where only the session's files are written to."""


@attrs.frozen(kw_only=True)
class SessionConfig:
    """What a client wants of a session. The same for a new one and for one that it takes up."""

    sessionId: str | None = None
    clientName: str | None = None
    model: str | None = None
    provider: ProviderConfig | None = None
    providers: list[ProviderConfig] | None = None
    models: list[ModelConfig] | None = None
    capi: CapiOptions | None = None
    reasoningEffort: str | None = None
    reasoningSummary: str | None = None
    enableCitations: bool | None = None
    modelCapabilities: ModelCapabilities | None = None
    streaming: bool | None = None
    systemMessage: SystemMessageConfig | None = None
    tools: msgspec.Raw = NO_TEXT
    """An array of `ToolDeclaration`: as text, because equal texts share what is made of them."""
    availableTools: list[str] | None = None
    excludedTools: list[str] | None = None
    toolFilterPrecedence: str | None = None
    commands: list[CommandDeclaration] | None = None
    customAgents: list[CustomAgent] | None = None
    defaultAgent: DefaultAgent | None = None
    agent: str | None = None
    """The custom agent that it begins as."""
    requestPermission: bool | None = None
    requestUserInput: bool | None = None
    requestElicitation: bool | None = None
    requestExitPlanMode: bool | None = None
    requestAutoModeSwitch: bool | None = None
    hooks: bool | None = None
    workingDirectory: str | None = None
    instructionDirectories: list[str] | None = None
    skipCustomInstructions: bool | None = None
    organizationCustomInstructions: str | None = None
    mcpServers: dict[str, Any] | None = None
    infiniteSessions: dict[str, Any] | None = None
    largeOutput: LargeOutput | None = None
    sessionLimits: dict[str, Any] | None = None
    cloud: dict[str, Any] | None = None
    continuePendingWork: bool | None = None
    suppressResumeEvent: bool | None = None
    traceparent: str | None = None
    """What the turns are a part of whose messages do not say it; as `tracestate`, in the form of the W3C."""
    tracestate: str | None = None


@attrs.frozen(kw_only=True)
class OneSession:
    """A session, and nothing else."""

    sessionId: str


@attrs.frozen(kw_only=True)
class ListSessions:
    """Which sessions to list."""

    filter: dict[str, Any] | None = None


@attrs.frozen(kw_only=True)
class ForkSession:
    """A session of the beginning of another's log."""

    sessionId: str
    toEventId: str | None = None
    name: str | None = None


@attrs.frozen(kw_only=True)
class Send:
    """A message."""

    sessionId: str
    prompt: str = ""
    mode: Literal["enqueue", "immediate"] | None = None
    agentMode: str | None = None
    source: str | None = None
    displayPrompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    prepend: bool | None = None
    """Whether it goes before the messages that wait."""
    wait: bool | None = None
    """Whether the answer comes when its turn has ended."""
    requestHeaders: dict[str, str] | None = None
    """For the requests to the model of the turn that takes it in."""
    traceparent: str | None = None
    """What its turn is a part of; as `tracestate`, in the form of the W3C."""
    tracestate: str | None = None


@attrs.frozen(kw_only=True)
class Abort:
    """An abort of what the session does."""

    sessionId: str
    reason: str | None = None


@attrs.frozen(kw_only=True)
class Shutdown:
    """An end of the session, and why."""

    sessionId: str
    type: Literal["routine", "error"] | None = None
    reason: str | None = None


@attrs.frozen(kw_only=True)
class ManySessions:
    """Several sessions."""

    sessionIds: list[str]


@attrs.frozen(kw_only=True)
class FindByPrefix:
    """The beginning of a session's id."""

    prefix: str


@attrs.frozen(kw_only=True)
class OneMessage:
    """A message among several."""

    prompt: str
    agentMode: str | None = None
    source: str | None = None
    displayPrompt: str | None = None
    attachments: list[dict[str, Any]] | None = None


@attrs.frozen(kw_only=True)
class SendMessages:
    """Several messages, in order."""

    sessionId: str
    messages: list[OneMessage]
    mode: Literal["enqueue", "immediate"] | None = None
    traceparent: str | None = None
    """What their turns are a part of; as `tracestate`, in the form of the W3C."""
    tracestate: str | None = None
