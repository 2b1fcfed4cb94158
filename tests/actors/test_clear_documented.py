"""The tables of docs/clearing.md name tests that exist, and nothing that a clear can come to is missing."""

import pathlib
import re

from exeunt import ClearRefused
from exeunt.metrics.labels import CLEAR_OUTCOMES

HERE = pathlib.Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "clearing.md").read_text(encoding="utf-8")


def _tests() -> set[str]:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_clear_*.py"))
    return set(re.findall(r"^(?:async )?def (test_\w+)", sources, re.MULTILINE))


def test_every_row_of_the_tables_of_cases_names_a_test_that_exists() -> None:
    cases = PAGE.split("## Every case", 1)[1]
    rows = [line for line in cases.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    heads = [line for line in rows if line.endswith("| test |")]
    assert len(heads) == 11
    assert [line for line in rows if line not in heads and not re.search(r"`test_\w+`", line)] == []
    assert sorted(set(re.findall(r"`(test_\w+)`", PAGE)) - _tests()) == []


def test_every_way_in_which_a_clear_is_counted_and_every_refusal_stands_in_the_page() -> None:
    errors = [error.__name__ for error in ClearRefused.__subclasses__()]
    assert len(errors) == 5
    assert [name for name in [*errors, *CLEAR_OUTCOMES] if f"`{name}`" not in PAGE] == []
