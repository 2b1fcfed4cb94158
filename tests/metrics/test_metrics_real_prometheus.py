"""A real Prometheus scrapes a real endpoint, and its own tool finds nothing to say about it.

Taken from PATH, or on Debian, as root, from the package of the distribution unpacked below .cache: nothing is
installed. Elsewhere these tests are skipped.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
import pytest
import trio

import exeunt.metrics
from exeunt.metrics import Metrics, open_exposition
from exeunt.wire.collector import WireCollector
from exeunt.wire.statistics import WireStatistics
from tests.metrics import event_makers as make
from tests.metrics.event_makers import Statistics

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "prometheus"
RULES = Path(exeunt.metrics.__file__).parent / "dashboards" / "alerts.yml"

DOWNLOAD_WAIT = 60
"""Seconds for each of the three commands that fetch the package (19 MB)."""

# The first of these tests may have to fetch the package.
pytestmark = pytest.mark.timeout(4 * DOWNLOAD_WAIT)


@attrs.frozen
class Tools:
    prometheus: str
    promtool: str
    consoles: tuple[str, ...] = ()
    """Where an unpacked package has the files that an installed one finds by itself."""


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    prometheus, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if prometheus and promtool:
        yield Tools(prometheus, promtool)
        return
    if not (
        hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") and shutil.which("dpkg")
    ):
        pytest.skip(
            "no prometheus and promtool in PATH, and no Debian package to be had without root and apt-get"
        )
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may run these tests at the same time
        root = CACHE / "root"
        if not (root / "usr/bin/promtool").exists():
            unpack(root)
    etc = root / "etc/prometheus"
    yield Tools(
        str(root / "usr/bin/prometheus"),
        str(root / "usr/bin/promtool"),
        (f"--web.console.templates={etc}/consoles", f"--web.console.libraries={etc}/console_libraries"),
    )


def unpack(root: Path) -> None:
    """Fetch the package and unpack it at *root*; skip the test where that cannot be done."""

    def run(*command: str) -> bool:
        try:
            subprocess.run(command, cwd=CACHE, check=True, capture_output=True, timeout=DOWNLOAD_WAIT)
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def fetched(package: str) -> bool:
        return run("apt-get", "-o", "APT::Sandbox::User=root", "download", package)

    def put(package: str) -> None:
        file = max(CACHE.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
        if not run("dpkg", "-x", str(file), str(unfinished)):
            pytest.skip(f"dpkg could not unpack {file.name}")
        file.unlink()

    if not fetched("prometheus") and not (run("apt-get", "update") and fetched("prometheus")):
        pytest.skip("apt-get could not download the package of Prometheus")
    unfinished = CACHE / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    put("prometheus")
    if not (unfinished / "usr/bin/promtool").exists():
        # Newer Debians have its tool in a package of its own.
        if not fetched("promtool"):
            pytest.skip("apt-get could not download the package of Prometheus' tool")
        put("promtool")
    unfinished.rename(root)


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics(strict=True)
    metrics.register_tools(["search"])
    metrics.attach(Statistics)
    metrics.observe("session-a", [make.turn_end("terminal_tool"), make.turn_end(), make.tool_complete()])
    metrics.observe("session-b", [make.turn_end(), make.cleared(), make.usage(), make.model_failure()])
    metrics.observe_commit(0.002, 9)
    clients = WireStatistics(
        connections=3, requests={("session.send", "answered"): 2, ("other", "refused"): 1}
    )
    metrics.registry.register(WireCollector(lambda: clients))
    return metrics


def test_promtool_finds_no_fault_in_the_exposition(tools: Tools, metrics: Metrics) -> None:
    checked = subprocess.run(
        [tools.promtool, "check", "metrics"],
        input=metrics.exposition(),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_promtool_takes_the_alert_rules(tools: Tools) -> None:
    checked = subprocess.run(
        [tools.promtool, "check", "rules", str(RULES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def ask(port: int, path: str, **query: str) -> Any:
    """The data that Prometheus' API answers, or `None` as long as it does not."""
    try:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(f"GET {path}?{urlencode(query)} HTTP/1.0\r\n\r\n".encode())
            answer = b"".join([chunk async for chunk in stream])
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return json.loads(body)["data"] if b" 200 " in head.splitlines()[0] else None


def by_labels(data: Any) -> dict[tuple[str, ...], float]:
    """The values of an answer by those labels that the scraped program gave, in the order of their names."""
    return {
        tuple(
            str(row["metric"][name])
            for name in sorted(row["metric"])
            if name not in {"__name__", "instance", "job"}
        ): float(row["value"][1])
        for row in data["result"]
    }


async def test_prometheus_scrapes_counters_gauges_and_exemplars(
    tools: Tools, metrics: Metrics, tmp_path: Path
) -> None:
    metrics.detach()
    metrics.attach(Statistics)  # now the statistics belong to this loop, as those of a host do
    port = free_port()

    async def value_of(query: str) -> dict[tuple[str, ...], float]:
        return by_labels(await ask(port, "/api/v1/query", query=query) or {"result": []})

    with (tmp_path / "log").open("wb") as log:
        async with open_exposition(metrics) as exposition, trio.open_nursery() as nursery:
            config = {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [
                    {
                        "job_name": "exeunt",
                        "static_configs": [{"targets": [f"127.0.0.1:{exposition.port}"]}],
                    }
                ],
            }
            (tmp_path / "prometheus.json").write_text(json.dumps(config))  # JSON is YAML
            command = [
                tools.prometheus,
                f"--config.file={tmp_path}/prometheus.json",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--enable-feature=exemplar-storage",
                *tools.consoles,
            ]
            await nursery.start(partial(trio.run_process, command, check=False, stdout=log, stderr=log))

            # Another program's clock cannot be virtual: this looks until it has scraped once.
            with trio.fail_after(40):
                while not (ends := await value_of("exeunt_turn_terminations_total")):  # noqa: ASYNC110
                    await trio.sleep(0.1)
            assert ends == {
                ("completed",): 2,
                ("terminal_tool",): 1,
                ("context_cleared",): 0,
                ("aborted",): 0,
                ("limit",): 0,
                ("error",): 0,
                ("interrupted",): 0,
            }
            assert await value_of("exeunt_context_clears_total > 0") == {("committed",): 1}
            assert await value_of("exeunt_tool_calls_total") == {("success", "false", "search"): 1}
            assert await value_of("exeunt_sessions > 0") == {("live",): 3, ("failed",): 1}
            assert await value_of("up") == {(): 1}
            exemplars = await ask(
                port,
                "/api/v1/query_exemplars",
                query="exeunt_turn_terminations_total",
                start="0",
                end="4000000000",
            )
            assert {
                series["seriesLabels"]["reason"]: [exemplar["labels"] for exemplar in series["exemplars"]]
                for series in exemplars
            } == {"completed": [{"session_id": "session-b"}], "terminal_tool": [{"session_id": "session-a"}]}
            nursery.cancel_scope.cancel()
