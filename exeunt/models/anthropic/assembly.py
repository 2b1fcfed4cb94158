"""From the blocks of an answer to the answer. Pure.

The API numbers its blocks, opens and closes each. Proxies leave some of that out, so a piece that belongs to no open
block of its kind begins one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from exeunt.actors.citations import CitableSource, Citations
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
from exeunt.models.anthropic.citing import Citing
from exeunt.models.anthropic.thoughts import KINDS, Layout
from exeunt.models.door.calls import known_name
from exeunt.models.door.jsontext import (
    dumps,
    is_dict,
    is_list,
    with_escaped_controls,
    without_lone_surrogates,
)
from exeunt.models.door.usage import tokens
from exeunt.models.door.verdict import judged

_FINISH: Mapping[str, FinishReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}

# What a piece says of the block that it belongs to.
_KIND_OF: Mapping[str, str] = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class _Slot:
    """One block in the making."""

    __slots__ = ("block", "cited", "kind", "pieces", "signature")

    def __init__(self, kind: str, block: Mapping[str, Any]) -> None:
        self.kind = kind
        self.block = block
        self.pieces: list[str] = []
        self.signature = _string(block.get("signature"))
        self.cited: list[dict[str, Any]] = []

    def text(self) -> str:
        return "".join(self.pieces)

    def arguments(self) -> str:
        text = self.text()
        if not text.strip():
            given = self.block.get("input")
            # Some proxies give the whole input at once, some of them as a text.
            text = given if isinstance(given, str) else dumps(given) if given else ""
        return without_lone_surrogates(with_escaped_controls(encodable(text))) if text.strip() else "{}"

    def has_arguments(self) -> bool:
        return self.arguments() != "{}" or bool(self.text().strip())


class Assembly:
    """Takes the events of a stream, or a whole message; gives pieces for display, and the answer at the end."""

    __slots__ = (
        "_by_index",
        "_finish",
        "_held",
        "_refusal",
        "_slots",
        "_sources",
        "_tag",
        "_tools",
        "_usage",
    )

    def __init__(self, tools: Collection[str], tag: str, sources: Sequence[CitableSource] = ()) -> None:
        """*tools* are the names of the tools of the request; *tag* marks the thoughts of the model.

        *sources* are what the request has of results that can be cited, in its order.
        """
        self._tools = tools
        self._tag = tag
        self._sources = sources
        self._slots: list[_Slot] = []
        self._by_index: dict[Any, _Slot] = {}
        self._finish = ""
        self._refusal = ""
        self._held = ""
        self._usage: dict[str, int] = {}

    @property
    def is_finished(self) -> bool:
        """Whether a stop reason was seen. The end marker may still follow."""
        return bool(self._finish)

    def add_usage(self, usage: Any) -> None:
        """Note the numbers of a `usage` field. Later ones are of the whole answer, and may leave out what was said."""
        if not is_dict(usage):
            return
        details = usage.get("output_tokens_details")
        for name, value in (*usage.items(), *(details.items() if is_dict(details) else ())):
            if count := tokens(value):
                self._usage[name] = count

    def add_stop(self, message: Mapping[str, Any]) -> None:
        """Note why the model stopped: from a message, or from the delta of one."""
        reason = message.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
        details = message.get("stop_details")
        if is_dict(details):
            self._refusal = _string(details.get("explanation")) or _string(details.get("category"))

    def add_message(self, message: Mapping[str, Any]) -> None:
        """Add the whole message of an answer that is no stream."""
        content = message.get("content")
        for block in content if is_list(content) else [content]:
            self.begin(None, {"type": "text", "text": block} if isinstance(block, str) else block)
        self.add_usage(message.get("usage"))
        self.add_stop(message)

    def begin(self, index: Any, block: Any) -> ModelDelta | None:
        """Begin a block, with what of it is there already. Return what of that can be shown."""
        if not is_dict(block):
            return None
        slot = self._open(index, _string(block.get("type")), block)
        for one in _dicts(block.get("citations")):
            slot.cited.append(one)
        if slot.kind == "text":
            return self._add_text(slot, _string(block.get("text")))
        if slot.kind == "thinking":
            return _add_thinking(slot, _string(block.get("thinking")))
        return None

    def add_delta(self, index: Any, delta: Any) -> ModelDelta | None:
        """Add a piece of a block; return what of it can be shown, if anything."""
        kind = _string(delta.get("type")) if is_dict(delta) else ""
        wanted = _KIND_OF.get(kind)
        if wanted is None:
            return None
        slot = self._slots[-1] if index is None and self._slots else self._by_index.get(_key(index))
        if slot is None or slot.kind != wanted:
            slot = self._open(index, wanted, {})
        if kind == "text_delta":
            return self._add_text(slot, _string(delta.get("text")))
        if kind == "thinking_delta":
            return _add_thinking(slot, _string(delta.get("thinking")))
        if kind == "signature_delta":
            slot.signature += _string(delta.get("signature"))
        elif kind == "citations_delta":
            slot.cited += _dicts([delta.get("citation")])
        else:
            piece = delta.get("partial_json")
            slot.pieces.append(piece if isinstance(piece, str) else dumps(piece) if piece else "")
        return None

    def result(self, *, complete: bool) -> ModelResponse:
        """Return the answer. *complete* says whether the stream had its end marker, or was none.

        Raises `ModelError` where the answer is of no use.
        """
        reason = _FINISH.get(self._finish, "stop")
        if reason == "content_filter":
            why = f": {encodable(self._refusal[:500])}" if self._refusal else ""
            raise ModelError(ModelErrorKind.CONTENT_FILTERED, f"the provider refused to go on{why}")
        citing = Citing(self._sources)
        layout = Layout()
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        for slot in self._slots:
            if slot.kind == "text":
                text = encodable(slot.text())
                texts.append(text)
                layout.add_text(len(text))
                citing.add(len(text), slot.cited)
            elif slot.kind == "tool_use":
                calls.append(self._call(slot))
                layout.add_call()
            elif slot.kind == "thinking":
                thought = slot.text()
                thoughts.append(encodable(thought))
                # Without a signature, as other makers leave it out, it would be refused.
                if slot.signature:
                    layout.add_thought({"type": "thinking", "thinking": thought, "signature": slot.signature})
            elif slot.kind in KINDS and slot.block.get("data"):
                layout.add_thought({"type": slot.kind, "data": slot.block["data"]})
        citations: Citations | None = citing.result()
        answer = ModelResponse(
            "".join(texts),
            tuple(calls),
            reason,
            self._totals(),
            "".join(thoughts),
            layout.result(self._tag),
            citations,
        )
        begun = all(slot.has_arguments() for slot in self._slots if slot.kind == "tool_use")
        return judged(answer, begun=begun, finished=self.is_finished or complete)

    # --- Parts ---

    def _open(self, index: Any, kind: str, block: Mapping[str, Any]) -> _Slot:
        slot = _Slot(kind, block)
        self._slots.append(slot)
        if index is not None:
            self._by_index[_key(index)] = slot
        return slot

    def _add_text(self, slot: _Slot, text: str) -> ModelDelta | None:
        if not text:
            return None
        slot.pieces.append(text)
        text = self._held + text
        # Half of a surrogate pair: its other half begins the next piece.
        cut = -1 if "\ud800" <= text[-1] <= "\udbff" else len(text)
        text, self._held = text[:cut], text[cut:]
        return ModelDelta(encodable(text)) if text else None

    def _call(self, slot: _Slot) -> ToolCall:
        name = known_name(_string(slot.block.get("name")), self._tools)
        return ToolCall(encodable(_string(slot.block.get("id"))), name, slot.arguments())

    def _totals(self) -> Usage | None:
        if not self._usage:
            return None
        given = self._usage.get
        read, written = given("cache_read_input_tokens", 0), given("cache_creation_input_tokens", 0)
        return Usage(
            # The API counts the parts of the input apart.
            given("input_tokens", 0) + read + written,
            given("output_tokens", 0),
            read,
            written,
            given("thinking_tokens", 0),
        )


def _add_thinking(slot: _Slot, text: str) -> ModelDelta | None:
    if not text:
        return None
    slot.pieces.append(text)
    return ModelDelta("", encodable(text))


def _key(index: Any) -> Any:
    return index if isinstance(index, int | str) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if is_dict(one)] if is_list(value) else []
