"""The server's own model: what options, file and environment make of it."""

import pytest

from exeunt.actors.errors import InvalidConfiguration
from exeunt.cli.serve.provider import ProviderTable, default_provider


def test_an_option_wins_over_the_file_and_the_file_over_the_environment() -> None:
    environ = {
        "EXEUNT_PROVIDER_TYPE": "openai",
        "EXEUNT_PROVIDER_BASE_URL": "http://env",
        "EXEUNT_PROVIDER_API_KEY": "k",
    }
    table = ProviderTable(type="anthropic", base_url="http://file", options={"max_tokens": 9})
    made = default_provider(environ, table, base_url="http://option", model="m")
    assert made.model == "m"
    assert made.provider == {
        "type": "anthropic",
        "base_url": "http://option",
        "api_key": "k",
        "options": {"max_tokens": 9},
    }


@pytest.mark.parametrize("environ", [{"EXEUNT_PROVIDER_TYPE": "oracle"}, {}])
def test_a_type_that_is_not_known_is_refused_before_anybody_connects(environ: dict[str, str]) -> None:
    table = ProviderTable(type=None if environ else "oracle")
    with pytest.raises(InvalidConfiguration, match="use one of openai, anthropic"):
        default_provider(environ, table)


@pytest.mark.parametrize(
    ("option", "table", "environ", "wanted"),
    [
        (None, ProviderTable(), {}, {}),
        ("responses", ProviderTable(wire_api="completions"), {}, {"wire_api": "responses"}),
        (
            None,
            ProviderTable(wire_api="responses"),
            {"EXEUNT_PROVIDER_WIRE_API": "completions"},
            {"wire_api": "responses"},
        ),
        (
            None,
            ProviderTable(transport="websockets"),
            {"EXEUNT_PROVIDER_WIRE_API": "responses"},
            {"wire_api": "responses", "transport": "websockets"},
        ),
        (
            "responses",
            ProviderTable(),
            {"EXEUNT_PROVIDER_TRANSPORT": "websockets"},
            {"wire_api": "responses", "transport": "websockets"},
        ),
    ],
)
def test_the_api_is_that_of_the_option_the_file_or_the_environment(
    option: str | None, table: ProviderTable, environ: dict[str, str], wanted: dict[str, str]
) -> None:
    made = default_provider(environ, table, wire_api=option, base_url="http://x")
    assert made.provider == {"type": "openai", "base_url": "http://x", **wanted}


@pytest.mark.parametrize(
    "table",
    [
        ProviderTable(wire_api="messages"),
        ProviderTable(wire_api="responses", transport="carrier pigeon"),
        ProviderTable(transport="websockets"),
    ],
)
def test_an_api_or_a_transport_that_there_is_not_is_refused(table: ProviderTable) -> None:
    with pytest.raises(InvalidConfiguration):
        default_provider({}, table, base_url="http://x")
