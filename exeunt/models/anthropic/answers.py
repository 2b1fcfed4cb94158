"""From the events of an answer, or a whole one, to `ModelDelta` and `ModelResponse`. Pure."""

from collections.abc import Collection, Sequence
from typing import Any

from exeunt.actors.citations import CitableSource
from exeunt.actors.models import ModelDelta, ModelError, ModelErrorKind, ModelResponse
from exeunt.models.anthropic.assembly import Assembly
from exeunt.models.door.answers import AnswerReader, malformed
from exeunt.models.door.failures import failure_in_answer
from exeunt.models.door.jsontext import is_dict
from exeunt.models.http.sse import MAX_EVENT_BYTES


class MessageReader(AnswerReader):
    """Reads one answer of a Messages API with status 2xx."""

    __slots__ = ("_assembly",)

    def __init__(
        self,
        tools: Collection[str] = (),
        *,
        tag: str = "",
        sources: Sequence[CitableSource] = (),
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """*tools* are the names of the tools of the request; *tag* marks the thoughts of the model.

        *sources* are what the request has of results that can be cited, in its order.
        """
        super().__init__(max_event_bytes=max_event_bytes)
        self._assembly = Assembly(tools, tag, sources)

    @property
    def is_finished(self) -> bool:
        """Whether the answer itself is complete. The end marker may still follow."""
        return self._assembly.is_finished

    def _take(self, name: str, chunk: Any) -> ModelDelta | None:
        if not is_dict(chunk):
            if name == "error":
                raise failure_in_answer(chunk)
            return None
        # The name of the event says the same, but some proxies leave it out.
        kind = chunk.get("type") or name
        assembly = self._assembly
        if kind == "content_block_delta":
            return assembly.add_delta(chunk.get("index"), chunk.get("delta"))
        if kind == "error" or chunk.get("error"):
            raise failure_in_answer(chunk.get("error") or chunk)
        if kind == "content_block_start":
            return assembly.begin(chunk.get("index"), chunk.get("content_block"))
        if kind == "message_start" and is_dict(chunk.get("message")):
            assembly.add_usage(chunk["message"].get("usage"))
        elif kind == "message_delta":
            assembly.add_usage(chunk.get("usage"))
            if is_dict(chunk.get("delta")):
                assembly.add_stop(chunk["delta"])
        elif kind == "message_stop":
            self._done = True
        elif "choices" in chunk:
            raise malformed("the answer has choices: is base_url a Messages API?", retry=False)
        # `ping`, the end of a block, and what later versions of the API may add.
        return None

    def _from_stream(self) -> ModelResponse:
        return self._assembly.result(complete=self.is_done)

    def _from_whole(self, answer: dict[str, Any]) -> ModelResponse:
        problem = answer.get("error")
        if problem and not answer.get("content"):
            if isinstance(problem, str):
                raise ModelError(
                    ModelErrorKind.MISCONFIGURED_ENDPOINT,
                    f"the endpoint is no model: {problem[:500]!r}; see base_url",
                )
            raise failure_in_answer(problem)
        if "content" not in answer:
            raise malformed("the answer has no content: is base_url a Messages API?", retry=False)
        self._assembly.add_message(answer)
        return self._assembly.result(complete=True)
