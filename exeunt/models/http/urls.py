"""URLs of model APIs and of proxies, and which proxy the environment asks for. Pure."""

import base64
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

import attrs

from exeunt.actors.errors import InvalidConfiguration

_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


@attrs.frozen
class Origin:
    """Where a server listens."""

    scheme: str
    host: str
    """A name in ASCII, or an address without brackets."""
    port: int

    @property
    def address(self) -> str:
        """`host:port`, as CONNECT wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str:
        """The value of the header `Host`: without the port where that is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@attrs.frozen
class Proxy:
    """An HTTP proxy."""

    origin: Origin
    authorization: bytes | None = attrs.field(default=None, repr=False)
    """The value of `Proxy-Authorization`, where the URL had a user."""


def _split(url: str, what: str) -> tuple[SplitResult, Origin]:
    # The URL is not quoted in messages: it may hold a password.
    if not url or _UNSAFE.search(url):
        raise InvalidConfiguration(f"{what} must be a URL without white space or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidConfiguration(f"{what} is no URL: {error}") from None
    if parts.scheme not in _PORTS:
        begins = f", not with {parts.scheme}:" if parts.scheme else "; it says neither"
        raise InvalidConfiguration(f"{what} must begin with http:// or https://{begins}")
    if not parts.hostname:
        raise InvalidConfiguration(f"{what} names no host")
    if port == 0:
        raise InvalidConfiguration(f"{what} has port 0")
    try:
        host = parts.hostname.encode("ascii" if ":" in parts.hostname else "idna").decode("ascii")
    except UnicodeError:
        raise InvalidConfiguration(f"{what} has a host name that cannot be looked up") from None
    return parts, Origin(parts.scheme, host, port or _PORTS[parts.scheme])


def parse_endpoint(base_url: str, suffix: str) -> tuple[Origin, str]:
    """Return the origin of *base_url* and the request target of *suffix* below it.

    A query string of the base URL stays at the end of the target. Raises `InvalidConfiguration`.
    """
    parts, origin = _split(base_url, "base_url")
    if parts.username is not None or parts.password is not None:
        raise InvalidConfiguration("base_url holds a user or a password: use api_key or headers instead")
    if parts.fragment:
        raise InvalidConfiguration("base_url has a fragment (#...), which is never sent")
    target = parts.path.rstrip("/") + suffix + (f"?{parts.query}" if parts.query else "")
    if not target.isascii():
        raise InvalidConfiguration("base_url has a path that is not ASCII: percent-encode it")
    return origin, target


def parse_proxy(url: str) -> Proxy:
    """Return the proxy that *url* names; a URL without a scheme is an HTTP proxy. Raises `InvalidConfiguration`."""
    parts, origin = _split(url if "://" in url else f"http://{url}", "proxy")
    if origin.scheme != "http":
        raise InvalidConfiguration("proxy must be an http:// proxy; https targets go through its CONNECT")
    if parts.username is None:
        return Proxy(origin)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return Proxy(origin, b"Basic " + base64.b64encode(pair))


def proxy_from_environment(origin: Origin, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that *environ* asks for: `HTTPS_PROXY` or `HTTP_PROXY`, then `ALL_PROXY`, minus `NO_PROXY`.

    Lower-case names win. Raises `InvalidConfiguration` where the value is no proxy.
    """

    def value(name: str) -> str:
        # HTTP_PROXY in capitals is the header `Proxy:` of whoever calls a CGI script.
        capitals = (
            "" if name == "http_proxy" and "REQUEST_METHOD" in environ else environ.get(name.upper(), "")
        )
        return (environ.get(name) or capitals).strip()

    url = value(f"{origin.scheme}_proxy") or value("all_proxy")
    if not url or _is_exempt(origin, value("no_proxy")):
        return None
    return parse_proxy(url)


def _is_exempt(origin: Origin, no_proxy: str) -> bool:
    for entry in no_proxy.lower().split(","):
        pattern = entry.strip()
        if pattern == "*":
            return True
        if pattern and _matches(origin, pattern):
            return True
    return False


def _matches(origin: Origin, pattern: str) -> bool:
    try:
        return ipaddress.ip_address(origin.host) in ipaddress.ip_network(pattern.strip("[]"), strict=False)
    except ValueError:
        pass
    name, colon, port = pattern.rpartition(":")
    if colon and port.isdigit():
        if int(port) != origin.port:
            return False
        pattern = name.strip("[]")
    name = pattern.removeprefix("*").removeprefix(".")
    host = origin.host.lower()
    return bool(name) and (host == name or host.endswith(f".{name}"))
