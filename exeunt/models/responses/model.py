"""The client of one model behind the Responses API."""

import ssl
from collections.abc import Mapping
from typing import Any, Literal

from exeunt.actors.models import MediaSupport, ModelError, ModelErrorKind, ModelRequest
from exeunt.models.door.answers import AnswerReader
from exeunt.models.door.headers import bearer, wire_headers
from exeunt.models.door.model import MAX_RESPONSE_BYTES, Connecting, HttpModel
from exeunt.models.http import HttpClient, PoolLimits, Timeouts
from exeunt.models.http.urls import parse_endpoint
from exeunt.models.openai.model import DEFAULT_BASE_URL
from exeunt.models.responses.answers import ResponseReader
from exeunt.models.responses.requests import RequestEncoder

PATH = "/responses"


class ResponsesModel(HttpModel):
    """A model behind OpenAI's Responses API, or a server that speaks it; a `ModelClient`.

    One object serves any number of sessions of one trio run at once. A call fails with `ModelError` and is not
    tried again here, but for two cases: a kept connection that turns out to be dead, and reasoning of earlier answers
    that the server does not take back, without which the request is sent once more. A cancelled call closes its
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
        developer_role: Literal["system", "developer"] = "developer",
        media: MediaSupport | None = None,
        timeouts: Timeouts | None = None,
        limits: PoolLimits | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        http: HttpClient | None = None,
    ) -> None:
        """Describe the model; nothing is connected yet. Raises `InvalidConfiguration`.

        *base_url* is what comes before `/responses`; a query string (`?api-version=...`) is kept. *options* are
        further fields of each request, such as `{"reasoning": {"effort": "low"}, "max_output_tokens": 4096}`; the
        server is asked to store nothing, unless they say `"store": True`. *developer_role* is the role of developer
        messages on the wire. *media* says what the model is shown, where a request does not say. *api_key*, *headers*,
        *proxy*, *trust_env*, *max_response_bytes* and *http* are as for `OpenAIModel`.
        """
        origin, _ = parse_endpoint(base_url, PATH)
        # Reasoning is encrypted for who made it: another model or another place refuses it.
        self._keeper = f"responses {origin.authority} {model}"
        self._encoder = RequestEncoder(
            model, options or {}, developer_role=developer_role, keeper=self._keeper, media=media
        )
        super().__init__(
            model,
            base_url=base_url,
            path=PATH,
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
        return ResponseReader({tool.name for tool in request.tools}, keeper=self._keeper)

    def _refuses_reasoning(self, error: ModelError) -> bool:
        return refuses_reasoning(error)


def refuses_reasoning(error: ModelError) -> bool:
    """Whether a server refuses a request for the reasoning of earlier answers in it."""
    if error.kind is not ModelErrorKind.BAD_REQUEST:
        return False
    words = str(error).lower()
    return "encrypted" in words or "'reasoning'" in words
