"""What a server's models are, and what they cost: an option before the file, the file before the environment."""

import re
from pathlib import Path
from typing import Any

import pytest

from exeunt import InvalidConfiguration, Price
from exeunt.cli.serve.provider import ProviderTable, attachments_root, default_provider, read_file

FILE = """
[provider]
type = "openai"
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"wire_api": "foo"},
            "wire API 'foo' of the provider is not known: use one of completions, responses",
        ),
        ({"wire_api": "foo", "model": "m"}, "wire API 'foo'"),
        ({"base_url": "127.0.0.1:8080/v1"}, "base_url must begin with http:// or https://"),
        ({"base_url": "ftp://example.org"}, "base_url must begin with http:// or https://"),
        ({"kind": "anthropic", "wire_api": "responses"}, "wire_api, which type 'anthropic' does not know"),
        (
            {"table": ProviderTable(type="openai", options={"messages": []})},
            "options must not hold 'messages'",
        ),
        ({"table": ProviderTable(type="openai", media={"imges": True})}, "imges"),
        ({"table": ProviderTable(type="openai", headers={"a b": "c"})}, "no header name"),
        (
            {"auto_model": "m"},
            "--auto-model is for the server's own provider, and there is none: name it by --provi",
        ),
        ({"wire_api": "responses", "model": "m"}, "--wire-api is for the server's own provider"),
        ({"table": ProviderTable(auto_model="m")}, "provider.auto_model of the file is for the server's own"),
        (
            {"table": ProviderTable(headers={"a": "b"})},
            "provider.headers of the file is for the server's own",
        ),
    ],
)
def test_a_provider_that_no_request_could_go_to_is_refused_at_once(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(said)):
        default_provider({}, **options)


def test_a_folder_for_attachments_may_be_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    monkeypatch.chdir(tmp_path)
    assert attachments_root({}, Path("shared")) == tmp_path / "shared"
    assert attachments_root({"EXEUNT_ATTACHMENTS_ROOT": "shared"}) == tmp_path / "shared"
    assert attachments_root({"EXEUNT_ATTACHMENTS_ROOT": "none"}, Path("shared")) == tmp_path / "shared"
    assert attachments_root({"EXEUNT_ATTACHMENTS_ROOT": ""}) is None
    with pytest.raises(InvalidConfiguration, match="'none' is no folder"):
        attachments_root({}, Path("none"))
