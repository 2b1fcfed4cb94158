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


def wire_headers(api_key: str | None, extra: Mapping[str, str]) -> tuple[WireHeaders, WireHeaders]:
    """Return the headers of a plain and of a streaming request. *extra* wins. Raises `InvalidConfiguration`.

    Messages never quote a value: it may be a secret.
    """
    own = {
        "user-agent": "exeunt",
        "content-type": "application/json",
        # An event stream through a compressor arrives in lumps.
        "accept-encoding": "identity",
    }
    if api_key is not None:
        if not isinstance(api_key, str) or not api_key.strip() or not api_key.isascii():
            raise InvalidConfiguration("api_key must be an ASCII text that is not blank, or None")
        own["authorization"] = f"Bearer {api_key}"
    own = checked_headers(own) | checked_headers(extra)
    pairs = [(name.encode("ascii"), value.encode("latin-1")) for name, value in own.items()]
    if "accept" in own:
        return pairs, pairs
    return [*pairs, (b"accept", b"application/json")], [*pairs, (b"accept", b"text/event-stream")]
