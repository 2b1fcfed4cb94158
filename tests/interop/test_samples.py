"""The sample of the documentation runs against this host with no change but the line that says where it is."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt.testing.http_double import HttpReply, HttpRequest, open_http_double
from tests.interop.running import EXEUNT, LONGEST, Script, node, python, serving

SAMPLE = Path(__file__).parent / "samples" / "clear_context"
RUNTIME = str(Path(sys.executable).with_name("exeunt-runtime"))


def model(request: HttpRequest) -> HttpReply:
    """Answer like a model that clears its context when it is asked to."""
    last = request.json["messages"][-1]
    message: dict[str, Any] = {"role": "assistant", "content": f"re: {last['content']}"}
    if last["content"] == "please start over":
        arguments = json.dumps({"prompt": "Continue with step 2"})
        function = {"name": "clear_context", "arguments": arguments}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    reason = "tool_calls" if "tool_calls" in message else "stop"
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    return HttpReply(body=json.dumps(answer).encode())


@pytest.mark.timeout(600)  # the clients are installed by the first test that needs them
@pytest.mark.parametrize("client", [node, python], ids=["node", "python"])
@pytest.mark.parametrize("way", ["uri", "stdio", "tcp"])
async def test_the_sample_of_the_documentation_runs_unchanged(
    way: str, client: Callable[..., Script]
) -> None:
    async with open_http_double() as double:
        double.otherwise = model
        base_url = f"http://127.0.0.1:{double.port}/v1"
        if way == "uri":
            async with serving() as address:
                printed = await client(SAMPLE, way, address, base_url).play()
        else:
            printed = await client(SAMPLE, way, RUNTIME, base_url).play()
        requests = [request.json["messages"] for request in double.requests]
    saw = json.loads(printed.splitlines()[-1])
    assert saw["replies"] == ["re: hello", "re: Continue with step 2"]
    assert saw["kinds"].count("session.context_cleared") == 1
    assert saw["kinds"].count("session.idle") == 2
    assert [[message["role"] for message in messages] for messages in requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user"],
    ]
    assert requests[-1][-1]["content"] == "Continue with step 2"


async def test_an_unknown_flag_ends_the_runtime_with_an_error_that_names_it() -> None:
    done = await trio.run_process(
        [RUNTIME, "--headless", "--no-such-flag"], capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.returncode == 2
    assert b"--no-such-flag" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("mode", ["--headless", "--server"])
async def test_the_flags_with_which_clients_start_a_runtime_are_taken(mode: str) -> None:
    flags = [
        mode,
        "--no-auto-update",
        "--log-level",
        "debug",
        "--auth-token-env",
        "COPILOT_SDK_AUTH_TOKEN",
        "--no-auto-login",
        "--session-idle-timeout",
        "30",
        "--remote",
        "--stdio",
    ]
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    shutdown = b'{"jsonrpc":"2.0","id":2,"method":"runtime.shutdown","params":{}}'
    frames = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(one), one) for one in (body, shutdown))
    async with trio.open_nursery() as nursery:
        start = partial(
            trio.run_process,
            [RUNTIME, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        process = await nursery.start(start)
        await process.stdin.send_all(frames)
        said = b""
        with trio.fail_after(LONGEST):
            while data := await process.stdout.receive_some():
                said += data
            # Its standard input is open still: the shutdown has ended it.
            assert await process.wait() == 0
    assert b'"message":"pong"' in said
    assert b'"id":2,"result":{}' in said


async def test_a_server_that_needs_a_token_ends_with_an_error_without_one() -> None:
    done = await trio.run_process(
        [EXEUNT, "serve", "--host", "0.0.0.0", "--port", "0"],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env={name: value for name, value in os.environ.items() if "CONNECTION_TOKEN" not in name},
    )
    assert done.returncode == 2
    assert b"give the server a token" in done.stderr
    assert b"Traceback" not in done.stderr
