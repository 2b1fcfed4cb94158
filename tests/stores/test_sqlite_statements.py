"""How statements of the SQLite store name their values, on each Python that it runs on."""

import re
from pathlib import Path

import exeunt.stores

NUMBERED = re.compile(r"\?\d")
"""`?1` with a sequence of values: an error from Python 3.14 on, and before 3.12 not even a warning."""


def test_no_statement_numbers_its_placeholders() -> None:
    [folder] = exeunt.stores.__path__
    sources = [path for path in Path(folder).rglob("*") if path.suffix in {".py", ".sql"}]
    assert len(sources) > 5
    found = [path.name for path in sources if NUMBERED.search(path.read_text(encoding="utf-8"))]
    assert found == []
