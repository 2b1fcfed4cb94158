"""Opening a connection: TCP, the proxy's CONNECT, TLS."""

import functools
import importlib
import os
import ssl
from importlib.util import find_spec
from typing import Any

import h11
import trio

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.urls import Origin, Proxy
from exeunt.tuning import why_no_file


@functools.cache
def default_ssl_context() -> ssl.SSLContext:
    """The system's certificate authorities; those of `certifi` where the system has none.

    Made once: loading a store takes tens of milliseconds, in which nothing else runs. Raises `OSError` where no file
    can be opened: the store would be empty then, and stay so.
    """
    os.close(os.open(os.devnull, os.O_RDONLY))
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and paths.capath is None and find_spec("certifi") is not None:
        certifi: Any = importlib.import_module("certifi")  # not ours to require, and often there
        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(
    origin: Origin, proxy: Proxy | None, ssl_context: ssl.SSLContext | None, *, tunnel: bool = False
) -> tuple[trio.abc.Stream, trio.SocketStream]:
    """Connect to *origin*; return the stream to talk on and the socket below it.

    Raises `ModelError`, `NoFileLeft` where that is why. When it raises, or is cancelled, nothing stays open. Bounded
    by the caller.
    """
    target = origin if proxy is None else proxy.origin
    try:
        tcp = await trio.open_tcp_stream(target.host, target.port)
    except OSError as error:
        raise _unreachable(target, error) from error
    stream: trio.abc.Stream = tcp
    try:
        if proxy is not None and (tunnel or origin.scheme == "https"):
            await _tunnel(tcp, origin, proxy)
        if origin.scheme == "https":
            stream = await _encrypt(tcp, origin, ssl_context or default_ssl_context())
    except OSError as error:
        tcp.socket.close()
        raise _unreachable(origin, error) from error
    except BaseException:
        tcp.socket.close()
        raise
    return stream, tcp


class NoFileLeft(ModelError):
    """This process, or this machine, may open no more files: no fault of the server's, and it passes."""

    def __init__(self, target: Origin, why: str) -> None:
        super().__init__(ModelErrorKind.OVERLOADED, f"cannot connect to {target.address}: {why}", retry=True)


def _unreachable(target: Origin, error: OSError) -> ModelError:
    why = why_no_file(error)
    if why is not None:
        return NoFileLeft(target, why)
    return ModelError(
        ModelErrorKind.CONNECTION_LOST, f"cannot connect to {target.address}: {error}", retry=True
    )


async def _tunnel(tcp: trio.SocketStream, origin: Origin, proxy: Proxy) -> None:
    http = h11.Connection(h11.CLIENT)
    headers = [("Host", origin.address)]
    if proxy.authorization is not None:
        headers.append(("Proxy-Authorization", proxy.authorization.decode("ascii")))
    where = f"the proxy {proxy.origin.address}"
    try:
        await tcp.send_all(
            http.send(h11.Request(method="CONNECT", target=origin.address, headers=headers)) or b""
        )
        event = http.next_event()
        while event is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
            if event is h11.NEED_DATA:
                http.receive_data(await tcp.receive_some())
            event = http.next_event()
    except (trio.BrokenResourceError, h11.RemoteProtocolError) as error:
        raise ModelError(
            ModelErrorKind.CONNECTION_LOST, f"{where} broke the connection: {error}", retry=True
        ) from error
    status = event.status_code if isinstance(event, h11.Response) else 0
    if 200 <= status < 300:
        return
    if status == 407:
        raise ModelError(ModelErrorKind.AUTHENTICATION, f"{where} refuses the credentials", status=status)
    raise ModelError(
        ModelErrorKind.CONNECTION_LOST,
        f"{where} does not connect to {origin.address}: status {status}",
        # 5xx says that the target could not be reached, anything else that the proxy does not want to.
        retry=status >= 500,
        status=status,
    )


async def _encrypt(tcp: trio.SocketStream, origin: Origin, context: ssl.SSLContext) -> trio.abc.Stream:
    stream = trio.SSLStream(tcp, context, server_hostname=origin.host, https_compatible=True)
    try:
        await stream.do_handshake()
    except trio.BrokenResourceError as error:
        why = why_no_file(error)
        if why is not None:
            raise NoFileLeft(origin, why) from error
        cause = error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise ModelError(
                ModelErrorKind.MISCONFIGURED_ENDPOINT,
                f"the certificate of {origin.address} is not trusted: {cause.verify_message}",
            ) from error
        raise ModelError(
            ModelErrorKind.CONNECTION_LOST, f"no TLS with {origin.address}: {cause or error}", retry=True
        ) from error
    return stream
