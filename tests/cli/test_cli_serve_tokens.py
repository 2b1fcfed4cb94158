"""Whose tokens a server knows: from options, a file, or the variables that clients set."""

from pathlib import Path

import pytest

from exeunt import InvalidConfiguration
from exeunt.cli.serve.provider import read_file, tokens

BOTH = {"EXEUNT_CONNECTION_TOKEN": "ours", "COPILOT_CONNECTION_TOKEN": "theirs"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {}),
        ({"COPILOT_CONNECTION_TOKEN": "theirs"}, {"theirs": ""}),
        (BOTH, {"ours": ""}),
        ({"EXEUNT_CONNECTION_TOKEN": "", "COPILOT_CONNECTION_TOKEN": "theirs"}, {"theirs": ""}),
    ],
)
def test_without_a_word_the_token_is_that_of_a_variable(
    environ: dict[str, str], expected: dict[str, str]
) -> None:
    assert tokens(environ, (), {}) == expected


def test_options_and_a_file_give_each_tenant_its_own(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text('[tokens]\nbob = "C"\n')
    environ = {**BOTH, "A": "a's", "B": "b's", "C": "c's"}
    assert tokens(environ, ("ada=A", "B"), read_file(path).tokens) == {"c's": "bob", "a's": "ada", "b's": ""}


def test_a_tenant_may_have_two_tokens_and_two_tenants_not_the_same() -> None:
    environ = {"OLD": "1", "NEW": "2", "AGAIN": "1"}
    assert tokens(environ, ("ada=OLD", "ada=NEW", "ada=AGAIN"), {}) == {"1": "ada", "2": "ada"}
    with pytest.raises(InvalidConfiguration, match="AGAIN holds a token that another tenant has"):
        tokens(environ, ("ada=OLD", "bob=AGAIN"), {})


@pytest.mark.parametrize("named", ["NONE", "ada=NONE", "ada=EMPTY", "ada="])
def test_a_variable_that_holds_no_token_lets_nobody_in_by_mistake(named: str) -> None:
    with pytest.raises(InvalidConfiguration, match="is not set, or empty"):
        tokens({**BOTH, "EMPTY": ""}, (named,), {})
