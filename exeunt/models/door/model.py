"""One model behind an HTTP API: what a call is, whatever the API."""

import contextlib
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Generator

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelDelta, ModelError, ModelRequest, ModelResponse
from exeunt.models.door.answers import STILL_AT_WORK, AnswerReader
from exeunt.models.door.failures import MAX_ERROR_BYTES, censor, failure
from exeunt.models.door.headers import WireHeaders, with_headers
from exeunt.models.door.reasoning import RefusedReasoning, without_reasoning
from exeunt.models.http import HttpClient, PoolLimits, PoolStatistics, Response, Timeouts
from exeunt.models.http.urls import parse_endpoint, parse_proxy, proxy_from_environment

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""An answer of 100,000 tokens, each an event of 300 bytes, has 30 MB."""

# Seconds. After the end of the answer itself only usage and the end marker follow, at once if at all.
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


@attrs.frozen(kw_only=True)
class Connecting:
    """How a door reaches its server: what the constructors of all doors take alike, under the same names."""

    proxy: str | None = None
    trust_env: bool = True
    ssl_context: ssl.SSLContext | None = None
    timeouts: Timeouts | None = None
    limits: PoolLimits | None = None
    max_response_bytes: int = MAX_RESPONSE_BYTES
    http: HttpClient | None = None


class HttpModel(ABC):
    """A model behind an HTTP API; a `ModelClient`. A door says what is sent (`_body`) and how it is read (`_reader`).

    One object serves any number of sessions of one trio run at once. A call fails with `ModelError` and is not
    tried again here, but for two cases: a kept connection that turns out to be dead, and reasoning of earlier answers
    that the server does not take back, without which the request is sent once more. A cancelled call closes its
    own connection and disturbs no other. Without `aclose` the connections go with the object.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        path: str,
        headers: tuple[WireHeaders, WireHeaders],
        secrets: Collection[str | None],
        connecting: Connecting,
    ) -> None:
        """Describe the model; nothing is connected yet. Raises `InvalidConfiguration`.

        *path* comes after *base_url*. *headers* are those of a plain and of a streaming request, as
        `wire_headers` makes them. *secrets* are kept out of the messages of errors.
        """
        origin, target = parse_endpoint(base_url, path)
        most = connecting.max_response_bytes
        if not isinstance(most, int) or most <= 0:
            raise InvalidConfiguration(f"max_response_bytes must be above zero, not {most!r}")
        http = connecting.http
        if http is None:
            chosen = parse_proxy(connecting.proxy) if connecting.proxy else None
            if chosen is None and connecting.trust_env:
                chosen = proxy_from_environment(origin, os.environ)
            http = HttpClient(
                origin,
                proxy=chosen,
                ssl_context=connecting.ssl_context,
                limits=connecting.limits,
                timeouts=connecting.timeouts,
            )
        self.model = model
        """The name of the model."""
        self.http = http
        """The HTTP client; give it to another model of the same *base_url* to share connections."""
        self._headers = headers
        self._target = target.encode("ascii")
        self._secrets = [secret for secret in secrets if secret]
        self._max_bytes = most
        self._refused = RefusedReasoning()
        self._calls = 0
        self._in_flight = 0
        self._failures = 0
        self._cancelled = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r}>"

    @abstractmethod
    def _body(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return what is sent for *request*. Never raises for what a model or a user wrote."""

    @abstractmethod
    def _reader(self, request: ModelRequest) -> AnswerReader:
        """Return the reader of the answer to *request*."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request* in one piece. Raises `ModelError`. Cancelled, the call's connection is closed."""
        with self._call():
            deadline = trio.current_time() + self.http.timeouts.total
            with await self._post(request, stream=False, deadline=deadline) as response:
                reader = self._reader(request)
                while data := await response.receive(deadline=deadline):
                    for _ in reader.feed(data):
                        pass
                    if reader.is_done:
                        response.complete()
                        break
            return reader.result()

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces: any number of `ModelDelta`, then one `ModelResponse`.

        Raises `ModelError`, also in the middle. Closed before its end, or cancelled, its connection is closed.
        """
        with self._call():
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
                        yield delta  # noqa: ASYNC119 - its reader closes it: `actors/activities/model_call.py`
                        silent = False
                    if reader.is_done:
                        response.complete()
                        break
                    if silent:
                        yield STILL_AT_WORK  # noqa: ASYNC119 - as above
                    data = await self._next(response, reader, end)
            finally:
                response.close()
            answer = reader.result()
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

    @contextlib.contextmanager
    def _call(self) -> Generator[None]:
        """Count one call, and keep the secrets out of what it raises."""
        self._calls += 1
        self._in_flight += 1
        try:
            yield
        except ModelError as error:
            self._failures += 1
            censor(error, self._secrets)
            raise
        except BaseException:
            self._cancelled += 1
            raise
        finally:
            self._in_flight -= 1

    def _refuses_reasoning(self, error: ModelError) -> bool:
        """Whether a server refuses a request for the reasoning of earlier answers in it; doors that keep any say."""
        return False

    async def _post(self, request: ModelRequest, *, stream: bool, deadline: float) -> Response:
        request = self._refused.left_out(request)
        try:
            return await self._post_once(request, stream=stream, deadline=deadline)
        except ModelError as error:
            if not self._refuses_reasoning(error):
                raise
            bare = without_reasoning(request)
            if bare is None:
                raise
        # A key that was changed, a server that lost its own: the session would never be answered again.
        response = await self._post_once(bare, stream=stream, deadline=deadline)
        self._refused.note(request)
        return response

    async def _post_once(self, request: ModelRequest, *, stream: bool, deadline: float) -> Response:
        body = self._body(request, stream=stream)
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


async def _error_body(response: Response) -> bytes:
    deadline = trio.current_time() + _ERROR_BODY_SECONDS
    body = b""
    # The status counts for more than what may be wrong with its explanation.
    with contextlib.suppress(ModelError):
        while len(body) < MAX_ERROR_BYTES and (data := await response.receive(deadline=deadline)):
            body += data
    return body
