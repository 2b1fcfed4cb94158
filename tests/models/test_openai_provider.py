"""Models from plain configuration: what may stand in it, and what equal ones share."""

import gc
from typing import Any

import pytest
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelClient, ModelError
from exeunt.actors.options import SessionOptions
from exeunt.models import model_from_provider
from exeunt.models.openai import OpenAIModel
from exeunt.testing.http_double import HttpReply, open_http_double
from tests.models.openai_support import HELLO, completion


async def make(model: str, provider: Any) -> OpenAIModel:
    """Make a client inside of a trio run."""
    await trio.lowlevel.checkpoint()
    client = model_from_provider(model, provider)
    assert isinstance(client, ModelClient)
    assert isinstance(client, OpenAIModel)
    return client


@pytest.mark.parametrize(
    "provider",
    [
        {},
        {"type": "oracle"},
        {"type": None},
        {"type": ["openai"]},
        {"type": "openai", "baseUrl": "https://x"},
        {"type": "openai", "base_url": 7},
        {"type": "openai", "base_url": "x"},
        {"type": "openai", "api_key": b"k"},
        {"type": "openai", "headers": [("a", "b")]},
        {"type": "openai", "headers": {"a": 1}},
        {"type": "openai", "options": {"x": {1, 2}}},
        {"type": "openai", "developer_role": "root"},
        {"type": "openai", "trust_env": "no"},
        [("type", "openai")],
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_a_provider_that_cannot_work_is_refused(provider: Any, inside: bool) -> None:
    if inside:
        with pytest.raises(InvalidConfiguration):
            trio.run(make, "m", provider)
    else:
        with pytest.raises(InvalidConfiguration):
            model_from_provider("m", provider)


@pytest.mark.parametrize(
    ("base_url", "said"),
    [
        ("x", "base_url must begin with http:// or https://; it says neither"),
        ("localhost:8080/v1", "base_url must begin with http:// or https://, not with localhost:"),
        ("ftp://user:secret@x/v1", "base_url must begin with http:// or https://, not with ftp:"),
    ],
)
def test_a_base_url_without_its_beginning_is_told_so_without_its_secrets(base_url: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        model_from_provider("m", {"type": "openai", "base_url": base_url})
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ({"type": "openai"}, "openai"),
        ({"type": "openai", "wire_api": "responses"}, "openai"),
        ({"type": "openai", "wire_api": "responses", "transport": "websockets"}, "openai"),
        ({"type": "anthropic"}, "anthropic"),
    ],
)
def test_metrics_and_traces_name_whose_api_it_is(provider: dict[str, str], name: str) -> None:
    assert SessionOptions(model=model_from_provider("m", provider)).provider_name == name


def test_a_model_can_be_made_outside_of_trio() -> None:
    one, two = (
        model_from_provider("m", {"type": "openai", "api_key": "k"}),
        model_from_provider("m", {"type": "openai", "api_key": "k"}),
    )
    assert one is not two


async def test_equal_providers_share_one_client_and_one_pool() -> None:
    provider = {"type": "openai", "api_key": "k", "options": {"temperature": 0}}
    one, same = await make("m", provider), await make("m", dict(provider))
    other_model, other_key = await make("n", provider), await make("m", {**provider, "api_key": "x"})
    other_options = await make("m", {**provider, "options": {"temperature": 1}})
    assert one is same
    assert one is not other_model
    assert one.http is other_model.http is other_options.http
    assert one.http is not other_key.http


async def test_a_missing_value_and_the_default_are_equal() -> None:
    one = await make("m", {"type": "openai", "base_url": None})
    assert one is await make("m", {"type": "openai", "base_url": "https://api.openai.com/v1"})


async def test_sessions_of_equal_providers_use_one_connection() -> None:
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=completion())
        provider = {"type": "openai", "base_url": f"http://127.0.0.1:{double.port}", "trust_env": False}
        for name in ("m", "n", "m"):
            await (await make(name, provider)).complete(HELLO)
        keep = await make("m", provider)
        for name in ("m", "n", "m"):
            await (await make(name, provider)).complete(HELLO)
        assert double.connections == 4
        await keep.aclose()


async def test_a_closed_client_is_not_handed_out_again() -> None:
    provider = {"type": "openai"}
    one = await make("m", provider)
    await one.aclose()
    two = await make("m", provider)
    assert one is not two
    with pytest.raises(ModelError):
        await one.complete(HELLO)
    assert not two.http.is_closed


async def test_what_no_session_holds_is_forgotten() -> None:
    from exeunt.models.door.sharing import shared_by_run

    client = await make("m", {"type": "openai"})
    assert len(shared_by_run.get().models) == 1
    del client
    gc.collect()
    assert len(shared_by_run.get().models) == len(shared_by_run.get().clients) == 0
