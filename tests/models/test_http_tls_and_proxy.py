"""TLS with certificates of our own, and proxies: asked by absolute URL, or for a tunnel."""

import ssl

import pytest
import trio
import trustme

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http.urls import Origin, Proxy, parse_endpoint, parse_proxy, proxy_from_environment
from exeunt.models.openai import OpenAIModel
from exeunt.testing.http_double import HttpReply, event_stream, open_http_double
from tests.models.openai_support import HELLO, chunk, completion, streamed

FINE = HttpReply(body=completion())
STREAM = event_stream(chunk({"content": "Hi."}), chunk({}, "stop"))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]
    return context


def model_by_tls(
    port: int, context: ssl.SSLContext | None, host: str = "127.0.0.1", proxy: str | None = None
) -> OpenAIModel:
    return OpenAIModel(
        "m", base_url=f"https://{host}:{port}/v1", ssl_context=context, proxy=proxy, trust_env=False
    )


async def test_calls_share_a_connection_by_tls(server: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    async with open_http_double(FINE, STREAM, FINE, ssl_context=server) as double:
        model = model_by_tls(double.port, trusting)
        for _ in range(2):
            assert (await model.complete(HELLO)).content == "Hi."
            if len(double.requests) < 3:
                assert (await streamed(model))[1].content == "Hi."
        await model.aclose()
    assert double.connections == 1


async def test_a_certificate_that_nobody_vouches_for_is_refused(server: ssl.SSLContext) -> None:
    async with open_http_double(FINE, ssl_context=server) as double:
        model = model_by_tls(double.port, None)
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.MISCONFIGURED_ENDPOINT, False)
    assert double.requests == []


async def test_a_certificate_of_another_host_is_refused(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("example.org").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    async with open_http_double(FINE, ssl_context=context) as double:
        with pytest.raises(ModelError) as caught:
            await model_by_tls(double.port, trusting).complete(HELLO)
    assert caught.value.kind is ModelErrorKind.MISCONFIGURED_ENDPOINT


async def test_a_server_without_tls_is_a_typed_error(trusting: ssl.SSLContext) -> None:
    async with open_http_double(FINE) as double:
        double.otherwise = HttpReply(body=b"HTTP/1.0 400 No\r\n\r\n", framing="raw", end="close")

        async def answer_anything(stream: trio.SocketStream) -> None:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.0 400 No\r\n\r\n")
            await stream.aclose()

        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, answer_anything, listeners)
            with pytest.raises(ModelError) as caught:
                await model_by_tls(listeners[0].socket.getsockname()[1], trusting).complete(HELLO)
            nursery.cancel_scope.cancel()
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.CONNECTION_LOST, True)


