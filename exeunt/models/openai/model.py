"""The client of one model behind the chat completions API."""

import ssl
from collections.abc import Mapping
from typing import Any, Literal

from exeunt.actors.models import MediaSupport, ModelRequest
from exeunt.models.door.answers import AnswerReader
from exeunt.models.door.headers import bearer, wire_headers
from exeunt.models.door.model import MAX_RESPONSE_BYTES, Connecting, HttpModel, ModelStatistics
from exeunt.models.http import HttpClient, PoolLimits, Timeouts
from exeunt.models.openai.answers import CompletionReader
from exeunt.models.openai.requests import RequestEncoder

__all__ = ["DEFAULT_BASE_URL", "ModelStatistics", "OpenAIModel"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class OpenAIModel(HttpModel):
    """A model behind an OpenAI-compatible chat completions API; a `ModelClient`.

    One object serves any number of sessions of one trio run at once. A call fails with `ModelError` and is not
    tried again here, but for one case: a kept connection that turns out to be dead. A cancelled call closes its
    own connection and disturbs no other. Without `aclose` the connections go with the object.
    """

    provider = "openai"
    """Whose API it is, in metrics and traces."""

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
        max_response_bytes: int = MAX_RESPONSE_BYTES,
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
        self._encoder = RequestEncoder(
            model, options or {}, developer_role=developer_role, stream_usage=stream_usage, media=media
        )
        super().__init__(
            model,
            base_url=base_url,
            path="/chat/completions",
            headers=wire_headers(bearer(api_key), headers or {}),
            secrets=(api_key,),
            connecting=Connecting(
                proxy=proxy,
                trust_env=trust_env,
                ssl_context=ssl_context,
                timeouts=timeouts,
                limits=limits,
                max_response_bytes=max_response_bytes,
                http=http,
            ),
        )

    def _body(self, request: ModelRequest, *, stream: bool) -> bytes:
        return self._encoder.encode(request, stream=stream)

    def _reader(self, request: ModelRequest) -> AnswerReader:
        return CompletionReader({tool.name for tool in request.tools})
