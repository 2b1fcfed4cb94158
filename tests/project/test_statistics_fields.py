"""Every field of every statistics value says what it counts, and in which unit."""

import ast
from collections.abc import Iterator

from tests.project.source_tree import ROOMS, python_files, where


def test_every_field_of_a_statistics_value_has_a_docstring() -> None:
    silent: list[str] = []
    classes: set[str] = set()
    for path in python_files(*ROOMS, "exeunt"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Statistics"):
                classes.add(node.name)
                silent += [where(path, line, f"{node.name}.{name}") for name, line in fields_without(node)]
    assert silent == []
    assert {"SessionStatistics", "HostStatistics", "JournalStatistics", "SlotStatistics"} <= classes


def fields_without(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """The fields of *node* that no text follows."""
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            told = (
                isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            )
            if not told:
                yield statement.target.id, statement.lineno
