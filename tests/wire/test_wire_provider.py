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
