"""The tables of the documentation name tests; they name all that there is to say, and nothing that is not there."""

import pathlib
import re

from exeunt import Outcome, TurnEndReason

HERE = pathlib.Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "terminal-tools.md").read_text(encoding="utf-8")


def test_every_row_of_the_tables_names_a_test_that_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    exist = set(re.findall(r"^(?:async )?def (test_\w+)", sources, re.MULTILINE))
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    heads = [line for line in rows if line.endswith("| test |")]
    cases = [line for line in rows if line not in heads]

    assert len(heads) == 6
    assert [line for line in cases if not re.search(r"`test_\w+`", line)] == []
    assert sorted(set(re.findall(r"`(test_\w+)`", PAGE)) - exist) == []


def test_the_page_speaks_of_every_outcome_and_of_every_end_of_a_turn() -> None:
    # `interrupted` calls are a matter of crashes, not of terminal tools; the end of such a turn is named.
    words = {*Outcome, *TurnEndReason}

    assert [word for word in words if f"`{word}`" not in PAGE] == []
