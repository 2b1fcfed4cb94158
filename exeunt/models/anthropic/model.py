"""The client of one model behind the Messages API."""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import MediaSupport, ModelError, ModelRequest
from exeunt.models.anthropic.answers import MessageReader
from exeunt.models.anthropic.media import cited_sources
from exeunt.models.anthropic.requests import RequestEncoder
from exeunt.models.anthropic.thoughts import provider_tag, refuses_thoughts
from exeunt.models.door.answers import AnswerReader
from exeunt.models.door.headers import WireHeaders, bearer, checked_key, wire_headers
from exeunt.models.door.model import MAX_RESPONSE_BYTES, Connecting, HttpModel
from exeunt.models.http import HttpClient, PoolLimits, Timeouts
from exeunt.models.http.urls import parse_endpoint

DEFAULT_BASE_URL = "https://api.anthropic.com"

API_VERSION = "2023-06-01"
"""Of the API: what the header `anthropic-version` says. There is no later one."""


class AnthropicModel(HttpModel):
    """A model behind the Messages API of Anthropic, or of one who speaks it too; a `ModelClient`.

    One object serves any number of sessions of one trio run at once. A call fails with `ModelError` and is not
    tried again here, but for two cases: a kept connection that turns out to be dead, and thoughts of earlier answers
    that the server does not take back, without which the request is sent once more. A cancelled call closes its
    own connection and disturbs no other. Without `aclose` the connections go with the object.
    """

    provider = "anthropic"
    """Whose API it is, in metrics and traces."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        api_key: str | None = None,
        auth_token: str | None = None,
        headers: Mapping[str, str] | None = None,
        betas: Sequence[str] = (),
        proxy: str | None = None,
        trust_env: bool = True,
        ssl_context: ssl.SSLContext | None = None,
        options: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        effort: str | None = None,
        prompt_cache: bool = True,
        citations: bool = False,
        media: MediaSupport | None = None,
        timeouts: Timeouts | None = None,
        limits: PoolLimits | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        http: HttpClient | None = None,
    ) -> None:
        """Describe the model; nothing is connected yet. Raises `InvalidConfiguration`.

        *base_url* is what comes before `/v1/messages`, with or without the `/v1`; a query string is kept.
        *api_key* is sent as `x-api-key`, and *auth_token* as `Authorization: Bearer`; without one no such header
        is sent. *betas* are the names of features for the header `anthropic-beta`. *headers* are further headers,
        and win. *proxy* is an `http://` proxy; without one, and with *trust_env*, that of `HTTPS_PROXY`,
        `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. *options* are further fields of each request, such as
        `{"temperature": 0}`, and win. *max_tokens* bounds an answer, thoughts included; without it, 32,000 or
        what the model can. *effort* (`minimal`, `low`, `medium`, `high`, `xhigh`, `max`) lets the model think.
        *prompt_cache* marks what the provider is to keep for the next request, which then costs a tenth.
        *citations* lets the model cite the documents that it is given. *media* says what the model takes beside
        text, by default images and PDF documents; the rest is told as text. *max_response_bytes* bounds a decoded
        answer. *http* is a client of another model to share connections with; it brings its own proxy, TLS,
        time-outs and limits.
        """
        path = api_path(base_url, "messages")
        origin, _ = parse_endpoint(base_url, path)
        self._tag = provider_tag(origin.authority, model)
        self._encoder = RequestEncoder(
            model,
            options or {},
            max_tokens=max_tokens,
            effort=effort,
            prompt_cache=prompt_cache,
            citations=citations,
            media=media,
            tag=self._tag,
        )
        self.reads_sources = citations
        """Whether it is shown what of results can be cited."""
        super().__init__(
            model,
            base_url=base_url,
            path=path,
            headers=headers_of(api_key, auth_token, betas, headers or {}),
            secrets=(api_key, auth_token),
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
        sources = cited_sources(request.messages) if self.reads_sources else ()
        return MessageReader({tool.name for tool in request.tools}, tag=self._tag, sources=sources)

    def _refuses_reasoning(self, error: ModelError) -> bool:
        return refuses_thoughts(error)


def api_path(base_url: str, name: str) -> str:
    """Return what comes behind *base_url* to reach *name*: people give it with the version, and without."""
    try:
        versioned = urlsplit(base_url).path.rstrip("/").endswith("/v1")
    except ValueError:
        versioned = False  # What is wrong with it is said where it is parsed.
    return f"/{name}" if versioned else f"/v1/{name}"


def headers_of(
    api_key: str | None, auth_token: str | None, betas: Sequence[str], extra: Mapping[str, str]
) -> tuple[WireHeaders, WireHeaders]:
    """Return the headers of a plain and of a streaming request. Raises `InvalidConfiguration`."""
    own = {"anthropic-version": API_VERSION, **bearer(auth_token, "auth_token")}
    if api_key is not None:
        own["x-api-key"] = checked_key(api_key)
    if isinstance(betas, str) or not all(isinstance(beta, str) and beta.strip() for beta in betas):
        raise InvalidConfiguration("betas must be a list of names")
    if betas:
        own["anthropic-beta"] = ",".join(betas)
    return wire_headers(own, extra)
