"""From the bytes of an answer to `ModelDelta` and `ModelResponse`, whatever form the server chose. Pure.

A stream may be asked for and a whole answer come, and the other way round; content types are not to be trusted.
So the first byte that is no white space decides.
"""

from collections.abc import Collection, Iterator
from typing import Any

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse
from exeunt.models.http.sse import MAX_EVENT_BYTES, SSEEvent, SSEReader
from exeunt.models.openai.assembly import Assembly
from exeunt.models.openai.failures import failure_in_answer
from exeunt.models.openai.jsontext import is_dict, is_list, loads

STILL_AT_WORK = ModelDelta()
"""Stands for bytes with nothing to show, such as the arguments of a call, or a keep-alive: who waits for the next
piece must not take the model for silent."""

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_DONE = "[DONE]"


class AnswerReader:
    """Reads one answer with status 2xx."""

    __slots__ = ("_assembly", "_done", "_first", "_sse", "_whole")

    def __init__(self, tools: Collection[str] = (), *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        """*tools* are the names of the tools of the request."""
        self._assembly = Assembly(tools)
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
    def is_finished(self) -> bool:
        """Whether the answer itself is complete. Usage and end marker may still follow."""
        return self._assembly.is_finished

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
        if self._whole is not None:
            return self._from_whole(b"".join(self._whole))
        return self._assembly.result(complete=self._done)

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
            raise _malformed("an event of the stream is not JSON", retry=True) from error
        if event.event == "error":
            raise failure_in_answer(chunk.get("error") or chunk if is_dict(chunk) else chunk)
        if not is_dict(chunk):
            return None
        if chunk.get("error"):
            raise failure_in_answer(chunk["error"])
        self._assembly.add_usage(chunk.get("usage"))
        choice = _first_choice(chunk.get("choices"))
        if choice is None:
            return None
        delta = choice.get("delta")
        if not is_dict(delta):
            delta = choice.get("message")
        return self._assembly.add_delta(delta, choice.get("finish_reason"))

    def _from_whole(self, body: bytes) -> ModelResponse:
        try:
            # Undecodable bytes must not hide an answer: they become U+FFFD, as in a stream.
            answer = loads(body.removeprefix(_BOM).decode("utf-8", "replace"))
        except ValueError as error:
            raise _malformed("the answer is not JSON", retry=True) from error
        if not is_dict(answer):
            raise _malformed("the answer is no JSON object", retry=False)
        problem = answer.get("error")
        choices = answer.get("choices")
        if problem and not choices:
            if isinstance(problem, str):
                raise ModelError(
                    ModelErrorKind.MISCONFIGURED_ENDPOINT,
                    f"the endpoint is no model: {problem[:500]!r}; see base_url",
                )
            raise failure_in_answer(problem)
        if "choices" not in answer:
            raise _malformed("the answer has no choices: is base_url a chat completions API?", retry=False)
        choice = _first_choice(choices)
        message = choice.get("message") if choice is not None else None
        if choice is None or not is_dict(message):
            raise _malformed("the answer has no message", retry=True)
        self._assembly.add_usage(answer.get("usage"))
        self._assembly.add_message(message, choice.get("finish_reason"))
        # No request asks for alternatives. Some providers put an answer's text and its calls into a choice each.
        for more in choices[1:] if is_list(choices) else ():
            if is_dict(more) and is_dict(more.get("message")):
                self._assembly.add_message(more["message"], more.get("finish_reason"))
        return self._assembly.result(complete=True)


def _first_choice(choices: Any) -> dict[str, Any] | None:
    if is_list(choices) and choices and is_dict(choices[0]):
        return choices[0]
    return None


def _refuse_foreign(start: bytes) -> None:
    if start.startswith(_GZIP):
        raise _malformed("the answer is compressed and does not say so", retry=True)
    if start.startswith(b"<"):
        raise ModelError(
            ModelErrorKind.MISCONFIGURED_ENDPOINT, "the endpoint answers with a web page: see base_url"
        )


def _malformed(message: str, *, retry: bool) -> ModelError:
    return ModelError(ModelErrorKind.MALFORMED_RESPONSE, message, retry=retry)
