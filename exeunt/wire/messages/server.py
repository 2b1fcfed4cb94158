"""The connection and the server."""

from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Nothing:
    """No parameters; any are ignored."""


@attrs.frozen(kw_only=True)
class Connect:
    """The handshake."""

    token: str | None = None


@attrs.frozen(kw_only=True)
class Ping:
    """A sign of life."""

    message: str | None = None


@attrs.frozen(kw_only=True)
class SetForeground:
    """The session that a person looks at."""

    sessionId: str | None = None


@attrs.frozen(kw_only=True)
class Anything:
    """Parameters of a method that does nothing here."""

    sessionId: str | None = None
    value: Any = None
