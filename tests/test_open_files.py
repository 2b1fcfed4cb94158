"""The limit of open files: raised to what the system allows, and never an error."""

import json
import subprocess
import sys

import pytest

from exeunt import tuning

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")


def in_a_process(*lines: str) -> object:
    """Run lines that leave something in `found`, in a process of its own: a hard limit cannot be raised again."""
    program = ("import exeunt, json, resource", *lines, "print(json.dumps(found))")
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, check=True)
    return json.loads(done.stdout)


def test_the_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    assert in_a_process(
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1_111))",
        "found = [exeunt.allow_many_files(), resource.getrlimit(resource.RLIMIT_NOFILE)]",
    ) == [1_111, [1_111, 1_111]]


class Limit:
    """What the system says of its limits, and takes."""

    def __init__(self, soft: int, hard: int, *, takes: int = 10**9, error: type[Exception] = OSError) -> None:
        self.now = (soft, hard)
        self.asked: list[int] = []
        self._takes = takes
        self._error = error

    def get(self, _: int) -> tuple[int, int]:
        """Say what holds."""
        return self.now

    def set(self, _: int, limits: tuple[int, int]) -> None:
        """Take a limit, or refuse it."""
        self.asked.append(limits[0])
        if limits[0] > self._takes:
            raise self._error("not so many")
        self.now = limits

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Be the system."""
        import resource

        monkeypatch.setattr(resource, "getrlimit", self.get)
        monkeypatch.setattr(resource, "setrlimit", self.set)
        monkeypatch.setattr(resource, "RLIM_INFINITY", INFINITE)


INFINITE = -1


@pytest.mark.parametrize(
    ("limit", "holds", "asked"),
    [
        (Limit(1_024, INFINITE), 65_536, [65_536]),
        (Limit(1_024, 2**30), 65_536, [65_536]),
        (Limit(1_024, 4_096), 4_096, [4_096]),
        (Limit(4_096, 4_096), 4_096, []),
        (Limit(100_000, 2**30), 100_000, []),  # never lowered
        (Limit(INFINITE, INFINITE), None, []),
        (Limit(256, INFINITE, takes=10_240, error=ValueError), 10_240, [65_536, 10_240]),  # macOS
        (Limit(256, 20_000, takes=0), 256, [20_000, 10_240]),  # a system that refuses
    ],
)
def test_how_many_files_are_allowed(
    limit: Limit, holds: int | None, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit.put(monkeypatch)
    assert tuning.allow_many_files() == holds
    assert limit.asked == asked


def test_on_windows_there_is_no_limit_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert tuning.allow_many_files() is None
