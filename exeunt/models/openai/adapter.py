"""A model through an `AsyncOpenAI` object that the host brings along. Needs the extra `exeunt[openai]`.

For hosts whose client has its own authentication, transport or instrumentation. `OpenAIModel` needs a tenth of
its CPU per call. The request is handed over as bytes: the client's `chat.completions.create` walks the messages
as typed dictionaries, at 0.26 ms for each, and nothing else runs meanwhile.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Literal, cast

import httpx2
import openai
import trio

from exeunt.actors.models import (
    MediaSupport,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
)
from exeunt.models.door.answers import STILL_AT_WORK, AnswerReader
from exeunt.models.door.failures import failure
from exeunt.models.http import Timeouts
from exeunt.models.http.decoding import Decoder, too_large
from exeunt.models.openai.answers import CompletionReader
from exeunt.models.openai.requests import RequestEncoder

# As of `OpenAIModel`.
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_TAIL_SECONDS = 5.0

# Seconds for the end of a body behind the end marker of its stream, so that the connection can be used again.
_DRAIN_SECONDS = 0.02

# Seconds to close a response. What does not close by then is dropped.
_CLOSE_SECONDS = 1.0


class OpenAIClientModel:
    """A model behind the host's own `AsyncOpenAI` object; a `ModelClient`.

    The client stays the host's: its connections, its limits, and who closes it. Its retries are off for these
    calls, since the session retries. Of the time-outs, `connect` and `pool` are the client's own.
    """

    provider = "openai"
    """Whose API it is, in metrics and traces."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: str,
        *,
        options: Mapping[str, Any] | None = None,
        developer_role: Literal["system", "developer"] = "system",
        stream_usage: bool = True,
        media: MediaSupport | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """See `OpenAIModel` for the options. Raises `InvalidConfiguration`."""
        self._client = client
        self._encoder = RequestEncoder(
            model, options or {}, developer_role=developer_role, stream_usage=stream_usage, media=media
        )
        self._timeouts = timeouts or Timeouts()
        self.model = model
        """The name of the model."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer *request* in one piece. Raises `ModelError`. Cancelled, the call's connection is closed."""
        async with aclosing(self._pieces(request, stream=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelResponse):
                    return piece
        raise AssertionError("an answer ends with a response or an error")

    def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelDelta | ModelResponse]:
        """Answer *request* in pieces: any number of `ModelDelta`, then one `ModelResponse`.

        Raises `ModelError`, also in the middle. Closed before its end, or cancelled, its connection is closed.
        """
        return self._pieces(request, stream=True)

    async def _pieces(
        self, request: ModelRequest, *, stream: bool
    ) -> AsyncGenerator[ModelDelta | ModelResponse]:
        limits = self._timeouts
        start = trio.current_time()
        end = start + (limits.stream_total if stream else limits.total)
        deadline = min(start + limits.first_byte, end) if stream else end
        response = await self._post(request, stream, deadline)
        reader = CompletionReader({tool.name for tool in request.tools})
        body = response.aiter_raw()
        size = 0
        try:
            coding = response.headers.get("content-encoding", "").strip().lower()
            decoder = None if coding in ("", "identity") else Decoder(coding, _MAX_RESPONSE_BYTES)
            while data := await _next(body, reader, deadline):
                size += len(data)
                if size > _MAX_RESPONSE_BYTES:
                    raise too_large(_MAX_RESPONSE_BYTES)
                if decoder is not None:
                    data = decoder.decode(data)
                silent = True
                for delta in reader.feed(data):
                    yield delta
                    silent = False
                if reader.is_done:
                    break
                if silent:
                    yield STILL_AT_WORK
                if stream:
                    gap = min(limits.gap, _TAIL_SECONDS) if reader.is_finished else limits.gap
                    deadline = min(trio.current_time() + gap, end)
            if decoder is not None and not reader.is_done:
                decoder.end()
            answer = reader.result()
        finally:
            # The client reads through generators inside of generators. Closing the outermost leaves the others
            # to the garbage collector, with warnings; an exception in the innermost ends all. So: read on, cancelled.
            seconds = _DRAIN_SECONDS if reader.is_done else 0.0
            with trio.move_on_after(seconds, shield=True), suppress(httpx2.HTTPError, httpx2.StreamError):
                async for _ in body:
                    pass
            # Bounded: it may wait for the farewell of a TLS connection.
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await response.aclose()
        yield answer

    async def _post(self, request: ModelRequest, stream: bool, deadline: float) -> httpx2.Response:
        body = self._encoder.encode(request, stream=stream)
        response: httpx2.Response | None = None
        accept = "text/event-stream" if stream else "application/json"
        try:
            with trio.CancelScope(deadline=deadline):
                # `stream=True` in both cases: it leaves the body to be read, and bounded, here.
                answer: object = await self._client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=body,
                    options={
                        "max_retries": 0,
                        "headers": {
                            **dict(request.headers),
                            "Content-Type": "application/json",
                            "Accept": accept,
                            "Accept-Encoding": "identity",
                        },
                    },
                    stream=True,
                    stream_cls=openai.AsyncStream[object],
                )
                response = cast("httpx2.Response", answer)
        except openai.APIStatusError as error:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            raise failure(error.status_code, headers, error.response.content) from error
        except openai.APITimeoutError as error:
            raise _timeout("the head of an answer") from error
        except openai.APIConnectionError as error:
            raise _lost(error.__cause__ or error) from error
        except openai.OpenAIError as error:
            raise ModelError(ModelErrorKind.AUTHENTICATION, f"the client refuses to send: {error}") from error
        if response is None:
            raise _timeout("the head of an answer")
        return response


async def _next(body: AsyncIterator[bytes], reader: AnswerReader, deadline: float) -> bytes:
    try:
        with trio.CancelScope(deadline=deadline):
            return await anext(body, b"")
    except httpx2.TimeoutException as error:
        if not reader.is_finished:
            raise _timeout("the next piece of the answer") from error
    except httpx2.TransportError as error:
        if not reader.is_finished:
            raise _lost(error) from error
    else:
        if not reader.is_finished:
            raise _timeout("the next piece of the answer")
    # The answer is complete: how its stream ends changes nothing.
    return b""


def _timeout(what: str) -> ModelError:
    return ModelError(ModelErrorKind.TIMEOUT, f"no time left for {what}", retry=True)


def _lost(cause: BaseException) -> ModelError:
    return ModelError(
        ModelErrorKind.CONNECTION_LOST,
        f"the connection was lost: {cause!r}",
        retry=True,
    )
