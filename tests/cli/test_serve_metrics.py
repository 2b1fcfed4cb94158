"""Whether and where a server's metrics can be scraped."""

import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from exeunt import InvalidConfiguration
from exeunt.cli.serve.scraping import ADDRESS, PORT, ScrapeOptions, scrape_options
from tests.cli.programs import EXEUNT, LONGEST, environment, run


@pytest.mark.parametrize(
    ("environ", "port", "address", "expected"),
    [
        ({}, None, None, None),
        ({PORT: ""}, None, None, None),
        ({PORT: "9464"}, None, None, ScrapeOptions(port=9464)),
        ({PORT: "9464"}, 0, None, ScrapeOptions(port=0)),
        ({PORT: "0", ADDRESS: "0.0.0.0"}, None, None, ScrapeOptions(port=0, address="0.0.0.0")),
        ({ADDRESS: "0.0.0.0"}, 9464, "::1", ScrapeOptions(port=9464, address="::1")),
    ],
)
def test_options_win_over_variables(
    environ: dict[str, str], port: int | None, address: str | None, expected: ScrapeOptions | None
) -> None:
    assert scrape_options(environ, port=port, address=address) == expected


@pytest.mark.parametrize("value", ["nine", "-1", "65536", "1_000", "\uff19", "9464.0"])
def test_a_port_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InvalidConfiguration, match=PORT):
        scrape_options({PORT: value})


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="no port"):
        scrape_options({}, address="0.0.0.0")


def test_a_server_tells_where_its_metrics_are_and_serves_its_own_among_them() -> None:
    command = [*EXEUNT, "serve", "--port", "0", "--metrics-port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as server:
        try:
            assert server.stderr
            assert server.stdout
            told = re.search(r"metrics are at (\S+)$", server.stderr.readline())
            listening = re.search(r"listening on 127\.0\.0\.1, port (\d+)$", server.stdout.readline())
            assert told
            assert listening
            with socket.create_connection(("127.0.0.1", int(listening[1])), timeout=LONGEST) as client:
                # Whoever has an answer has been counted.
                body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'
                client.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                assert client.recv(4096)
                with urllib.request.urlopen(told[1], timeout=LONGEST) as answer:
                    text = answer.read().decode()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(LONGEST)
    assert "\nexeunt_wire_connections 1.0\n" in text
    assert '\nexeunt_wire_requests_total{method="ping",outcome="answered"} 1.0\n' in text
    assert '\nexeunt_sessions{state="live"} 0.0\n' in text
    assert server.returncode == 0


async def test_a_port_for_metrics_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = await run("serve", "--port", "0", "--metrics-port", str(port))
    assert (served.returncode, served.stdout) == (1, "")
    assert re.fullmatch(rf"exeunt: cannot .*{port}.*\n", served.stderr)
