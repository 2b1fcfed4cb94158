"""What went wrong, from a status and a body. Pure."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.actors.text import encodable
from exeunt.models.door.jsontext import is_dict, is_list, loads
from exeunt.models.http.retry_after import limited_for, retry_advice

MAX_ERROR_BYTES = 256 * 1024
"""Of an error's body. Some gateways answer with a whole page."""

# Of a provider's own words in a message: enough for a sentence or two, too little for a page.
_MAX_WORDS = 500
_MAX_ID = 100

# Of its code: a name, not a sentence.
_MAX_CODE = 100

_Kind = ModelErrorKind

_BY_STATUS: dict[int, tuple[ModelErrorKind, bool]] = {
    401: (_Kind.AUTHENTICATION, False),
    402: (_Kind.AUTHENTICATION, False),
    403: (_Kind.AUTHENTICATION, False),
    404: (_Kind.NOT_FOUND, False),
    405: (_Kind.MISCONFIGURED_ENDPOINT, False),
    407: (_Kind.AUTHENTICATION, False),
    408: (_Kind.TIMEOUT, True),
    409: (_Kind.SERVER_ERROR, True),
    425: (_Kind.SERVER_ERROR, True),
    429: (_Kind.RATE_LIMITED, True),
    501: (_Kind.MISCONFIGURED_ENDPOINT, False),
    505: (_Kind.MISCONFIGURED_ENDPOINT, False),
    504: (_Kind.TIMEOUT, True),
    524: (_Kind.TIMEOUT, True),
    529: (_Kind.OVERLOADED, True),
}

# In an error's `type` or `code`, the first that fits. Providers do not agree on whole words.
_BY_WORD: tuple[tuple[str, ModelErrorKind, bool], ...] = (
    ("insufficient_quota", _Kind.RATE_LIMITED, False),
    ("billing", _Kind.RATE_LIMITED, False),
    ("rate_limit", _Kind.RATE_LIMITED, True),
    ("too_many_requests", _Kind.RATE_LIMITED, True),
    ("overloaded", _Kind.OVERLOADED, True),
    ("authentication", _Kind.AUTHENTICATION, False),
    ("invalid_api_key", _Kind.AUTHENTICATION, False),
    ("permission", _Kind.AUTHENTICATION, False),
    ("content_filter", _Kind.CONTENT_FILTERED, False),
    ("content_policy", _Kind.CONTENT_FILTERED, False),
    ("not_found", _Kind.NOT_FOUND, False),
    ("context_length", _Kind.BAD_REQUEST, False),
    ("invalid_request", _Kind.BAD_REQUEST, False),
    ("too_large", _Kind.BAD_REQUEST, False),
    ("timeout", _Kind.TIMEOUT, True),
)

# Statuses so broad that the words of the body say more.
_WORD_WINS: dict[int, frozenset[ModelErrorKind]] = {
    400: frozenset({_Kind.AUTHENTICATION, _Kind.CONTENT_FILTERED, _Kind.RATE_LIMITED}),
    403: frozenset({_Kind.CONTENT_FILTERED, _Kind.RATE_LIMITED}),
    429: frozenset({_Kind.RATE_LIMITED, _Kind.OVERLOADED}),
    500: frozenset({_Kind.OVERLOADED, _Kind.RATE_LIMITED}),
    503: frozenset({_Kind.OVERLOADED, _Kind.RATE_LIMITED}),
}


def failure(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error for an answer whose status is not 2xx. *headers* with names in lower case."""
    try:
        value: Any = loads(body) if body.strip() else None
    except ValueError:
        value = body.decode("utf-8", "replace")
    words = _words(value)
    if 300 <= status < 400:
        place = headers.get("location", "nowhere")
        return ModelError(
            _Kind.MISCONFIGURED_ENDPOINT,
            f"the endpoint redirects to {_cut(place)}: set base_url to it",
            status=status,
        )
    kind, retry = _by_status(status)
    special = _by_words(value)
    if special is not None and special[0] in _WORD_WINS.get(status, ()):
        kind, retry = special
    # Some providers know better than their status tells.
    if headers.get("x-should-retry") in ("true", "false"):
        retry = headers["x-should-retry"] == "true"
    after: float | None = None
    now = time.time()
    if retry:
        advice = retry_advice(headers, now=now)
        retry, after = advice.retry, advice.after
    # By its id the people of the provider find a request.
    asked = headers.get("request-id", "")[:_MAX_ID]
    return ModelError(
        kind,
        f"status {status}: {words or 'no explanation'}" + (f" (request {asked})" if asked else ""),
        retry=retry,
        status=status,
        retry_after=after,
        code=_code_of(value),
        limited_for=limited_for(headers, now=now) if kind is _Kind.RATE_LIMITED else None,
    )


def failure_in_answer(error: Any) -> ModelError:
    """The error for what stands under `error` in an answer with status 200."""
    words = _words({"error": error}) or "no explanation"
    code = error.get("code") if is_dict(error) else None
    status = _status_of(code)
    if status is not None:
        kind, retry = _by_status(status)
    else:
        kind, retry = _by_words({"error": error}) or (_Kind.SERVER_ERROR, True)
    text = f"the provider reports an error: {words}"
    return ModelError(kind, text, retry=retry, status=status, code=_code_of({"error": error}))


def censor(error: ModelError, secrets: Iterable[str]) -> None:
    """Take secrets out of the message of an error: some servers quote the key that they refuse."""
    for secret in secrets:
        if error.args and secret in str(error.args[0]):
            error.args = (str(error.args[0]).replace(secret, "***"), *error.args[1:])


def _by_status(status: int) -> tuple[ModelErrorKind, bool]:
    known = _BY_STATUS.get(status)
    if known is not None:
        return known
    return (_Kind.SERVER_ERROR, True) if status >= 500 else (_Kind.BAD_REQUEST, False)


def _by_words(value: Any) -> tuple[ModelErrorKind, bool] | None:
    error = _error_of(value)
    if not is_dict(error):
        return None
    text = f"{error.get('type')} {error.get('code')}".lower()
    for word, kind, retry in _BY_WORD:
        if word in text:
            return kind, retry
    return None


def _code_of(value: Any) -> str:
    """Return a provider's own name for the error; a status in its place is none."""
    error = _error_of(value)
    if not is_dict(error):
        return ""
    named = (error.get(name) for name in ("code", "type"))
    return next((text[:_MAX_CODE] for text in named if isinstance(text, str) and not text.isdigit()), "")


def _status_of(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else None


def _error_of(value: Any) -> Any:
    if is_list(value) and value:
        value = value[0]
    if is_dict(value) and value.get("error"):
        return value["error"]
    return value


def _words(value: Any) -> str:
    error = _error_of(value)
    if is_dict(error):
        for name in ("message", "detail", "msg", "type", "code"):
            text = error.get(name)
            if isinstance(text, str | int) and text:
                return _cut(str(text))
        return ""
    return _cut(error) if isinstance(error, str) else ""


def _cut(text: str) -> str:
    text = " ".join(encodable(text[: 4 * _MAX_WORDS]).split())
    return text if len(text) <= _MAX_WORDS else text[:_MAX_WORDS] + "..."
