"""Whether what a model said is an answer. Pure."""

from collections.abc import Sequence

import msgspec

from exeunt.actors.models import FinishReason, ModelError, ModelErrorKind, ModelResponse, ToolCall
from exeunt.models.door.jsontext import is_object


def judged(answer: ModelResponse, *, begun: bool, finished: bool) -> ModelResponse:
    """Return *answer*, with the finish reason that its calls allow. Raises `ModelError` where it is of no use.

    *begun* says whether the arguments of each call have begun: a call where they have not is one without any, or
    one that was cut off right there. *finished* says whether the server said that the answer is complete.
    """
    calls: Sequence[ToolCall] = answer.tool_calls
    reason: FinishReason = answer.finish_reason
    if reason == "content_filter":
        raise ModelError(ModelErrorKind.CONTENT_FILTERED, "the provider's content filter ended the answer")
    whole = begun and all(is_object(call.arguments_json) for call in calls)
    said = bool(calls or answer.content.strip())
    if reason == "length" and (not whole or not said):
        raise ModelError(
            ModelErrorKind.OUTPUT_LIMIT,
            "the answer was cut off by the output limit: raise it, or ask for less",
        )
    if not finished and not (calls and whole):
        raise ModelError(
            ModelErrorKind.TRUNCATED_STREAM, "the stream ended before the answer did", retry=True
        )
    if not said:
        raise ModelError(
            ModelErrorKind.EMPTY_ANSWER, "the answer has neither text nor tool calls", retry=True
        )
    if reason == "tool_calls" and not calls:
        return msgspec.structs.replace(answer, finish_reason="stop")
    return answer
