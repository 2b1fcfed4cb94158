"""The rooms stand where DESIGN puts them, and imports between them point one way."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.source_tree import CODE, ROOMS, ROOT, imported_modules, is_inside, python_files, where

MAY_IMPORT = {
    "actors": ("exeunt.actors",),
    "supervisor": ("exeunt.actors", "exeunt.supervisor"),
    "metrics": ("exeunt.actors", "exeunt.metrics"),
}

# What `actors` and `supervisor` need of the world outside is a Protocol of theirs, which a door implements.
OUTSIDE = (
    "asyncio",
    "h11",
    "http",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "rich",
    "socket",
    "sqlite3",
    "ssl",
    "typer",
)

# The core that can be run through a hundred thousand histories in a second: no loop, no clock, no chance.
PURE = (
    "exeunt.actors.errors",
    "exeunt.actors.events",
    "exeunt.actors.citations",
    "exeunt.actors.media",
    "exeunt.actors.models",
    "exeunt.actors.outcomes",
    "exeunt.actors.prices",
    "exeunt.actors.state",
    "exeunt.actors.text",
)
IMPURE = ("asyncio", "random", "threading", "time", "trio")


@pytest.mark.parametrize("room", ROOMS)
def test_the_package_reaches_each_room_by_a_relative_link(room: str) -> None:
    link = ROOT / "exeunt" / room
    assert link.is_symlink()
    assert link.readlink() == Path("..", room)


@pytest.mark.parametrize("room", ROOMS)
def test_the_links_to_the_rooms_are_committed_as_links(room: str) -> None:
    entry = subprocess.run(
        ["git", "ls-files", "--stage", f"exeunt/{room}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert entry.stdout.split()[:1] == ["120000"], "git holds no link of this name"


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    bare = [
        where(path, line, f"import it as exeunt.{module}")
        for path in python_files(*CODE)
        for module, line in imported_modules(path)
        if any(is_inside(module, room) for room in ROOMS)
    ]
    assert bare == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    against_the_arrows = [
        where(path, line, module)
        for path in python_files(room)
        for module, line in imported_modules(path)
        if is_inside(module, "exeunt") and not any(is_inside(module, package) for package in MAY_IMPORT[room])
    ]
    assert against_the_arrows == []


@pytest.mark.parametrize("room", ["actors", "supervisor"])
def test_the_inner_rooms_know_nothing_of_the_world_outside(room: str) -> None:
    known = [
        where(path, line, module)
        for path in python_files(room)
        for module, line in imported_modules(path)
        if any(is_inside(module, package) for package in OUTSIDE)
    ]
    assert known == []


@pytest.mark.parametrize("module", PURE)
def test_the_pure_core_knows_no_loop_no_clock_and_no_chance(module: str) -> None:
    path = ROOT.joinpath(*module.split(".")[1:])
    paths = python_files(str(path.relative_to(ROOT))) if path.is_dir() else [path.with_suffix(".py")]
    assert paths
    impure = [
        where(path, line, name)
        for path in paths
        for name, line in imported_modules(path)
        if any(is_inside(name, package) for package in IMPURE)
        or (name.startswith("exeunt.actors.") and not any(is_inside(name, pure) for pure in PURE))
    ]
    assert impure == []


def test_importing_exeunt_opens_no_door() -> None:
    """A door's own libraries cost an import time that only its user should pay."""
    program = "import sys, exeunt; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    doors = {"openai", "opentelemetry", "pydantic", "typer", "rich", "xllamacpp"}
    assert doors.isdisjoint(loaded.stdout.split())
