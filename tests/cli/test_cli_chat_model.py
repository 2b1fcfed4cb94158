"""With which model `exeunt chat` talks: options, keys, other APIs, a file."""

from pathlib import Path
from typing import Any

import pytest

from exeunt.cli.chat.choice import ApiChoice, LocalChoice, WrongChoice, choose_model
from exeunt.testing.http_double import HttpReply, open_http_double
from tests.cli.chats import at
from tests.cli.programs import run
from tests.models.anthropic_support import recovered as messages_recovered
from tests.models.strict_server import RECOVERED


async def test_without_a_model_the_three_ways_are_shown() -> None:
    done = await run("chat")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(way in done.stderr for way in ("--local", "--gguf PATH", "--base-url URL --model NAME"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": "m"}, "--model needs --base-url"),
        ({"base_url": "http://x/v1"}, "--base-url needs --model"),
        ({"local": True, "model": "m"}, "do not go with"),
        ({"local": True, "provider": "anthropic"}, "do not go with"),
        ({"provider": "oracle", "base_url": "http://x", "model": "m"}, "use one of openai, anthropic"),
        ({"provider": "anthropic"}, "needs --model"),
        ({"local": True, "wire_api": "responses"}, "do not go with"),
        ({"wire_api": "soap", "base_url": "http://x", "model": "m"}, "use one of completions, responses"),
        ({"wire_api": "responses", "provider": "anthropic", "model": "m"}, "of type openai"),
        ({"gguf": Path("x.gguf"), "base_url": "http://x/v1"}, "do not go with"),
        ({"local": True, "api_key_env": "K"}, "--api-key-env goes with"),
        ({"base_url": "http://x/v1", "model": "m", "api_key_env": "UNSET"}, "UNSET"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(WrongChoice, match=named):
        choose_model(**options, environment={})


@pytest.mark.parametrize(
    ("environment", "named", "key", "variable"),
    [
        ({}, None, None, None),
        ({"OPENAI_API_KEY": "o"}, None, "o", "OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": "o", "EXEUNT_API_KEY": "e"}, None, "e", "EXEUNT_API_KEY"),
        ({"OPENAI_API_KEY": "o", "EXEUNT_API_KEY": ""}, None, "o", "OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": "o", "MINE": "m"}, "MINE", "m", "MINE"),
    ],
)
def test_the_key_comes_from_the_first_variable_that_is_set(
    environment: dict[str, str], named: str | None, key: str | None, variable: str | None
) -> None:
    chosen = choose_model(base_url="http://x/v1", model="m", api_key_env=named, environment=environment)
    assert isinstance(chosen, ApiChoice)
    assert (chosen.api_key, chosen.key_variable) == (key, variable)


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, "a"),
        ({"ANTHROPIC_API_KEY": "a", "EXEUNT_API_KEY": "e"}, "e"),
        ({"OPENAI_API_KEY": "o"}, None),
    ],
)
def test_the_key_of_another_maker_is_not_sent_to_anthropic(
    environment: dict[str, str], key: str | None
) -> None:
    chosen = choose_model(provider="anthropic", model="m", environment=environment)
    assert isinstance(chosen, ApiChoice)
    assert (chosen.api_key, chosen.base_url) == (key, "https://api.anthropic.com")


async def test_a_chat_with_a_responses_api() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(status=400)
        done = await run(*at(double), "--wire-api", "responses", stdin=b"hello\n")
        assert done.returncode == 1
        assert {request.target for request in double.requests} == {"/v1/responses"}


async def test_a_chat_with_a_messages_api() -> None:
    async with open_http_double() as double:
        double.otherwise = messages_recovered
        url = f"http://127.0.0.1:{double.port}"
        chosen = ("--provider", "anthropic", "--base-url", url, "--model", "claude-m", "--journal", "memory:")
        done = await run("chat", *chosen, stdin=b"hello\n")
        (request,) = double.requests
    assert done.returncode == 0
    assert RECOVERED in done.stdout
    assert (request.target, request.json["model"]) == ("/v1/messages", "claude-m")


def test_a_key_is_not_shown_by_accident() -> None:
    chosen = choose_model(base_url="http://x/v1", model="m", environment={"EXEUNT_API_KEY": "very-secret"})
    assert "very-secret" not in repr(chosen)


def test_a_file_is_a_model_on_this_machine() -> None:
    assert choose_model(gguf=Path("m.gguf")) == LocalChoice(gguf=Path("m.gguf"))
    assert choose_model(local=True) == LocalChoice(gguf=None)


async def test_a_model_file_that_is_none_is_named_in_one_line(tmp_path: Path) -> None:
    done = await run("chat", "--gguf", str(tmp_path / "none.gguf"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("exeunt: ")
    assert len(done.stderr.splitlines()) == 1


async def test_a_base_url_that_is_none_is_named_in_one_line() -> None:
    done = await run("chat", "--base-url", "nonsense", "--model", "m")
    assert done.returncode == 1
    assert done.stderr.startswith("exeunt: ")
    assert "base_url" in done.stderr
    assert "Traceback" not in done.stderr
