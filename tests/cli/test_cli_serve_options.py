"""What the options and variables of the servers come to."""

import logging

import pytest

from exeunt.cli.serve import serving


@pytest.mark.parametrize(
    ("level", "lowest"),
    [("none", None), ("error", logging.ERROR), ("warn", logging.WARNING), ("all", logging.INFO)],
)
def test_a_log_level_lets_through_what_it_says(
    level: str, lowest: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(logging, "root", root)
    serving.log_to_stderr(level)
    named = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    assert [each for each in named if root.isEnabledFor(each)] == [
        each for each in named if lowest is not None and each >= lowest
    ]
