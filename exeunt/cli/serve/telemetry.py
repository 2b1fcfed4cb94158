"""Whether and where a server sends its traces: from options, and from the environment that clients set.

Nothing of OpenTelemetry is imported before that is known, and nothing at all where no traces are wanted.
"""

import importlib.util
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.cli.serve.otel_variables import check_variables
from exeunt.cli.serve.switches import whole_number

if TYPE_CHECKING:
    from exeunt.telemetry import Telemetry

logger = logging.getLogger("exeunt.telemetry")

Protocol = Literal["http/protobuf", "http/json"]

ENABLED = "COPILOT_OTEL_ENABLED"
DISABLED = "OTEL_SDK_DISABLED"
FILE = "COPILOT_OTEL_FILE_EXPORTER_PATH"
KIND = "COPILOT_OTEL_EXPORTER_TYPE"
SOURCE_NAME = "COPILOT_OTEL_SOURCE_NAME"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
QUEUE = "OTEL_BSP_MAX_QUEUE_SIZE"

DEFAULT_ENDPOINT = "http://localhost:4318"
"""Where OpenTelemetry's exporter finds a collector that nobody has named."""

YES = frozenset({"true", "1", "yes", "on"})
NO = frozenset({"false", "0", "no", "off"})

CAPTURES = {"span_only": True, "span_and_event": True, "event_only": False, "no_content": False}
"""Further values that OpenTelemetry's own instrumentations take."""


@attrs.frozen(kw_only=True)
class TraceOptions:
    """Where traces go."""

    file: Path | None = None
    """A file; without one, a collector."""
    url: str | None = None
    """The collector's, with its path; `None` leaves it to the exporter, which reads the environment."""
    where: str = DEFAULT_ENDPOINT
    """The place, for people."""
    protocol: Protocol = "http/protobuf"
    source_name: str = "exeunt"
    capture_content: bool = False
    most_waiting: int | None = None


def trace_options(
    environ: Mapping[str, str],
    *,
    file: Path | None = None,
    endpoint: str | None = None,
    capture_content: bool = False,
) -> TraceOptions | None:
    """Return where traces go; `None` where none are wanted. An option wins over the environment.

    Raises `InvalidConfiguration` for values that make no sense, and where traces were asked for and the extra is
    missing. Where only an endpoint in the environment speaks for them, which may be meant for others, a warning is
    logged.
    """
    disabled = _flag(environ, DISABLED)
    wanted = _flag(environ, ENABLED)
    asked = file is not None or endpoint is not None or wanted is True
    hinted = any(environ.get(name) for name in (FILE, *ENDPOINTS))
    if disabled or (not asked and (wanted is False or not hinted)):
        if capture_content and not disabled:
            raise InvalidConfiguration(
                "what is said is to be in the traces, and there are none: say where they go, by --otel-endpoint or "
                "--otel-file"
            )
        return None
    if importlib.util.find_spec("opentelemetry") is None:
        missing = 'traces need an extra: pip install "exeunt[otel]"'
        if asked:
            raise InvalidConfiguration(missing)
        logger.warning("no traces are sent, though the environment names a collector: %s", missing)
        return None
    path = file or (Path(environ[FILE]) if environ.get(FILE) else None)
    kind = _kind(environ, file, endpoint, path)
    if kind == "file" and path is None:
        raise InvalidConfiguration(f"{KIND} is file: set {FILE} to the path of the file")
    given = endpoint or _first(environ, ENDPOINTS)
    if kind == "otlp-http" and given is not None:
        _check_url(given)
    if kind == "file" and path is not None:
        _check_file(path)
    check_variables(environ, to_collector=kind != "file")
    return TraceOptions(
        file=path if kind == "file" else None,
        url=None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces",
        where=str(path) if kind == "file" else _told(given or DEFAULT_ENDPOINT),
        protocol=_protocol(environ),
        source_name=environ.get(SOURCE_NAME) or "exeunt",
        capture_content=capture_content or _captures(environ),
        most_waiting=whole_number(environ, QUEUE),
    )


@asynccontextmanager
async def open_traces(options: TraceOptions | None) -> "AsyncGenerator[Telemetry | None]":
    """Give the telemetry for a host, which is to be opened inside; `None` for no traces."""
    if options is None:
        yield None
        return
    from exeunt.telemetry import export

    # They would say for each batch what is said once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    most_waiting = options.most_waiting or export.MOST_WAITING
    async with export.open_export(
        export.collector_exporter(options.url, options.protocol)
        if options.file is None
        else export.JsonLinesExporter(options.file),
        options.where,
        source_name=options.source_name,
        capture_content=options.capture_content,
        most_waiting=most_waiting,
    ) as opened:
        yield opened.telemetry


def _flag(environ: Mapping[str, str], name: str) -> bool | None:
    value = environ.get(name, "").strip().lower()
    if value in YES or value in NO or not value:
        return value in YES if value else None
    raise InvalidConfiguration(f"{name} is true or false, not {environ[name]!r:.40}")


def _first(environ: Mapping[str, str], variables: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in variables if environ.get(name)), None)


def _kind(environ: Mapping[str, str], file: Path | None, endpoint: str | None, path: Path | None) -> str:
    if file is not None:
        return "file"
    if endpoint is not None:
        return "otlp-http"
    kind = environ.get(KIND) or ("otlp-http" if path is None else "file")
    if kind not in ("file", "otlp-http"):
        raise InvalidConfiguration(f"{KIND} is file or otlp-http, not {kind!r:.40}")
    return kind


def _protocol(environ: Mapping[str, str]) -> Protocol:
    given = _first(environ, PROTOCOLS) or "http/protobuf"
    for known in ("http/protobuf", "http/json"):
        if given == known:
            return known
    raise InvalidConfiguration(
        f"traces are sent by http/protobuf or http/json, not {given!r:.40}: set {PROTOCOLS[0]}, "
        f"or {ENABLED}=false for no traces"
    )


def _captures(environ: Mapping[str, str]) -> bool:
    value = environ.get(CAPTURE, "").strip().lower()
    known = CAPTURES.get(value)
    return bool(_flag(environ, CAPTURE)) if known is None else known


def _told(url: str) -> str:
    """Return a URL as it may stand in a log: without what lets somebody in."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise InvalidConfiguration(
            f"a collector is named by a URL such as {DEFAULT_ENDPOINT}, not {url.rpartition('@')[2]!r:.200}"
        )


def _check_file(path: Path) -> None:
    """See whether lines can be added to a file, which is made with the first. Nothing is made now."""
    try:
        why = _unwritable(path)
    except OSError as error:
        why = error.strerror or str(error)
    if why is not None:
        raise InvalidConfiguration(f"traces cannot go to {str(path)!r}: {why}")


def _unwritable(path: Path) -> str | None:
    if path.is_dir():
        return "it is a folder"
    if path.exists():
        return None if os.access(path, os.W_OK) else "it may not be written to"
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {str(folder)!r}"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be made in {str(folder)!r}"