async def test_a_request_that_a_dead_tls_connection_took_is_sent_once_more(
    server: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async with open_http_double(
        FINE, HttpReply(framing="raw", end="reset"), FINE, ssl_context=server
    ) as double:
        model = model_by_tls(double.port, trusting)
        await model.complete(HELLO)
        await model.complete(HELLO)
        assert model.statistics().pool.stale == 1
        await model.aclose()


async def test_a_cancelled_call_by_tls_leaves_the_client_usable(
    server: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    hanging = HttpReply(body=[b": x\n\n", 1e6], content_type="text/event-stream", framing="chunked")
    async with open_http_double(hanging, FINE, ssl_context=server) as double:
        model = model_by_tls(double.port, trusting)
        with trio.move_on_after(0.2):
            await streamed(model)
        assert model.statistics().pool.in_use == 0
        await model.complete(HELLO)
        await model.aclose()


async def test_a_proxy_is_asked_by_the_whole_url() -> None:
    async with open_http_double(FINE) as proxy:
        model = OpenAIModel(
            "m",
            base_url="http://model.test/v1?api-version=1",
            proxy=f"http://ann:p%40ss@127.0.0.1:{proxy.port}",
        )
        await model.complete(HELLO)
        await model.aclose()
    (request,) = proxy.requests
    assert request.target == "http://model.test/v1/chat/completions?api-version=1"
    assert request.headers["host"] == "model.test"
    assert request.headers["proxy-authorization"] == "Basic YW5uOnBAc3M="


async def test_a_proxy_gives_a_tunnel_for_tls(server: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    async with (
        open_http_double(FINE, FINE, ssl_context=server) as double,
        open_http_double(tunnels=True) as proxy,
    ):
        model = model_by_tls(double.port, trusting, proxy=f"http://ann:secret@127.0.0.1:{proxy.port}")
        await model.complete(HELLO)
        await model.complete(HELLO)
        await model.aclose()
    (connect,) = proxy.requests
    assert (connect.method, connect.target) == ("CONNECT", f"127.0.0.1:{double.port}")
    assert connect.headers["proxy-authorization"].startswith("Basic ")
    assert [request.target for request in double.requests] == ["/v1/chat/completions"] * 2
    assert "proxy-authorization" not in double.requests[0].headers


@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (407, ModelErrorKind.AUTHENTICATION, False),
        (403, ModelErrorKind.CONNECTION_LOST, False),
        (502, ModelErrorKind.CONNECTION_LOST, True),
    ],
)
async def test_a_proxy_that_gives_no_tunnel_is_a_typed_error(
    status: int, kind: ModelErrorKind, retry: bool, trusting: ssl.SSLContext
) -> None:
    async with open_http_double(HttpReply(status=status)) as proxy:
        model = model_by_tls(1, trusting, proxy=f"127.0.0.1:{proxy.port}")
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
    assert (caught.value.kind, caught.value.retry, caught.value.status) == (kind, retry, status)
    assert model.statistics().pool.in_use == 0


async def test_a_proxy_that_hangs_up_is_a_typed_error(trusting: ssl.SSLContext) -> None:
    async with open_http_double(HttpReply(framing="raw", end="close")) as proxy:
        with pytest.raises(ModelError) as caught:
            await model_by_tls(1, trusting, proxy=f"127.0.0.1:{proxy.port}").complete(HELLO)
    assert caught.value.kind is ModelErrorKind.CONNECTION_LOST


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_http_double(FINE) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        model = OpenAIModel("m", base_url="http://model.test/v1")
        await model.complete(HELLO)
        await model.aclose()
    assert proxy.requests[0].target.startswith("http://model.test/")


HTTP, HTTPS = Origin("http", "api.model.test", 80), Origin("https", "api.model.test", 443)
PROXY = Proxy(Origin("http", "p", 8080))


@pytest.mark.parametrize(
    ("origin", "environ", "proxy"),
    [
        (HTTPS, {}, None),
        (HTTPS, {"HTTPS_PROXY": "http://p:8080"}, PROXY),
        (HTTPS, {"https_proxy": "p:8080", "HTTPS_PROXY": "http://q"}, PROXY),
        (HTTPS, {"HTTP_PROXY": "http://p:8080"}, None),
        (HTTPS, {"ALL_PROXY": "http://p:8080"}, PROXY),
        (HTTP, {"HTTP_PROXY": "http://p:8080"}, PROXY),
        (HTTP, {"HTTP_PROXY": "http://p:8080", "REQUEST_METHOD": "GET"}, None),
    ],
)
def test_the_environment_names_a_proxy_for_each_scheme(
    origin: Origin, environ: dict[str, str], proxy: Proxy | None
) -> None:
    assert proxy_from_environment(origin, environ) == proxy


@pytest.mark.parametrize(
    ("host", "no_proxy", "exempt"),
    [
        ("api.model.test", "*", True),
        ("api.model.test", "model.test", True),
        ("api.model.test", ".model.test, x", True),
        ("api.model.test", "*.model.test", True),
        ("API.Model.Test", "model.test", True),
        ("api.model.test", "odel.test", False),
        ("api.model.test", "api.model.test:443", True),
        ("api.model.test", "api.model.test:80", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("::1", "[::1]", True),
        ("::1", "::1", True),
        ("api.model.test", "10.0.0.0/8,,", False),
    ],
)
def test_no_proxy_exempts_hosts(host: str, no_proxy: str, exempt: bool) -> None:
    environ = {"https_proxy": "http://p:8080", "NO_PROXY": no_proxy}
    assert (proxy_from_environment(Origin("https", host, 443), environ) is None) == exempt


def test_an_endpoint_keeps_its_path_and_its_query() -> None:
    assert parse_endpoint("https://X.test/a/b/?v=1", "/c") == (Origin("https", "x.test", 443), "/a/b/c?v=1")
    assert parse_endpoint("http://[::1]:8080", "/c") == (Origin("http", "::1", 8080), "/c")
    assert Origin("http", "::1", 8080).authority == "[::1]:8080"
    assert parse_endpoint("https://b\u00fccher.test/v1", "/c")[0].host == "xn--bcher-kva.test"


def test_a_proxy_never_shows_its_password() -> None:
    proxy = parse_proxy("http://ann:secret@p:1")
    assert proxy.authorization == b"Basic YW5uOnNlY3JldA=="
    assert "YW5u" not in repr(proxy)


@pytest.mark.parametrize("url", ["", "socks5://x", "https://p", "http://", "p:x"])
def test_what_is_no_proxy_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfiguration):
        parse_proxy(url)
