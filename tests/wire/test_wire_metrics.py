"""What Prometheus reads of a server for clients."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import InvalidConfiguration
from exeunt.testing import ScriptedModel, after, checked_host
from exeunt.wire import DefaultProvider, WireOptions, open_wire_server
from exeunt.wire.server import WireServer
from exeunt.wire.statistics import CLOSED_BECAUSE
from tests.wire.wire_client import Wire, WireFailure, open_wire


def number(wire: Wire, name: str, **labels: str) -> float | None:
    """The value of a sample, if it is there."""
    return wire.host.metrics.registry.get_sample_value(name, labels)


async def test_clients_and_their_sessions_are_counted_as_they_come_and_go(autojump_clock: MockClock) -> None:
    async with open_wire() as wire:
        with wire.server.scraped():
            ada, bert = await wire.connect(), await wire.connect()
            await ada.create("one")
            assert number(wire, "exeunt_wire_connections") == 2
            assert number(wire, "exeunt_wire_sessions") == 1
            await bert.leave()
            assert number(wire, "exeunt_wire_connections") == 1
            assert number(wire, "exeunt_wire_connection_attempts_total", decision="accepted") == 2


async def test_requests_count_by_method_and_by_what_became_of_them(autojump_clock: MockClock) -> None:
    async with open_wire() as wire:
        with wire.server.scraped():
            client = await wire.connect()
            await client.create("s")
            await client.call("ping")
            for method in ("session.getMessages", "no.such.method", "no.other.either"):
                with pytest.raises(WireFailure):
                    await client.call(method, sessionId="missing")

            def requests(method: str, outcome: str) -> float | None:
                return number(wire, "exeunt_wire_requests_total", method=method, outcome=outcome)

            assert requests("connect", "answered") == 1
            assert requests("session.create", "answered") == 1
            assert requests("ping", "answered") == 1
            assert requests("session.getMessages", "refused") == 1
            assert requests("other", "refused") == 2
            assert requests("no.such.method", "refused") is None
            assert requests("session.create", "refused") is None


async def test_a_request_that_its_client_gave_up_counts_as_cancelled(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([after(60, "never heard")]), settled=False) as wire:
        with wire.server.scraped():
            client = await wire.connect()
            await client.create("s")
            key = await client.start("session.sendAndWait", sessionId="s", prompt="go")
            await wait_all_tasks_blocked()
            await client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": key}})
            await client.answer(key)
            asked = {"method": "session.sendAndWait", "outcome": "cancelled"}
            assert number(wire, "exeunt_wire_requests_total", **asked) == 1


async def test_whom_the_server_cuts_off_counts_by_the_reason(autojump_clock: MockClock) -> None:
    async with open_wire() as wire:
        with wire.server.scraped():
            client = await wire.connect()
            await client.send_bytes(b"Content-Length: nonsense\r\n\r\n")
            await client.closed.wait()
            closed = {
                reason: number(wire, "exeunt_wire_connections_closed_total", reason=reason)
                for reason in CLOSED_BECAUSE
            }
            assert closed == dict.fromkeys(CLOSED_BECAUSE, 0) | {"bad_frame": 1}


async def test_a_connection_too_many_counts_as_refused() -> None:
    options = WireOptions(most_connections=1)
    default = DefaultProvider(client=ScriptedModel([]), model="scripted")
    async with (
        checked_host() as host,
        open_wire_server(host, port=0, options=options, default=default) as listening,
    ):
        assert listening.port
        async with await trio.open_tcp_stream("127.0.0.1", listening.port):
            async with await trio.open_tcp_stream("127.0.0.1", listening.port) as second:
                assert await second.receive_some() == b""
            attempts = {
                decision: host.metrics.registry.get_sample_value(
                    "exeunt_wire_connection_attempts_total", {"decision": decision}
                )
                for decision in ("accepted", "refused")
            }
        assert attempts == {"accepted": 1, "refused": 1}


async def test_the_numbers_are_there_as_long_as_the_server_is() -> None:
    async with checked_host() as host:
        for _ in range(2):
            async with open_wire_server(host, port=0):
                assert host.metrics.registry.get_sample_value("exeunt_wire_connections") == 0
                with pytest.raises(InvalidConfiguration, match="another server"), WireServer(host).scraped():
                    pass
            assert host.metrics.registry.get_sample_value("exeunt_wire_connections") is None


async def test_a_request_that_is_too_long_to_be_read_counts_as_refused(autojump_clock: MockClock) -> None:
    async with open_wire(options=WireOptions(longest_frame=2_000)) as wire:
        with wire.server.scraped():
            client = await wire.connect()
            with pytest.raises(WireFailure, match="longer than 2000"):
                await client.call("session.send", sessionId="s", prompt="x" * 3_000)
            asked = {"method": "session.send", "outcome": "refused"}
            assert number(wire, "exeunt_wire_requests_total", **asked) == 1
