"""What a session's clients choose while it lives."""

from typing import Any, Literal

import attrs

from exeunt.wire.messages.capabilities import ModelCapabilities
from exeunt.wire.messages.sessions import ModelConfig, ProviderConfig, ToolDeclaration

NOT_SAID = object()
"""In the place of a field for which `None` says something."""


@attrs.frozen(kw_only=True)
class SwitchModel:
    """Another model."""

    sessionId: str
    modelId: str
    reasoningEffort: str | None = None
    modelCapabilities: ModelCapabilities | None = None


@attrs.frozen(kw_only=True)
class SetReasoningEffort:
    """How much the model thinks."""

    sessionId: str
    reasoningEffort: str


@attrs.frozen(kw_only=True)
class SetMode:
    """Another mode; with *expectedMode*, only if that is the present one."""

    sessionId: str
    mode: Literal["interactive", "plan", "autopilot"]
    expectedMode: Literal["interactive", "plan", "autopilot"] | None = None


@attrs.frozen(kw_only=True)
class SetName:
    """Another name."""

    sessionId: str
    name: str


@attrs.frozen(kw_only=True)
class SetAutoName:
    """A name for a session that has none."""

    sessionId: str
    summary: str


@attrs.frozen(kw_only=True)
class UpdateOptions:
    """Some of what a session was made with. What else a client sends is of no use here, and ignored."""

    sessionId: str
    model: str | None = None
    provider: ProviderConfig | None = None
    reasoningEffort: str | None = None
    availableTools: list[str] | None = None
    excludedTools: list[str] | None = None
    workingDirectory: str | None = None
    clientName: str | None = None
    streaming: bool | None = None
    modelCapabilitiesOverrides: ModelCapabilities | None = None
    skipCustomInstructions: bool | None = None
    organizationCustomInstructions: str | None = None
    sessionLimits: Any = NOT_SAID
    """`None` takes the limit away."""


@attrs.frozen(kw_only=True)
class AddProvider:
    """More providers, and models of them."""

    sessionId: str
    providers: list[ProviderConfig] | None = None
    models: list[ModelConfig] | None = None


@attrs.frozen(kw_only=True)
class GetEndpoint:
    """Where a model is."""

    sessionId: str
    modelId: str | None = None


@attrs.frozen(kw_only=True)
class SetApproveAll:
    """Whether every call is approved without a question."""

    sessionId: str
    enabled: bool


@attrs.frozen(kw_only=True)
class SetPermissionMode:
    """The same, in the words of another method."""

    sessionId: str
    mode: Literal["manual", "assisted", "allow-all"]


@attrs.frozen(kw_only=True)
class SetTools:
    """Other tools of this client."""

    sessionId: str
    tools: list[ToolDeclaration]


@attrs.frozen(kw_only=True)
class SelectAgent:
    """One of the session's custom agents."""

    sessionId: str
    name: str


@attrs.frozen(kw_only=True)
class SetWorkingDirectory:
    """What clients call the session's folder."""

    sessionId: str
    workingDirectory: str


@attrs.frozen(kw_only=True)
class WorkingDirectoryContext:
    """A folder, and what lies in it."""

    cwd: str
    gitRoot: str | None = None
    repository: str | None = None
    hostType: Literal["github", "ado"] | None = None
    repositoryHost: str | None = None
    branch: str | None = None
    headCommit: str | None = None
    baseCommit: str | None = None


@attrs.frozen(kw_only=True)
class RecordContext:
    """The session's folder, and what lies in it."""

    sessionId: str
    context: WorkingDirectoryContext


@attrs.frozen(kw_only=True)
class ContextInfo:
    """The limits of a model, against which the context is held."""

    sessionId: str
    promptTokenLimit: int
    outputTokenLimit: int
    selectedModel: str | None = None


@attrs.frozen(kw_only=True)
class HeaviestMessages:
    """How many messages to list."""

    sessionId: str
    limit: int | None = None
