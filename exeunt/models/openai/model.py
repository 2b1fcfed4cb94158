"""The client of one model behind the chat completions API."""

import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MediaSupport, ModelDelta, ModelError, ModelRequest, ModelResponse
from exeunt.models.http import HttpClient, PoolLimits, PoolStatistics, Response, Timeouts
from exeunt.models.http.urls import parse_endpoint, parse_proxy, proxy_from_environment
from exeunt.models.openai.answers import STILL_AT_WORK, AnswerReader
from exeunt.models.openai.failures import MAX_ERROR_BYTES, failure
from exeunt.models.openai.headers import wire_headers, with_headers
from exeunt.models.openai.requests import RequestEncoder

DEFAULT_BASE_URL = "https://api.openai.com/v1"

# An answer of 100,000 tokens, each an event of 300 bytes, has 30 MB.
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024

# Seconds. After the `finish_reason` only usage and the end marker follow, at once if at all.
_TAIL_SECONDS = 5.0

# Seconds for the body of an error: it is small, and its status has told the essence.
_ERROR_BODY_SECONDS = 10.0


@attrs.frozen(kw_only=True)
class ModelStatistics:
    """A model client at one moment. Calls count since it was made."""

    calls: int
    """Calls that were begun."""
    in_flight: int
    """Calls that have not ended."""
    failures: int
    """Calls that ended with a `ModelError`."""
    cancelled: int
    """Calls that were cancelled, or whose stream was closed before its end."""
    pool: PoolStatistics
    """The connections. Clients of `model_from_provider` may share a pool."""


