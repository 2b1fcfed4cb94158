"""The headers of a request, encoded once."""

import re
from collections.abc import Iterable, Mapping

from exeunt.actors.errors import InvalidConfiguration

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

# Set for each request by the HTTP client; a second one would confuse where a request ends.
_FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}
)

WireHeaders = list[tuple[bytes, bytes]]


def checked_headers(extra: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case. Raises `InvalidConfiguration` for what cannot be sent."""
    checked: dict[str, str] = {}
    for name, value in extra.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidConfiguration(f"headers hold {name!r}, which is no header name")
        if name.lower() in _FRAMING:
            raise InvalidConfiguration(f"headers must not hold {name!r}: it is set for each request")
        if not isinstance(value, str) or not _VALUE.fullmatch(value) or value != value.strip():
            raise InvalidConfiguration(f"the value of the header {name!r} cannot be sent")
        checked[name.lower()] = value
    return checked


def with_headers(headers: WireHeaders, further: Iterable[tuple[str, str]]) -> WireHeaders:
    """Return *headers* with those of one request, which were checked before; of two with one name the first stays."""
    known = {name for name, _ in headers}
    pairs = [(name.encode("ascii"), value.encode("latin-1")) for name, value in further]
    return [*headers, *(pair for pair in pairs if pair[0] not in known)]


def checked_key(api_key: str) -> str:
    """Return *api_key*. Raises `InvalidConfiguration`, without quoting it, for what cannot be a key."""
    if not isinstance(api_key, str) or not api_key.strip() or not api_key.isascii():
        raise InvalidConfiguration("api_key must be an ASCII text that is not blank, or None")
    return api_key


def bearer(api_key: str | None) -> dict[str, str]:
    """Return the header that carries *api_key* as a bearer token; none without one."""
    return {} if api_key is None else {"authorization": f"Bearer {checked_key(api_key)}"}


def wire_headers(own: Mapping[str, str], extra: Mapping[str, str]) -> tuple[WireHeaders, WireHeaders]:
    """Return the headers of a plain and of a streaming request. *own* are those of the door, and *extra* win.

    Raises `InvalidConfiguration`. Messages never quote a value: it may be a secret.
    """
    common = {
        "user-agent": "exeunt",
        "content-type": "application/json",
        # An event stream through a compressor arrives in lumps.
        "accept-encoding": "identity",
    }
    sent = checked_headers(common | dict(own)) | checked_headers(extra)
    pairs = [(name.encode("ascii"), value.encode("latin-1")) for name, value in sent.items()]
    if "accept" in sent:
        return pairs, pairs
    return [*pairs, (b"accept", b"application/json")], [*pairs, (b"accept", b"text/event-stream")]
