"""The parsers of `prometheus_client`, with types."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

# One of the two has no types.
_openmetrics = cast(
    "Callable[[str], Iterable[Metric]]", cast(Any, openmetrics_parser).text_string_to_metric_families
)


def parse_text(body: bytes) -> list[Metric]:
    """The families of an answer in the text format."""
    return list(text_string_to_metric_families(body.decode()))


def parse_openmetrics(body: bytes) -> list[Metric]:
    """The families of an answer in OpenMetrics. Raises `ValueError` where it breaks a rule of the format."""
    return list(_openmetrics(body.decode()))
