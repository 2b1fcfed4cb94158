"""Where a server listens: ports, Unix sockets, and those that others have."""

import errno
import logging
import re
import socket
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from exeunt import EndpointUnavailable, InvalidConfiguration
from exeunt.host import open_host
from exeunt.testing import ScriptedModel, hang
from exeunt.wire import server
from exeunt.wire.server import open_wire_server
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.wire_client import WireClient


async def test_a_port_that_another_program_has_is_named_and_nothing_has_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with open_host() as host:
            with pytest.raises(EndpointUnavailable, match=f"cannot listen at 127.0.0.1, port {port}: "):
                async with open_wire_server(host, port=port):
                    raise AssertionError
            # It can be tried again.
            async with open_wire_server(host, port=0) as listening:
                assert listening.port not in (None, 0, port)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("port", [-1, 65_536, 99_999, "7890", True, 1.0])
async def test_a_port_that_cannot_exist_is_refused(port: object) -> None:
    """A system may take such a number for another one, and listen where nobody looks for it."""
    async with open_host() as host:
        with pytest.raises(InvalidConfiguration, match=r"give a number from 0 \(any free one\) to 65535"):
            async with open_wire_server(host, port=port):  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
                raise AssertionError


async def connected(path: Path) -> None:
    await (await trio.open_unix_socket(str(path))).aclose()


async def test_a_unix_socket_is_there_for_its_owner_only_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with open_host() as host:
        async with open_wire_server(host, port=None, unix=path) as listening:
            assert listening.port is None
            assert path.stat().st_mode & 0o777 == 0o600
            await connected(path)
        assert not path.exists()


async def test_the_unix_socket_of_a_server_that_lives_is_not_taken_from_it(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with open_host() as host, open_host() as other, open_wire_server(host, port=None, unix=path):
        with pytest.raises(EndpointUnavailable, match="in use"):
            async with open_wire_server(other, port=None, unix=path):
                raise AssertionError
        await connected(path)


async def test_the_unix_socket_of_a_server_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
        killed.listen()
    assert path.is_socket()
    async with open_host() as host, open_wire_server(host, port=None, unix=path):
        await connected(path)


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    async with open_host() as host:
        with pytest.raises(EndpointUnavailable, match="notes"):
            async with open_wire_server(host, port=None, unix=path):
                raise AssertionError
    assert path.read_text() == "mine"


async def test_a_server_that_fails_listens_again_at_the_same_port(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = trio.SocketListener.accept
    broken = [OSError(71, "Protocol error")]

    async def accept(listener: trio.SocketListener) -> trio.SocketStream:
        if broken:
            await trio.lowlevel.checkpoint()
            raise broken.pop()
        return await accepted(listener)

    monkeypatch.setattr(trio.SocketListener, "accept", accept)
    async with open_host() as host, open_wire_server(host, port=0) as listening:
        assert listening.port is not None
        with trio.fail_after(20):
            await trio.lowlevel.checkpoint()
            while host.services.statistics().restarts < 1:  # noqa: ASYNC110
                await trio.sleep(0.001)
        stream = await trio.open_tcp_stream("127.0.0.1", listening.port)
        await stream.aclose()
    assert "Protocol error" in caplog.text


async def test_without_a_file_left_the_log_names_the_limit_once_and_those_who_connect_wait(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.01
    accepted = trio.SocketListener.accept
    left = 650  # a minute and a bit, in tenths of seconds

    async def accept(listener: trio.SocketListener) -> trio.SocketStream:
        nonlocal left
        if left:
            left -= 1
            await trio.lowlevel.checkpoint()
            raise OSError(errno.EMFILE, "Too many open files")
        return await accepted(listener)

    monkeypatch.setattr(trio.SocketListener, "accept", accept)
    async with open_host() as host, open_wire_server(host, port=0) as listening:
        assert listening.port is not None
        stream = await trio.open_tcp_stream("127.0.0.1", listening.port)
        client = WireClient(stream)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            await client.call("connect")
            nursery.cancel_scope.cancel()
        await stream.aclose()
        assert host.services.statistics().restarts == 0
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert re.fullmatch(
        "no connection can be accepted, those who connect wait: this process has as many files open as it may"
        r" \([0-9,]+\): raise the limit \(ulimit -n\)",
        said[0],
    )


async def test_who_waits_for_a_turn_is_told_that_the_server_ends() -> None:
    model = ScriptedModel([hang(), "quick"])
    default = DefaultProvider(client=model, model="scripted")
    async with open_host() as host, trio.open_nursery() as nursery:
        async with open_wire_server(host, port=0, default=default) as listening:
            assert listening.port is not None
            client = WireClient(await trio.open_tcp_stream("127.0.0.1", listening.port))
            nursery.start_soon(client.run)
            await client.call("connect")
            await client.create("busy")
            await client.say(session="busy")
            await client.event("assistant.turn_start")
            await client.create("idle")
            await client.say(session="idle")
            await client.event("session.idle")
        with trio.fail_after(20):
            await client.closed.wait()
        await client.stream.aclose()
        (told,) = client.events("session.error", session="busy")
        assert told["data"]["errorType"] == "server_ended"
        assert "session.resume" in told["data"]["message"]
        assert client.events("session.error", session="idle") == []


async def test_a_client_that_never_reads_does_not_keep_a_server_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "FAREWELL", 0.01)
    default = DefaultProvider(client=ScriptedModel([hang()]), model="scripted")
    async with open_host() as host:
        with trio.fail_after(20):
            async with open_wire_server(host, port=0, default=default) as listening:
                assert listening.port is not None
                client = WireClient(await trio.open_tcp_stream("127.0.0.1", listening.port))
                async with trio.open_nursery() as reading:
                    reading.start_soon(client.run)
                    await client.call("connect")
                    await client.create()
                    await client.say()
                    await client.event("assistant.turn_start")
                    reading.cancel_scope.cancel()
                (connection,) = listening.server.connections
                # More than the buffers of the system take.
                connection.post(b"x" * 30_000_000)
        await client.stream.aclose()
