"""The client's own end-to-end suite, from a checkout of its repository, in an environment of its own.

Nothing of the suite is kept in this repository: `core.txt` names tests, `listed.toml` says which fail and why.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from tests.interop.e2e.relay import relay
from tests.interop.node import ROOT, modules

HERE = Path(__file__).parent
CORE = HERE / "core.txt"
LISTED = HERE / "listed.toml"

MODEL = "claude-sonnet-4.5"
"""The model of most recordings."""

PRICES = '{"*": {"input": 100, "output": 500}}'
"""Credits for a million tokens: some that a test's few calls do not come near to its limit with."""

TEST_LIMIT = 90
"""Seconds for one test: the longest of them waits for a model's retries, some 15 s, on a loaded machine."""


@attrs.frozen
class Result:
    """How one test ended: `passed`, `failed` or `skipped`, with the last line of its error."""

    test: str
    outcome: str
    error: str = ""


def core() -> list[str]:
    """The ids of the tests that count."""
    ids: list[str] = []
    file = ""
    for line in CORE.read_text().splitlines():
        if line.startswith("test_"):
            file = line.strip()
        elif line.startswith(" "):
            ids.append(f"e2e/{file}::{line.strip()}")
    return ids


def listed() -> Mapping[str, str]:
    """Tests that are known to fail, each with the reason."""
    return {
        test: reason for reason, tests in tomllib.loads(LISTED.read_text()).items() for test in tests["tests"]
    }


def prepare(checkout: Path) -> Path:
    """A copy of the parts of `checkout` that the suite runs from; its folder `python`.

    A copy, because the suite looks for installed packages beside itself. Raises `FileNotFoundError` when `checkout`
    holds no such suite.
    """
    if not (checkout / "python" / "e2e").is_dir():
        raise FileNotFoundError(f"{checkout} is no checkout of the client's repository: it has no python/e2e")
    copy = ROOT / ".cache" / "interop" / "e2e"
    for part in ("python", "test"):
        shutil.rmtree(copy / part, ignore_errors=True)
        shutil.copytree(
            checkout / part, copy / part, ignore=shutil.ignore_patterns("node_modules", "__pycache__")
        )
    (copy / "test" / "harness" / "node_modules").symlink_to(modules(HERE / "package.json", optional=True))
    return copy / "python"


def environment() -> Path:
    """The Python of an environment with what the suite imports."""
    requirements = HERE / "requirements.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    venv = ROOT / ".cache" / "interop" / f"venv-{key}"
    python = venv / "bin" / "python"
    if not (venv / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "-qq",
            "install",
            "-r",
            str(requirements),
        ]
        subprocess.run(pip, check=True)
        (venv / "done").touch()
    return python


def wrapped(runtime: Path, folder: Path, relay: str) -> Path:
    """A program that starts `runtime` with the model of the suite's recording proxy behind a `relay`, and a journal.

    The suite tells its runtime the proxy's address under a name of the client's own cloud; ours takes any provider.
    """
    path = folder / "runtime.sh"
    path.write_text(
        "#!/bin/sh\n"
        'if [ -n "$COPILOT_API_URL" ]; then\n'
        '  export EXEUNT_PROVIDER_TYPE=openai EXEUNT_PROVIDER_BASE_URL="'
        f'{relay}/${{COPILOT_API_URL#http://}}"\n'
        f'  export EXEUNT_PROVIDER_API_KEY="$GITHUB_TOKEN" EXEUNT_PROVIDER_MODEL={MODEL}\n'
        "fi\n"
        # What the runtime of the recordings calls itself: the suite looks for the name.
        'export EXEUNT_SYSTEM_MESSAGE="You are the GitHub Copilot CLI, a terminal assistant built by GitHub."\n'
        # The suite's thresholds are shares of a room with the system message and the tools of a coding product in it.
        "export EXEUNT_CONTEXT_TOKENS=100000\n"
        # The runtime of the recordings tells the model the time, and a test of the suite looks for it in a prompt.
        "export EXEUNT_CURRENT_DATETIME=1\n"
        # The suite's limit is one in credits, and its list of models tells no prices; a recording goes on with a model
        # of this name when its own is at a limit.
        f"export EXEUNT_PRICES='{PRICES}' EXEUNT_AUTO_MODEL=auto\n"
        # Not in $COPILOT_HOME itself: the suite empties that while its runtime runs.
        f'export EXEUNT_JOURNAL="sqlite:///{folder}/journals/$(basename "$COPILOT_HOME").sqlite3"\n'
        f'exec {shlex.quote(str(runtime))} "$@"\n'
    )
    path.chmod(0o755)
    shutil.rmtree(folder / "journals", ignore_errors=True)
    (folder / "journals").mkdir()
    return path


def run(folder: Path, tests: Iterable[str], runtime: Path, workers: int) -> list[Result]:
    """Run `tests` of the suite in `folder` against `runtime`, files side by side; how each ended."""
    report = folder / "report.xml"
    options = [
        "-q",
        "-n",
        str(workers),
        "--dist",
        "loadfile",
        "--timeout",
        str(TEST_LIMIT),
        "-p",
        "no:warnings",
        # With the other kinds pytest reads the sources anew, and fails itself for some errors of Python 3.11.
        "--tb",
        "native",
    ]
    # The suite rewrites its recordings except under continuous integration.
    env = {**os.environ, "GITHUB_ACTIONS": "true", "PYTHONPATH": str(folder)}
    log = folder / "run.log"
    with log.open("w") as out, relay() as address:
        env["COPILOT_CLI_PATH"] = str(wrapped(runtime, folder, address))
        command = [str(environment()), "-m", "pytest", *options, f"--junitxml={report}", *tests]
        subprocess.run(command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, check=False)
    if not report.exists():
        raise RuntimeError(f"the suite did not run; {log} says:\n{log.read_text()[-2000:]}")
    return [_result(case) for case in ET.parse(report).iter("testcase")]


def _result(case: ET.Element) -> Result:
    module, *classes = case.get("classname", "").removeprefix("e2e.").split(".")
    test = "::".join([f"e2e/{module}.py", *classes, case.get("name", "")])
    problem = case.find("failure")
    if problem is None:
        problem = case.find("error")
    if problem is not None:
        lines = (problem.get("message") or problem.text or "").splitlines()
        return Result(test, "failed", lines[0] if lines else "")
    return Result(test, "skipped" if case.find("skipped") is not None else "passed")
