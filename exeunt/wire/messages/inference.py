"""Requests to models that a client sends in the server's name."""

import attrs


@attrs.frozen(kw_only=True)
class ResponseStart:
    """The head of a model's answer."""

    requestId: str
    status: int
    headers: dict[str, list[str]] = attrs.field(factory=dict[str, list[str]])


@attrs.frozen(kw_only=True)
class ResponseError:
    """Why an answer broke off."""

    message: str = ""
    code: str | None = None


@attrs.frozen(kw_only=True)
class ResponseChunk:
    """A piece of its body."""

    requestId: str
    data: str = ""
    binary: bool | None = None
    end: bool | None = None
    error: ResponseError | None = None
