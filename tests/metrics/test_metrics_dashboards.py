"""The dashboard and the alert rules ask for metrics that there are."""

import json
import re
from pathlib import Path

import pytest

import exeunt.metrics
from exeunt.metrics import Metrics
from exeunt.wire.collector import WireCollector
from exeunt.wire.statistics import WireStatistics
from tests.metrics import event_makers as make
from tests.metrics.event_makers import Statistics

FOLDER = Path(exeunt.metrics.__file__).parent / "dashboards"


def served_metrics() -> Metrics:
    """The metrics of a host with a server for clients."""
    metrics = Metrics(strict=True)
    metrics.attach(Statistics)
    numbers = WireStatistics(requests={("session.send", "answered"): 2})
    metrics.registry.register(WireCollector(lambda: numbers))
    return metrics


@pytest.mark.parametrize("name", ["exeunt.json", "alerts.yml"])
def test_a_dashboard_asks_only_for_samples_that_there_are(name: str) -> None:
    metrics = served_metrics()
    metrics.observe("s1", [make.usage(), make.tool_complete(), make.handoff()])
    there = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    asked = set(re.findall(r"\bexeunt_\w+", (FOLDER / name).read_text(encoding="utf-8")))
    assert asked
    assert asked <= there


def test_the_dashboard_shows_every_metric() -> None:
    shown = (FOLDER / "exeunt.json").read_text(encoding="utf-8")
    metrics = served_metrics()
    names = {family.name for family in metrics.registry.collect()}
    assert [name for name in sorted(names) if f"{name}_" not in shown and f"{name}{{" not in shown] == []


def test_the_dashboard_is_one_that_grafana_can_import() -> None:
    dashboard = json.loads((FOLDER / "exeunt.json").read_text(encoding="utf-8"))
    assert dashboard["uid"] == "exeunt"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert ids == sorted(set(ids))
    assert all(panel["targets"] for panel in dashboard["panels"])
