"""Whole programs, run in processes of their own: for signals, forks and the end of the interpreter."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 30.0
"""Seconds after which a program hangs."""

PRELUDE = """
import asyncio, os, signal, sys, threading
import trio
import exeunt
from exeunt.testing import ScriptedModel, call, hang

def print(*words, flush=True):
    # Lines of two threads stay lines: the built-in one writes the end of a line apart.
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()

def watch(host):
    host.observe(lambda _, events: [print(event.type, flush=True) for event in events])
"""


class Program:
    """A program that runs, and what it has printed so far. It is killed when it hangs."""

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PRELUDE + text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._killer = threading.Timer(PATIENCE, self._process.kill)
        self._killer.start()

    def until(self, line: str) -> None:
        """Read on until the program has printed *line*."""
        while self._read() is not None:
            if self.lines[-1] == line:
                return
        raise AssertionError(f"the program ended without {line!r}: {self.end()}, {self.lines}")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its code and what it wrote to stderr."""
        while self._read() is not None:
            pass
        code = self._process.wait()
        self._killer.cancel()
        self._errors.seek(0)
        with self._errors, self._process.stdout or self._errors:
            errors = self._errors.read()
        assert code != -signal.SIGKILL, f"the program hangs; it wrote {self.lines} and {errors!r}"
        return code, errors

    def _read(self) -> str | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return None
        self.lines.append(line.rstrip("\n"))
        return line