class OpenAIModel:
    """A model behind an OpenAI-compatible chat completions API; a `ModelClient`.

    One object serves any number of sessions of one trio run at once. A call fails with `ModelError` and is not
    tried again here, but for one case: a kept connection that turns out to be dead. A cancelled call closes its
    own connection and disturbs no other. Without `aclose` the connections go with the object.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        ssl_context: ssl.SSLContext | None = None,
        options: Mapping[str, Any] | None = None,
        developer_role: Literal["system", "developer"] = "system",
        stream_usage: bool = True,
        media: MediaSupport | None = None,
        timeouts: Timeouts | None = None,
        limits: PoolLimits | None = None,
        max_response_bytes: int = _MAX_RESPONSE_BYTES,
        http: HttpClient | None = None,
    ) -> None:
        """Describe the model; nothing is connected yet. Raises `InvalidConfiguration`.

        *base_url* is what comes before `/chat/completions`; a query string (`?api-version=...`) is kept.
        *api_key* is sent as `Authorization: Bearer`; without one no such header is sent. *headers* are further
        headers, and win. *proxy* is an `http://` proxy; without one, and with *trust_env*, that of `HTTPS_PROXY`,
        `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. *options* are further fields of each request, such as
        `{"temperature": 0}`. *developer_role* is the role of developer messages on the wire: all servers know
        `system`. *stream_usage* asks for the tokens of streamed answers; some servers refuse the question.
        *media* says what the model takes beside text, by default images and PDF documents; the rest is told as text.
        *max_response_bytes* bounds a decoded answer. *http* is a client of another model to share connections
        with; it brings its own proxy, TLS, time-outs and limits.
        """
        origin, target = parse_endpoint(base_url, "/chat/completions")
        self._headers = wire_headers(api_key, headers or {})
        self._encoder = RequestEncoder(
            model, options or {}, developer_role=developer_role, stream_usage=stream_usage, media=media
        )
        if not isinstance(max_response_bytes, int) or max_response_bytes <= 0:
            raise InvalidConfiguration(f"max_response_bytes must be above zero, not {max_response_bytes!r}")
        if http is None:
            chosen = parse_proxy(proxy) if proxy else None
            if chosen is None and trust_env:
                chosen = proxy_from_environment(origin, os.environ)
            http = HttpClient(origin, proxy=chosen, ssl_context=ssl_context, limits=limits, timeouts=timeouts)
        self.model = model
        """The name of the model."""
        self.http = http
        """The HTTP client; give it to another model of the same *base_url* to share connections."""
        self._target = target.encode("ascii")
        self._secret = api_key
        self._max_bytes = max_response_bytes
        self._calls = 0
        self._in_flight = 0
        self._failures = 0
        self._cancelled = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r}>"

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request* in one piece. Raises `ModelError`. Cancelled, the call's connection is closed."""
        ended = "cancelled"
        self._begin()
        try:
            deadline = trio.current_time() + self.http.timeouts.total
            with await self._post(request, stream=False, deadline=deadline) as response:
                reader = self._reader(request)
                while data := await response.receive(deadline=deadline):
                    for _ in reader.feed(data):
                        pass
                    if reader.is_done:
                        response.complete()
                        break
            answer = reader.result()
            ended = "done"
            return answer
        except ModelError as error:
            ended = "failed"
            self._censor(error)
            raise
        finally:
            self._end(ended)

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces: any number of `ModelDelta`, then one `ModelResponse`.

        Raises `ModelError`, also in the middle. Closed before its end, or cancelled, its connection is closed.
        """
        ended = "cancelled"
        self._begin()
        try:
            limits = self.http.timeouts
            start = trio.current_time()
            end = start + limits.stream_total
            first = min(start + limits.first_byte, end)
            response = await self._post(request, stream=True, deadline=first)
            try:
                reader = self._reader(request)
                data = await response.receive(deadline=first)
                while data:
                    silent = True
                    for delta in reader.feed(data):
                        yield delta
                        silent = False
                    if reader.is_done:
                        response.complete()
                        break
                    if silent:
                        yield STILL_AT_WORK
                    data = await self._next(response, reader, end)
            finally:
                response.close()
            answer = reader.result()
            ended = "done"
        except ModelError as error:
            ended = "failed"
            self._censor(error)
            raise
        finally:
            self._end(ended)
        yield answer

    async def aclose(self) -> None:
        """Close the idle connections. Calls under way end normally; new ones fail with `ModelError`.

        Closes them for every client that shares the connections. May be called twice; does not wait.
        """
        self.http.close()
        await trio.lowlevel.checkpoint()

    def statistics(self) -> ModelStatistics:
        """Return the client's numbers."""
        return ModelStatistics(
            calls=self._calls,
            in_flight=self._in_flight,
            failures=self._failures,
            cancelled=self._cancelled,
            pool=self.http.statistics(),
        )

    # --- Parts of a call ---

    async def _post(self, request: ModelRequest, *, stream: bool, deadline: float) -> Response:
        body = self._encoder.encode(request, stream=stream)
        headers = self._headers[stream]
        if request.headers:
            headers = with_headers(headers, request.headers)
        response = await self.http.post(
            self._target, headers, body, deadline=deadline, max_bytes=self._max_bytes
        )
        if 200 <= response.status < 300:
            return response
        with response:
            raise failure(response.status, response.headers, await _error_body(response))

    async def _next(self, response: Response, reader: AnswerReader, end: float) -> bytes:
        gap = self.http.timeouts.gap
        if not reader.is_finished:
            return await response.receive(deadline=min(trio.current_time() + gap, end))
        try:
            return await response.receive(deadline=trio.current_time() + min(gap, _TAIL_SECONDS))
        except ModelError:
            # The answer is complete. A server that never ends its stream, or breaks it off here, changes nothing.
            return b""

    @staticmethod
    def _reader(request: ModelRequest) -> AnswerReader:
        return AnswerReader({tool.name for tool in request.tools})

    def _censor(self, error: ModelError) -> None:
        # Some servers quote the key that they refuse.
        if self._secret and error.args and self._secret in str(error.args[0]):
            error.args = (str(error.args[0]).replace(self._secret, "***"), *error.args[1:])

    def _begin(self) -> None:
        self._calls += 1
        self._in_flight += 1

    def _end(self, how: str) -> None:
        self._in_flight -= 1
        if how == "failed":
            self._failures += 1
        elif how == "cancelled":
            self._cancelled += 1


async def _error_body(response: Response) -> bytes:
    deadline = trio.current_time() + _ERROR_BODY_SECONDS
    body = b""
    # The status counts for more than what may be wrong with its explanation.
    with contextlib.suppress(ModelError):
        while len(body) < MAX_ERROR_BYTES and (data := await response.receive(deadline=deadline)):
            body += data
    return body
