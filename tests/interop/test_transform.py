"""Functions of the official clients rewrite sections of the system message; the model reads what they return."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exeunt.testing.http_double import HttpReply, open_http_double
from tests.interop.running import Script, node, python

CLIENT = Path(__file__).parent / "clients" / "transform"
RUNTIME = str(Path(sys.executable).with_name("exeunt-runtime"))

ANSWER = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]
}


@pytest.mark.timeout(600)  # the clients are installed by the first test that needs them
@pytest.mark.parametrize("client", [node, python], ids=["node", "python"])
async def test_the_model_is_sent_what_a_clients_functions_make_of_the_sections(
    client: Callable[..., Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEUNT_SYSTEM_MESSAGE", "BASE")
    async with open_http_double() as double:
        double.otherwise = HttpReply(body=json.dumps(ANSWER).encode())
        printed = await client(CLIENT, RUNTIME, f"http://127.0.0.1:{double.port}/v1").play()
        requests = [request.json["messages"] for request in double.requests]
    given = [["identity", "BASE"], ["tone", ""]]
    # Each client is asked once for the session that it makes or takes up, not once for each request.
    assert [sorted(one) for one in json.loads(printed.splitlines()[-1])] == [given, given]
    assert [[one["content"] for one in messages if one["role"] == "system"] for messages in requests] == [
        ["*BASE*\n\n*tone*\n\nSAFE\n\nRULES\n\nMORE"],
        ["*BASE*\n\n*tone*\n\nSAFE\n\nRULES\n\nMORE"],
        ["+BASE+\n\n+tone+\n\nSAFE\n\nRULES\n\nMORE"],
    ]
