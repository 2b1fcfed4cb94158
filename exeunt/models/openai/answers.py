"""From the events of an answer, or a whole one, to `ModelDelta` and `ModelResponse`. Pure."""

from collections.abc import Collection
from typing import Any

from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse
from exeunt.models.door.answers import AnswerReader, malformed
from exeunt.models.door.failures import failure_in_answer
from exeunt.models.door.jsontext import is_dict, is_list
from exeunt.models.http.sse import MAX_EVENT_BYTES
from exeunt.models.openai.assembly import Assembly


class CompletionReader(AnswerReader):
    """Reads one answer of a chat completions API with status 2xx."""

    __slots__ = ("_assembly",)

    def __init__(self, tools: Collection[str] = (), *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        """*tools* are the names of the tools of the request."""
        super().__init__(max_event_bytes=max_event_bytes)
        self._assembly = Assembly(tools)

    @property
    def is_finished(self) -> bool:
        """Whether the answer itself is complete. Usage and end marker may still follow."""
        return self._assembly.is_finished

    def _take(self, name: str, chunk: Any) -> ModelDelta | None:
        if name == "error":
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

    def _from_stream(self) -> ModelResponse:
        return self._assembly.result(complete=self.is_done)

    def _from_whole(self, answer: dict[str, Any]) -> ModelResponse:
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
            raise malformed("the answer has no choices: is base_url a chat completions API?", retry=False)
        choice = _first_choice(choices)
        message = choice.get("message") if choice is not None else None
        if choice is None or not is_dict(message):
            raise malformed("the answer has no message", retry=True)
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
