"""What the options and variables of the servers come to."""

import logging
import os
from pathlib import Path

import pytest

from exeunt import InvalidConfiguration
from exeunt.cli.serve import serving
from exeunt.cli.serve.switches import ROOTS, instruction_roots, switched_on


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


@pytest.mark.parametrize(
    ("value", "on"), [("1", True), (" Yes ", True), ("on", True), ("", False), ("0", False), ("FALSE", False)]
)
def test_a_variable_turns_something_on_or_off(value: str, on: bool) -> None:
    assert switched_on({"NAME": value}, "NAME") is on
    assert switched_on({}, "NAME") is False


def test_a_variable_that_says_neither_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="it is 'perhaps'"):
        switched_on({"NAME": "perhaps"}, "NAME")


def test_the_folders_of_instructions_come_from_options_or_from_a_variable(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.symlink_to(one)
    named = {ROOTS: f"{one}{os.pathsep}{two}"}
    for anywhere in (True, False):
        assert instruction_roots(named, anywhere=anywhere) == (one, one)
        assert instruction_roots(named, [tmp_path], anywhere=anywhere) == (tmp_path,)
        assert instruction_roots({ROOTS: ""}, anywhere=anywhere) == ()
    assert instruction_roots({}) == ()
    assert instruction_roots({}, anywhere=True) == (Path("/"),)
    with pytest.raises(InvalidConfiguration, match="three' is no folder"):
        instruction_roots({}, [tmp_path / "three"])
