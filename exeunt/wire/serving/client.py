"""One connection, attached to one session."""

from collections.abc import Mapping
from typing import Any, Protocol

from exeunt.wire.files.store import Provider
from exeunt.wire.messages.sessions import ProviderConfig, SessionConfig
from exeunt.wire.serving.tools import ClientTools, chosen

NOTHING: Mapping[str, str] = {}
"""What a client has rewritten that rewrites no section."""

UNNAMED = "default"
"""What clients call a provider that they gave without a name."""


def called(provider: ProviderConfig) -> str:
    """Return the name by which clients know a provider."""
    return provider.name or UNNAMED


class Peer(Protocol):
    """What a session needs of a connection."""

    @property
    def name(self) -> str:
        """For log lines."""
        ...

    @property
    def carries_requests(self) -> bool:
        """Whether it sends the requests to models of its sessions."""
        ...

    @property
    def session_files(self) -> Provider | None:
        """What it has said of the files that it keeps for its sessions, if it does."""
        ...

    def post(self, body: bytes, *, droppable: bool = False) -> None:
        """Send a body, some time later. Never waits."""
        ...

    async def ask(self, method: str, params: Any, seconds: float | None = None) -> Any:
        """Send a request and return the decoded answer. Raises `ClientGone`, `ClientRefused`.

        *seconds* bound that, where the server's own bound for it does not.
        """
        ...


class Client:
    """What one connection registered for one session, and the way to it."""

    __slots__ = ("_held", "config", "interests", "peer", "rewritten", "session_id", "tools")

    def __init__(self, peer: Peer, config: SessionConfig, tools: ClientTools, session_id: str) -> None:
        self.peer = peer
        self.session_id = session_id
        self.rewritten = NOTHING
        """Sections of the system message, as it wants them to be."""
        self.config = config
        self.tools = tools
        self.interests: dict[str, str] | None = None
        """Kinds of events that it asked for beyond the usual ones, by the handle of each interest."""
        self._held: list[tuple[bytes, bool]] | None = []

    @property
    def served_tools(self) -> Mapping[str, Any]:
        """Its tools, by name."""
        return self.tools.by_name

    @property
    def offered_tools(self) -> Mapping[str, Any]:
        """Those of its tools that its own filters let through, by name."""
        own, config = self.tools.by_name, self.config
        if config.availableTools is None and config.excludedTools is None:
            return own
        let_through = chosen(own, config.availableTools, config.excludedTools)
        return {name: tool for name, tool in own.items() if name in let_through}

    def offers(self, name: str) -> bool:
        """Whether it has the tool of this name, and lets it through. Looks at no other one: each call asks."""
        config = self.config
        return name in self.tools.by_name and bool(
            chosen((name,), config.availableTools, config.excludedTools)
        )

    def has_command(self, name: str) -> bool:
        """Whether it runs the command of this name."""
        return any(command.name == name for command in self.config.commands or ())

    def token_providers(self) -> list[ProviderConfig]:
        """Return the providers that it gave and gets the tokens for."""
        given = (self.config.provider, *(self.config.providers or ()))
        return [one for one in given if one is not None and one.hasBearerTokenProvider]

    def wants(self, kind: str) -> bool:
        """Whether it asked for events of this kind."""
        return self.interests is not None and kind in self.interests.values()

    @property
    def waits_for_idle(self) -> bool:
        """Whether `session.idle` can mean something to it.

        Not while it comes, and has nothing gone on with: what ends then, such as the turn that a kill has cut off, it
        has not begun. It would be told behind the answer to its `session.resume`, and the SDKs would take it for the
        end of the message that they send next.
        """
        return self._held is None or bool(self.config.continuePendingWork)

    def show(self, body: bytes, droppable: bool) -> None:
        """Send an event; while it has not been told that it is attached, keep it for then."""
        if self._held is not None:
            self._held.append((body, droppable))
        else:
            self.peer.post(body, droppable=droppable)

    def release(self) -> None:
        """It has been told: send what was kept."""
        held, self._held = self._held, None
        for body, droppable in held or ():
            self.peer.post(body, droppable=droppable)
