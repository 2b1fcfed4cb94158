"""OpenTelemetry's own variables, looked at before a server starts.

Its SDK takes a default for what it does not understand, with a warning that nobody reads, or raises a `ValueError` from
its depths. Names and meanings are those of its specification.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from exeunt.actors.errors import InvalidConfiguration
from exeunt.cli.serve.switches import whole_number

SAMPLER = "OTEL_TRACES_SAMPLER"
SAMPLER_ARGUMENT = "OTEL_TRACES_SAMPLER_ARG"
RATIO = "traceidratio"
SAMPLERS = tuple(
    f"{parent}{name}" for parent in ("", "parentbased_") for name in ("always_on", "always_off", RATIO)
)

LIMITS = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
)
COMPRESSIONS = ("none", "gzip", "deflate")
FILES = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A name of a header."""


def check_variables(environ: Mapping[str, str], *, to_collector: bool) -> None:
    """Look at the variables that hold for every export, and at those of one *to_collector*.

    Raises `InvalidConfiguration` that names the variable; it repeats no header, which may be a key.
    """
    _check_sampler(environ)
    for name in LIMITS:
        whole_number(environ, name, least=0)
    _check_pairs("OTEL_RESOURCE_ATTRIBUTES", environ.get("OTEL_RESOURCE_ATTRIBUTES"), bool)
    if to_collector:
        for kind, check in _OF_EXPORTER.items():
            for name in _names(kind):
                if environ.get(name, "").strip():
                    check(name, environ[name].strip())


def _names(kind: str) -> Iterable[str]:
    return (f"OTEL_EXPORTER_OTLP_TRACES_{kind}", f"OTEL_EXPORTER_OTLP_{kind}")


def _check_sampler(environ: Mapping[str, str]) -> None:
    sampler = environ.get(SAMPLER, "").strip().lower()
    if not sampler:
        return
    if sampler not in SAMPLERS:
        raise InvalidConfiguration(f"{SAMPLER} is one of {', '.join(SAMPLERS)}, not {sampler!r:.40}")
    argument = environ.get(SAMPLER_ARGUMENT, "").strip()
    if sampler.endswith(RATIO) and argument and not 0.0 <= _number(argument) <= 1.0:
        raise InvalidConfiguration(f"{SAMPLER_ARGUMENT} is a share from 0 to 1, not {argument!r:.40}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_timeout(name: str, value: str) -> None:
    if not 0.0 < _number(value) < math.inf:
        raise InvalidConfiguration(f"{name} is a time in seconds above 0, not {value!r:.40}")


def _check_compression(name: str, value: str) -> None:
    if value.lower() not in COMPRESSIONS:
        raise InvalidConfiguration(f"{name} is one of {', '.join(COMPRESSIONS)}, not {value!r:.40}")


def _check_file(name: str, value: str) -> None:
    if not (Path(value).is_file() and os.access(value, os.R_OK)):
        raise InvalidConfiguration(f"{name}: there is no file {value!r:.200} that could be read")


def _check_headers(name: str, value: str) -> None:
    _check_pairs(name, value, _HEADER.fullmatch)


def _check_pairs(name: str, text: str | None, is_key: Callable[[str], object]) -> None:
    for number, pair in enumerate((text or "").split(","), start=1):
        key, equals, _ = pair.partition("=")
        if pair.strip() and not (equals and is_key(key.strip())):
            raise InvalidConfiguration(
                f"{name} is key=value, or several of them with commas between; number {number} is not"
            )


_OF_EXPORTER: Mapping[str, Callable[[str, str], None]] = {
    "TIMEOUT": _check_timeout,
    "COMPRESSION": _check_compression,
    "HEADERS": _check_headers,
    **dict.fromkeys(FILES, _check_file),
}
