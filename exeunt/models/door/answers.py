"""From the bytes of an answer to its events, or to one whole, whatever form the server chose. Pure.

A stream may be asked for and a whole answer come, and the other way round; content types are not to be trusted.
So the first byte that is no white space decides.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse
from exeunt.models.door.jsontext import is_dict, loads
from exeunt.models.http.sse import MAX_EVENT_BYTES, SSEEvent, SSEReader

STILL_AT_WORK = ModelDelta()
"""Stands for bytes with nothing to show, such as the arguments of a call, or a keep-alive: who waits for the next
piece must not take the model for silent."""

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_DONE = "[DONE]"


class AnswerReader(ABC):
    """Reads one answer with status 2xx. A door says what an event and what a whole answer mean."""

    __slots__ = ("_done", "_first", "_sse", "_whole")

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._sse = SSEReader(max_event_bytes)
        # What came before the form was known; `None` from then on.
        self._first: bytes | None = b""
        self._whole: list[bytes] | None = None
        self._done = False

    @property
    def is_done(self) -> bool:
        """Whether the end marker of a stream was seen: nothing of interest follows."""
        return self._done

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Whether the answer itself is complete. Usage and end marker may still follow."""

    def feed(self, data: bytes) -> Iterator[ModelDelta]:
        """Take the next bytes of the body and yield what can be shown of them. Raises `ModelError`.

        Iterate to the end: the bytes are taken on the way, so that what came before an error is shown too.
        """
        if self._whole is not None:
            self._whole.append(data)
            return
        if self._first is not None:
            self._first += data
            start = self._first.removeprefix(_BOM).lstrip()
            # A byte order mark may be cut, too.
            if not start or _BOM.startswith(self._first):
                return
            data, self._first = self._first, None
            if start.startswith((b"{", b"[")) and not start.startswith(b"[DONE"):
                self._whole = [data]
                return
            _refuse_foreign(start)
        for event in self._sse.feed(data):
            if not self._done:
                shown = self._event(event)
                if shown is not None:
                    yield shown

    def result(self) -> ModelResponse:
        """Return the answer, at the end of the body or as soon as `is_done`. Raises `ModelError`."""
        if self._whole is None:
            return self._from_stream()
        try:
            # Undecodable bytes must not hide an answer: they become U+FFFD, as in a stream.
            answer = loads(b"".join(self._whole).removeprefix(_BOM).decode("utf-8", "replace"))
        except ValueError as error:
            raise malformed("the answer is not JSON", retry=True) from error
        if not is_dict(answer):
            raise malformed("the answer is no JSON object", retry=False)
        return self._from_whole(answer)

    def _event(self, event: SSEEvent) -> ModelDelta | None:
        text = event.data.strip()
        if text == _DONE:
            self._done = True
            return None
        # Some proxies send their keep-alive as data: nothing, or a comment.
        if not text or text.startswith(":"):
            return None
        try:
            chunk = loads(text)
        except ValueError as error:
            raise malformed("an event of the stream is not JSON", retry=True) from error
        return self._take(event.event, chunk)

    @abstractmethod
    def _take(self, name: str, chunk: Any) -> ModelDelta | None:
        """Take one decoded event of a stream and return what of it can be shown. Raises `ModelError`."""

    @abstractmethod
    def _from_stream(self) -> ModelResponse:
        """Return what the events made. Raises `ModelError`."""

    @abstractmethod
    def _from_whole(self, answer: dict[str, Any]) -> ModelResponse:
        """Return what a decoded answer that is no stream holds. Raises `ModelError`."""


def malformed(message: str, *, retry: bool) -> ModelError:
    """The error for an answer that cannot be read."""
    return ModelError(ModelErrorKind.MALFORMED_RESPONSE, message, retry=retry)


def _refuse_foreign(start: bytes) -> None:
    if start.startswith(_GZIP):
        raise malformed("the answer is compressed and does not say so", retry=True)
    if start.startswith(b"<"):
        raise ModelError(
            ModelErrorKind.MISCONFIGURED_ENDPOINT, "the endpoint answers with a web page: see base_url"
        )
