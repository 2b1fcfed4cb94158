"""Whole programs, run in processes of their own: for signals, forks and the end of the interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """
import asyncio, os, signal, sys, threading
import trio
import exeunt
from exeunt.testing import ScriptedModel, call, hang

def watch(host):
    host.observe(lambda _, events: [print(event.type, flush=True) for event in events])
"""


class Program:
    """A program that runs, and what it has printed so far."""

    def __init__(self, text: str, *, env: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PRELUDE + text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        )
        self.lines: list[str] = []

    def until(self, line: str) -> None:
        """Read on until the program has printed *line*."""
        assert self._process.stdout is not None
        for printed in self._process.stdout:
            self.lines.append(printed.rstrip("\n"))
            if self.lines[-1] == line:
                return
        raise AssertionError(f"the program ended without {line!r}: {self.end()}")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its code and what it wrote to stderr."""
        try:
            out, errors = self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, errors = self._process.communicate()
            raise AssertionError(f"the program hangs; it wrote {out!r} and {errors!r}") from None
        self.lines += out.splitlines()
        return self._process.returncode, errors
