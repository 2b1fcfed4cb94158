"""What a server is configured with."""

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.media import DEFAULT_MEDIA_LIMITS, MediaLimits
from exeunt.supervisor.checks import number, whole_number

MIB = 1024 * 1024


def _folder(instance: object, attribute: "attrs.Attribute[Path | None]", value: Path | None) -> None:
    if value is not None and not (value.is_absolute() and value.is_dir()):
        raise InvalidConfiguration(
            f"{attribute.name} must be the absolute path of a folder, not {str(value)!r:.80}"
        )


def _limits(instance: object, attribute: "attrs.Attribute[MediaLimits]", value: object) -> None:
    if not isinstance(value, MediaLimits):
        raise InvalidConfiguration(f"{attribute.name} must be MediaLimits, not {value!r:.80}")


@attrs.frozen(kw_only=True)
class WireOptions:
    """Bounds and habits of a server."""

    longest_frame: int = attrs.field(default=32 * MIB, validator=whole_number(least=1024))
    """Bytes of one message of a client. A prompt with some pictures in it has a few MiB."""
    outbox: int = attrs.field(default=16 * MIB, validator=whole_number(least=1024))
    """Bytes that may wait for a client that reads slowly: minutes of a streamed answer. Beyond it, events of the
    moment are left out, and when that is not enough, the connection is closed."""
    write_timeout: float = attrs.field(default=60.0, validator=number(least=0, open_at_least=True))
    """Seconds that a client may take to read what fits into the network: then its connection is closed."""
    frame_timeout: float = attrs.field(default=60.0, validator=number(least=0, open_at_least=True))
    """Seconds that a client may be silent in the middle of a message."""
    login_timeout: float = attrs.field(default=30.0, validator=number(least=0, open_at_least=True))
    """Seconds until a connection must have sent its token, where one is needed."""
    most_connections: int = attrs.field(default=10_000, validator=whole_number(least=1))
    """Connections at once. More are closed unread, and counted."""
    requests_at_once: int = attrs.field(default=1_000, validator=whole_number(least=1))
    """Requests of one connection that wait for something. More are refused."""
    tool_timeout: float = attrs.field(default=3600.0, validator=number(least=0, open_at_least=True))
    """Seconds that a client may take to answer a call: it may have to ask a person, as for an approval."""
    answer_timeout: float = attrs.field(default=600.0, validator=number(least=0, open_at_least=True))
    """Seconds that a client may take to answer any other request. Hooks have the bound of their session."""
    wait_for_clients: bool = False
    """Whether a call waits for a client that has disconnected, until one answers or the call's time is over. Else
    it fails, and the model reads so."""
    session_files: Path | None = None
    """The folder on this machine in which the files are kept of sessions whose client keeps none: a folder of its own
    for each. Without it they have none."""
    files_timeout: float = attrs.field(default=30.0, validator=number(least=0, open_at_least=True))
    """Seconds that whoever keeps the files of a session may take for one request."""
    context_tokens: int = attrs.field(default=128_000, validator=whole_number(least=1))
    """Tokens that a model takes in, where a client does not say: what most models of 2026 take at least."""
    system_message: str = ""
    """What stands before the system message of each session, unless its client replaces it: its section `identity`."""
    attachments_root: Path | None = attrs.field(
        default=None, converter=attrs.converters.optional(Path), validator=_folder
    )
    """The folder below which files are read that clients attach by their path. `None`: paths are only named."""
    media_limits: MediaLimits = attrs.field(default=DEFAULT_MEDIA_LIMITS, validator=_limits)
    """How much a session takes in of what its clients attach, and their tools show."""
    instruction_roots: tuple[Path, ...] = ()
    """Folders in which clients may name some whose files with instructions the server reads for them
    (`instructionDirectories`). Without any, a client that names one is refused: nobody reads the server's disk."""
    current_datetime: bool = False
    """Whether the message that begins a turn is preceded by the date and the time, as `create_session` has it."""
    shutdown_ends_server: bool = False
    """Whether `runtime.shutdown` of a client ends the server: for one that serves its standard input alone."""


class Tokens:
    """Who may connect: tokens, each of a tenant. Without any, everybody may, as the tenant without a name."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """*tokens* are tenants by their tokens. Raises `InvalidConfiguration` for an empty one, which anybody has."""
        if not all(isinstance(token, str) and token for token in tokens):
            raise InvalidConfiguration(
                "a token must be a text that is not empty: whoever connects is to know it"
            )
        self._tenants = [(_digest(token), tenant) for token, tenant in tokens.items()]

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def tenant(self, token: str) -> str | None:
        """Return whose token it is, or `None`. Takes the same time whichever it is, and whether it is one at all."""
        digest, found = _digest(token), None
        # No way out of the loop: the place of a token among the others would be told by the time.
        for known, tenant in self._tenants:
            if hmac.compare_digest(known, digest):
                found = tenant
        return found


def _digest(token: str) -> bytes:
    # Of equal length, so that a comparison says nothing of the token's.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
