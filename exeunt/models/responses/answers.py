"""From the events of a response, or a whole one, to `ModelDelta` and `ModelResponse`. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from exeunt.actors.models import FinishReason, ModelDelta, ModelError, ModelErrorKind, ModelResponse, Usage
from exeunt.models.door.answers import AnswerReader, malformed
from exeunt.models.door.jsontext import is_dict
from exeunt.models.door.usage import tokens
from exeunt.models.door.verdict import judged
from exeunt.models.http.sse import MAX_EVENT_BYTES
from exeunt.models.responses.assembly import Assembly, Kind
from exeunt.models.responses.failures import failed

_PIECES: Mapping[str, Kind] = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}

_TEXTS = frozenset({"response.output_text.done", "response.refusal.done"})

# The last is of servers that took their events from another API of the same maker.
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.done"})

_BAD = ("failed", "cancelled", "incomplete")


class ResponseReader(AnswerReader):
    """Reads one answer of a Responses API with status 2xx."""

    __slots__ = ("_assembly", "_end", "_keeper")

    def __init__(
        self, tools: Collection[str] = (), *, keeper: str = "", max_event_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        """*tools* are the names of the tools of the request, *keeper* is the name under which reasoning is kept."""
        super().__init__(max_event_bytes=max_event_bytes)
        self._assembly = Assembly(tools)
        self._keeper = keeper
        self._end: dict[str, Any] | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete: nothing follows but the end marker that some servers add."""
        return self._end is not None

    @property
    def response_id(self) -> str:
        """Under which id the server knows the answer, if it has one and the answer is whole."""
        end = self._end or {}
        found = end.get("id") if end.get("status") == "completed" else None
        return found if isinstance(found, str) else ""

    def take(self, event: Any) -> ModelDelta | None:
        """Take one decoded event and return what of it can be shown. Raises `ModelError`."""
        return self._take("", event)

    def _take(self, name: str, chunk: Any) -> ModelDelta | None:
        if not is_dict(chunk):
            return None
        kind = chunk.get("type")
        if not isinstance(kind, str):
            kind = name
        pieces = _PIECES.get(kind)
        if pieces is not None:
            return self._assembly.add_piece(pieces, chunk)
        if kind in _TEXTS:
            return self._assembly.add_text(chunk)
        if kind in ("response.output_item.added", "response.output_item.done"):
            done = kind == "response.output_item.done"
            return self._assembly.add_item(chunk.get("item"), chunk.get("output_index"), done=done)
        if kind == "response.function_call_arguments.done":
            self._assembly.add_arguments(chunk)
        elif kind == "error" or (chunk.get("error") and not kind.startswith("response.")):
            raise failed(chunk.get("error") or chunk, chunk.get("status"))
        elif kind in _ENDS:
            return self._finish(chunk, kind)
        return None

    def _finish(self, chunk: Mapping[str, Any], kind: str) -> ModelDelta | None:
        found = chunk.get("response")
        end: dict[str, Any] = found if is_dict(found) else {}
        # What the event is called counts, where the response in it was not brought up to date; unless it says worse.
        told = end.get("status")
        if kind != "response.done" and told not in _BAD:
            told = kind.removeprefix("response.")
        self._end = {**end, "status": told or "completed"}
        self._done = True
        return self._assembly.add_output(end.get("output"))

    def _from_stream(self) -> ModelResponse:
        if self._end is None:
            # Only the end of the response says that it is whole. Servers that end with a marker in its place have
            # at least ended each item.
            if not self.is_done or not self._assembly.is_whole:
                raise ModelError(
                    ModelErrorKind.TRUNCATED_STREAM, "the stream ended before the response did", retry=True
                )
            return self._concluded({"status": "completed"})
        return self._concluded(self._end)

    def _from_whole(self, answer: dict[str, Any]) -> ModelResponse:
        if is_dict(answer.get("response")) and "output" not in answer:
            answer = answer["response"]
        problem = answer.get("error")
        if problem and not answer.get("output"):
            if isinstance(problem, str) and "status" not in answer:
                raise ModelError(
                    ModelErrorKind.MISCONFIGURED_ENDPOINT,
                    f"the endpoint is no model: {problem[:500]!r}; see base_url",
                )
            raise failed(problem)
        if "output" not in answer and "output_text" not in answer:
            raise malformed("the answer has no output: is base_url a Responses API?", retry=False)
        self._assembly.add_output(answer.get("output"))
        return self._concluded(answer)

    def _concluded(self, end: Mapping[str, Any]) -> ModelResponse:
        """Return the answer that ended as *end* says. Raises `ModelError` where it is of no use."""
        assembly = self._assembly
        assembly.usage = _usage(end.get("usage"))
        status = end.get("status")
        details = end.get("incomplete_details")
        reason = details.get("reason") if is_dict(details) else None
        if status in ("failed", "cancelled") or (end.get("error") and status != "completed"):
            raise failed(end.get("error") or {"message": f"the response ended as {status}"})
        if status in ("in_progress", "queued"):
            raise malformed(f"the answer is a response that is still {status}", retry=True)
        if not assembly.has_text and isinstance(end.get("output_text"), str):
            assembly.add_text({"text": end["output_text"]})
        finish: FinishReason = "length" if status == "incomplete" else "stop"
        if reason == "content_filter":
            finish = "content_filter"
        answer = assembly.response(finish, self._keeper)
        return judged(answer, begun=assembly.calls_are_whole, finished=True)


def _usage(usage: Any) -> Usage | None:
    if not is_dict(usage):
        return None
    read = usage.get("input_tokens_details")
    written = usage.get("output_tokens_details")
    return Usage(
        _named(usage, "input_tokens") or _named(usage, "prompt_tokens"),
        _named(usage, "output_tokens") or _named(usage, "completion_tokens"),
        _named(read, "cached_tokens"),
        _named(read, "cache_write_tokens"),
        _named(written, "reasoning_tokens"),
    )


def _named(numbers: Any, name: str) -> int:
    return tokens(numbers.get(name)) if is_dict(numbers) else 0
