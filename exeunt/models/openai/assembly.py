"""From the pieces of an answer to the answer. Pure.

Servers that speak "the OpenAI API" disagree on how the pieces of a tool call belong together. The rule is that
a call is never lost and two calls are never glued: where a piece could continue a call or begin one, the call
before it decides: one whose arguments are a whole object takes no more of them.
"""

from collections.abc import Collection, Mapping
from typing import Any

from exeunt.actors.models import (
    FinishReason,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelResponse,
    ToolCall,
    Usage,
)
from exeunt.actors.text import encodable
from exeunt.models.door.calls import known_name
from exeunt.models.door.jsontext import dumps, is_dict, is_list, is_object, loads, without_lone_surrogates
from exeunt.models.door.usage import tokens
from exeunt.models.door.verdict import judged

_FINISH: Mapping[str, FinishReason] = {
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}


class _Slot:
    """One tool call in the making."""

    __slots__ = ("id", "name", "pieces")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []

    def has_arguments(self) -> bool:
        return any(piece.strip() for piece in self.pieces)

    def is_ghost(self) -> bool:
        return not self.id and not self.name.strip() and not self.has_arguments()

    def is_whole(self) -> bool:
        return is_object("".join(self.pieces))

    def arguments(self) -> str:
        text = "".join(self.pieces)
        if len(self.pieces) > 1:
            # Some servers send the whole arguments once more after the last piece, or an empty object first.
            last = self.pieces[-1]
            rest = "".join(self.pieces[1:])
            if is_object(last) and _same_json("".join(self.pieces[:-1]), last):
                text = last
            elif self.pieces[0] == "{}" and is_object(rest):
                text = rest
        return without_lone_surrogates(encodable(text)) if text.strip() else "{}"


