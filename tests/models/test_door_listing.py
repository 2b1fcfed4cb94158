"""Lists of models, for doors alike."""

import json
from typing import Any

import pytest

from exeunt import ModelError
from exeunt.models import model_names
from exeunt.testing.http_double import HttpReply, open_http_double

KEY = "sk-very-secret"


@pytest.mark.parametrize(
    "keys", [("openai", "api_key"), ("anthropic", "api_key"), ("anthropic", "auth_token")]
)
async def test_a_server_that_quotes_the_key_that_it_refuses_does_not_make_it_known(
    keys: tuple[str, str],
) -> None:
    said: dict[str, Any] = {"error": {"message": f"{KEY} is no key of ours", "type": "authentication_error"}}
    kind, name = keys
    async with open_http_double(HttpReply(status=401, body=json.dumps(said).encode())) as double:
        where = f"http://127.0.0.1:{double.port}"
        with pytest.raises(ModelError, match=r"\*\*\* is no key of ours") as caught:
            await model_names({"type": kind, "base_url": where, name: KEY, "trust_env": False})
    assert KEY not in str(caught.value)
