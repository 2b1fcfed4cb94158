"""What a server's models are, and what they cost: an option before the file, the file before the environment."""

from pathlib import Path

import pytest

from exeunt import InvalidConfiguration, Price
from exeunt.cli.serve.provider import default_provider, read_file

FILE = """
[provider]
model = "gpt-5"
auto_model = "gpt-5-mini"

[prices."gpt-5"]
input = 125
cached_input = 12.5
output = 1000

[prices."*"]
request = 1
"""


def test_a_file_tells_the_automatic_model_and_the_prices(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(FILE)
    file = read_file(path)
    made = default_provider({}, file.provider, prices=file.prices)
    assert (made.model, made.auto_model) == ("gpt-5", "gpt-5-mini")
    gpt = Price(input=125.0, cached_input=12.5, output=1000.0)
    assert made.prices == {"gpt-5": gpt, "*": Price(request=1.0)}


def test_the_environment_tells_both_where_nothing_else_does(tmp_path: Path) -> None:
    environ = {"EXEUNT_AUTO_MODEL": "auto", "EXEUNT_PRICES": '{"m": {"input": 2, "output": 3}}'}
    made = default_provider(environ)
    assert (made.auto_model, made.prices) == ("auto", {"m": Price(input=2.0, output=3.0)})
    path = tmp_path / "serve.toml"
    path.write_text(FILE)
    file = read_file(path)
    made = default_provider(environ, file.provider, prices=file.prices, auto_model="option")
    assert made.auto_model == "option"
    assert set(made.prices) == {"gpt-5", "*"}


def test_without_prices_there_are_none() -> None:
    assert dict(default_provider({"EXEUNT_PRICES": ""}).prices) == {}


@pytest.mark.parametrize("text", ["3", "[", '{"m": 3}', '{"m": {"inputs": 3}}', '{"m": {"input": -3}}'])
def test_prices_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"price|PRICES"):
        default_provider({"EXEUNT_PRICES": text})


@pytest.mark.parametrize("table", ["[prices]\nm = 3", '[prices.m]\ninput = "3"', "[prices.m]\ncost = 3"])
def test_a_file_with_prices_that_are_none_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(table)
    with pytest.raises(InvalidConfiguration, match="prices"):
        read_file(path)