class Assembly:
    """Takes the `choices[0]` of each piece, gives pieces for display, and the whole at the end."""

    __slots__ = ("_by_index", "_finish", "_held", "_reasoning", "_slots", "_text", "_tools", "_usage")

    def __init__(self, tools: Collection[str] = ()) -> None:
        """*tools* are the names of the tools of the request."""
        self._tools = tools
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._held = ""
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._finish = ""
        self._usage: Usage | None = None

    @property
    def is_finished(self) -> bool:
        """Whether a `finish_reason` was seen. The usage may still follow."""
        return bool(self._finish)

    def add_usage(self, usage: Any) -> None:
        """Note the numbers of a `usage` field; anything else than an object is ignored."""
        if is_dict(usage):
            read, thought = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
            self._usage = Usage(
                tokens(usage.get("prompt_tokens")),
                tokens(usage.get("completion_tokens")),
                cache_read_tokens=tokens(read.get("cached_tokens")) if is_dict(read) else 0,
                reasoning_tokens=tokens(thought.get("reasoning_tokens")) if is_dict(thought) else 0,
            )

    def add_delta(self, delta: Any, finish_reason: Any) -> ModelDelta | None:
        """Add one piece of a stream; return what of it can be shown, if anything. Raises `ModelError`."""
        shown = None
        if is_dict(delta):
            shown = self._add_text(delta)
            for number, call in enumerate(_calls(delta)):
                self._add_call(call, number)
        self._add_finish(finish_reason)
        return shown

    def add_message(self, message: Mapping[str, Any], finish_reason: Any) -> ModelDelta | None:
        """Add the whole message of an answer that is no stream. Raises `ModelError`."""
        shown = self._add_text(message)
        for call in _calls(message):
            self._extend(self._begin(None), call)
        self._add_finish(finish_reason)
        return shown

    def result(self, *, complete: bool) -> ModelResponse:
        """Return the answer. *complete* says whether the stream had its end marker, or was none.

        Raises `ModelError` where the answer is of no use.
        """
        finish = self._finish.lower()
        if finish == "error":
            raise ModelError(ModelErrorKind.SERVER_ERROR, "the provider broke the answer off", retry=True)
        text = encodable("".join(self._text) + self._held)
        answer = ModelResponse(
            text,
            tuple(self._results()),
            _FINISH.get(finish, "stop"),
            self._usage,
            encodable("".join(self._reasoning)),
        )
        begun = all(slot.has_arguments() for slot in self._slots if not slot.is_ghost())
        return judged(answer, begun=begun, finished=bool(finish) or complete)

    # --- Text ---

    def _add_text(self, message: Mapping[str, Any]) -> ModelDelta | None:
        text, reasoning = _split_content(message.get("content"))
        refusal = message.get("refusal")
        if isinstance(refusal, str):
            text += refusal
        for name in ("reasoning_content", "reasoning"):
            value = message.get(name)
            if isinstance(value, str) and value:
                # Two names for the same text.
                reasoning += value
                break
        if not text and not reasoning:
            return None
        if reasoning:
            self._reasoning.append(reasoning)
        if text:
            text = self._held + text
            # Half of a surrogate pair: its other half begins the next piece.
            cut = -1 if "\ud800" <= text[-1] <= "\udbff" else len(text)
            text, self._held = text[:cut], text[cut:]
            self._text.append(text)
        return ModelDelta(encodable(text), encodable(reasoning)) if text or reasoning else None

    def _add_finish(self, finish_reason: Any) -> None:
        if isinstance(finish_reason, str) and finish_reason:
            self._finish = finish_reason

    # --- Calls ---

    def _add_call(self, call: Mapping[str, Any], number: int) -> None:
        index = _index(call.get("index"))
        slot = self._slot_for(call, index, number)
        if index is not None:
            self._by_index[index] = slot
        self._extend(slot, call)

    def _slot_for(self, call: Mapping[str, Any], index: int | None, number: int) -> _Slot:
        call_id = _string(call.get("id"))
        function = call.get("function")
        name = _string(function.get("name")) if is_dict(function) else ""
        if index is not None:
            slot = self._by_index.get(index)
        elif call_id:
            slot = next((each for each in reversed(self._slots) if each.id == call_id), None)
            last = self._slots[-1] if self._slots else None
            if slot is None and not name and last is not None and not last.id:
                slot = last
        else:
            # Without any key: the next piece of the last call, but two calls of one piece are two calls.
            slot = self._slots[-1] if self._slots and (number == 0 or not name) else None
        if slot is None or (call_id and slot.id and call_id != slot.id):
            return self._begin(index)
        if not name or not slot.name or (call_id and not slot.pieces):
            return slot
        if not slot.pieces:
            return self._begin(index) if self._is_next_name(slot.name, name) else slot
        # The name comes again, behind arguments: with each piece of the same call, or as a new call.
        if call_id and call_id == slot.id and name == slot.name:
            return slot if not slot.is_whole() or self._is_repeated(slot, call) else self._begin(index)
        return slot if name == slot.name and not slot.is_whole() else self._begin(index)

    def _is_next_name(self, name: str, piece: str) -> bool:
        """Whether *piece* is the name of another call, not more of *name* and not *name* again."""
        longer = name + piece
        return (
            name != piece and name in self._tools and not any(tool.startswith(longer) for tool in self._tools)
        )

    def _is_repeated(self, slot: _Slot, call: Mapping[str, Any]) -> bool:
        text = _arguments(call)
        return not text.strip() or _same_json("".join(slot.pieces), text)

    def _begin(self, index: int | None) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    def _extend(self, slot: _Slot, call: Mapping[str, Any]) -> None:
        slot.id = _string(call.get("id")) or slot.id
        function = call.get("function")
        if not is_dict(function):
            return
        name = _string(function.get("name"))
        if name and name != slot.name:
            slot.name += name
        text = _arguments(call)
        if text:
            slot.pieces.append(text)

    def _results(self) -> list[ToolCall]:
        calls: list[ToolCall] = []
        seen: set[ToolCall] = set()
        for slot in self._slots:
            if slot.is_ghost():
                continue
            call = ToolCall(encodable(slot.id), known_name(slot.name, self._tools), slot.arguments())
            # The same id, name and arguments again: one call that was sent at two indexes.
            if call.id and call in seen:
                continue
            seen.add(call)
            calls.append(call)
        return calls


def _split_content(content: Any) -> tuple[str, str]:
    if isinstance(content, str):
        return content, ""
    text = reasoning = ""
    for part in content if is_list(content) else ():
        if isinstance(part, str):
            text += part
        elif is_dict(part):
            kind = part.get("type")
            if kind in ("thinking", "reasoning"):
                reasoning += "".join(_split_content(part.get("thinking") or part.get("text")))
            else:
                text += _string(part.get("text") or part.get("refusal"))
    return text, reasoning


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if is_dict(calls):
        calls = [calls]
    found = [call for call in calls if is_dict(call)] if is_list(calls) else []
    legacy = message.get("function_call")
    if not found and is_dict(legacy):
        found = [{"index": 0, "function": legacy}]
    return found


def _arguments(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    value = function.get("arguments") if is_dict(function) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def _index(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _same_json(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return bool(loads(one) == loads(other))
    except (ValueError, RecursionError):
        return False
