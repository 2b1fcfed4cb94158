"""What becomes of clients when a program that serves them is told to end."""

import os
import signal
import subprocess
import sys

import pytest
import trio

from tests.wire.wire_client import WireClient

RUNTIME = (sys.executable, "-c", "from exeunt.cli.serve.runtime import main; main()", "--stdio")
LONGEST = 30
"""Seconds for a program to start or to end, on a busy machine."""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_runtime_on_its_standard_streams_tells_its_client_that_it_ends(
    number: signal.Signals,
) -> None:
    with trio.socket.socket() as nobody:
        await nobody.bind(("127.0.0.1", 0))
        # Connections are made, and no request is ever answered.
        nobody.listen(5)
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        environment = {**os.environ, "EXEUNT_PROVIDER_BASE_URL": url, "EXEUNT_PROVIDER_MODEL": "m"}
        async with trio.open_nursery() as nursery:
            process = await trio.lowlevel.open_process(
                RUNTIME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            assert process.stdin is not None
            assert process.stdout is not None
            client = WireClient(trio.StapledStream(process.stdin, process.stdout))
            nursery.start_soon(client.run)
            with trio.fail_after(LONGEST):
                await client.call("connect")
                await client.create("busy")
                await client.say(session="busy")
                await client.event("assistant.turn_start")
                process.send_signal(number)
                told = await client.event("session.error")
                assert told["data"]["errorType"] == "server_ended"
                assert await process.wait() == 0
                await client.closed.wait()
            await client.stream.aclose()
