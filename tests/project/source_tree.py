"""The project's own files, as the tests in this folder read them."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("actors", "supervisor", "metrics")
CODE = (*ROOMS, "exeunt", "tests", "loadtests", "examples")
_MADE_BY_TOOLS = {"__pycache__", "node_modules", "build", "dist"}


def files(*folders: str) -> Iterator[Path]:
    """Each regular file below *folders* (of the project's root), once: links to folders are not followed."""
    for folder in folders:
        for directory, children, names in os.walk(ROOT / folder):
            children[:] = sorted(
                child for child in children if child not in _MADE_BY_TOOLS and not child.startswith(".")
            )
            yield from (Path(directory, name) for name in sorted(names))


def python_files(*folders: str) -> list[Path]:
    """The Python files below *folders*."""
    return [path for path in files(*folders) if path.suffix == ".py"]


def imported_modules(path: Path) -> Iterator[tuple[str, int]]:
    """Absolute names that *path* imports, at any depth of its code, with the line.

    `from exeunt.actors import text` gives `exeunt.actors` and `exeunt.actors.text`: which of
    them is the module only the import system knows.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield alias.name, node.lineno
            case ast.ImportFrom():
                package = _absolute(path, node)
                yield package, node.lineno
                for alias in node.names:
                    yield f"{package}.{alias.name}", node.lineno
            case _:
                pass


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.relative_to(ROOT).parent.parts
    if package[0] in ROOMS:
        package = ("exeunt", *package)
    package = package[: len(package) - node.level + 1]
    return ".".join((*package, *([node.module] if node.module else [])))


def is_inside(module: str, package: str) -> bool:
    """Whether *module* is *package* or lies in it."""
    return module == package or module.startswith(package + ".")


def where(path: Path, line: int, what: str) -> str:
    """A line of a failure report that an editor can open."""
    return f"{path.relative_to(ROOT)}:{line}: {what}"
