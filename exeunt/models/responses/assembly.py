"""From the items of an answer, as they come in pieces, to the answer. Pure.

A response says everything several times: in pieces, when an item is done, and at its end. Servers leave some of that
out, and relays give an item another id each time it is named. So an item is found by what is known of it, a later
telling replaces an earlier one, and what only one of them told counts too: nothing is lost, and nothing is there twice.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from exeunt.actors.models import FinishReason, ModelDelta, ModelResponse, ReasoningBlocks, ToolCall, Usage
from exeunt.actors.text import encodable
from exeunt.models.door.answers import malformed
from exeunt.models.door.calls import known_name
from exeunt.models.door.jsontext import dumps, is_dict, is_list, is_object, without_lone_surrogates
from exeunt.models.responses.kept import SEPARATOR, keepable, kept_blocks

MOST_ITEMS = 1_000
"""In one answer: far above what any model gives. Each is looked for among the others, so a server that sends a million
would keep everybody else waiting."""

Kind = Literal["message", "function_call", "reasoning"]
_KINDS: Mapping[str, Kind] = {
    "message": "message",
    "function_call": "function_call",
    "reasoning": "reasoning",
}


class Slot:
    """One item of the output in the making."""

    __slots__ = (
        "call_id",
        "done",
        "held",
        "id",
        "index",
        "kind",
        "name",
        "part",
        "phase",
        "pieces",
        "placed",
        "raw",
        "shown",
        "status",
        "told",
    )

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind
        self.id = ""
        self.index: int | None = None
        self.call_id = ""
        self.name = ""
        self.phase: str | None = None
        self.pieces: list[str] = []
        """Of the text, the arguments, or the reasoning that can be read."""
        self.part: Any = None
        """Which part of the item the last piece was of."""
        self.shown = 0
        """Characters of the text that were shown."""
        self.held = ""
        """Half of a surrogate pair at the end of the pieces: it is shown with its other half."""
        self.status = ""
        self.done = False
        """Whether its text or its arguments were told whole."""
        self.told = False
        """Whether the item itself was."""
        self.placed = False
        """Whether the end of the response has told its place."""
        self.raw: dict[str, Any] | None = None
        """A reasoning item as it came."""

    @property
    def text(self) -> str:
        """What there is of it."""
        return "".join(self.pieces)

    def set_text(self, text: str) -> None:
        """Take the whole text. One that is empty where there was something tells nothing."""
        if text:
            self.pieces = [text]


class Assembly:
    """Takes what the events tell of the output, gives pieces for display, and the whole at the end."""

    __slots__ = ("_order", "_slots", "_tools", "usage")

    def __init__(self, tools: Collection[str] = ()) -> None:
        """*tools* are the names of the tools of the request."""
        self._tools = tools
        self._slots: list[Slot] = []
        self._order: list[Slot] = []
        self.usage: Usage | None = None

    # --- Pieces ---

    def add_piece(self, kind: Kind, event: Mapping[str, Any]) -> ModelDelta | None:
        """Add the `delta` of an event; return what of it can be shown."""
        piece = event.get("delta")
        if is_dict(piece):
            piece = piece.get("text") or piece.get("refusal")
        if not isinstance(piece, str) or not piece:
            return None
        slot = self._slot_of(kind, event)
        if kind == "reasoning":
            part = (event.get("type"), event.get("summary_index"))
            if slot.pieces and part != slot.part:
                piece = SEPARATOR + piece
            slot.part = part
        slot.pieces.append(piece)
        if kind == "message":
            return self._show(slot, slot.held + piece)
        return ModelDelta("", encodable(piece)) if kind == "reasoning" else None

    def add_text(self, event: Mapping[str, Any]) -> ModelDelta | None:
        """Take the whole text of one part of a message, if its pieces were not told; return what can be shown."""
        slot = self._slot_of("message", event)
        text = event.get("text") or event.get("refusal")
        slot.done = True
        if slot.pieces or not isinstance(text, str):
            return None
        slot.set_text(text)
        return self._show(slot, text)

    def add_arguments(self, event: Mapping[str, Any]) -> None:
        """Take the whole arguments of a call."""
        slot = self._slot_of("function_call", event)
        self._set_arguments(slot, _arguments(event.get("arguments")))
        slot.name = _string(event.get("name")) or slot.name
        slot.done = True

    def add_item(self, item: Any, index: Any, *, done: bool) -> ModelDelta | None:
        """Take an item as it begins, or whole once it is *done*; return what of it was not shown yet."""
        kind = _kind(item)
        if kind is None:
            return None
        slot = self._find(kind, item, _index(index), done=done)
        if slot is None:
            slot = self._begin(kind)
        if slot.index is None:
            slot.index = _index(index)
        self._fill(slot, item, done=done)
        return self._show_rest(slot)

    def add_output(self, output: Any) -> ModelDelta | None:
        """Take all items as the end of the response tells them; return what of their text was not shown yet."""
        pieces: list[str] = []
        for index, item in enumerate(output if is_list(output) else ()):
            kind = _kind(item)
            if kind is None:
                continue
            slot = self._find(kind, item, index, done=True, end=True) or self._next(kind, item)
            if slot is None:
                slot = self._begin(kind)
            self._order.append(slot)
            slot.placed = True
            self._fill(slot, item, done=True)
            shown = self._show_rest(slot)
            if shown is not None:
                pieces.append(shown.text)
        return ModelDelta("".join(pieces)) if pieces else None

    # --- The whole ---

    @property
    def has_text(self) -> bool:
        """Whether there is anything to read."""
        return any(slot.text.strip() for slot in self._slots if slot.kind == "message")

    @property
    def is_whole(self) -> bool:
        """Whether each item was told to its end, and each call can be made."""
        messages = [slot for slot in self._slots if slot.kind == "message"]
        return self.calls_are_whole and all(slot.done and slot.status != "incomplete" for slot in messages)

    @property
    def calls_are_whole(self) -> bool:
        """Whether the arguments of each call are a whole object, and none was cut off."""
        calls = [slot for slot in self._slots if slot.kind == "function_call" and _is_call(slot)]
        return all(
            slot.status != "incomplete" and (is_object(slot.text) or (slot.done and not slot.text.strip()))
            for slot in calls
        )

    def response(self, finish_reason: FinishReason, keeper: str) -> ModelResponse:
        """Return what there is, whole or not."""
        slots = self._order + [slot for slot in self._slots if not slot.placed]
        texts: list[str] = []
        calls: list[ToolCall] = []
        reasoning: list[str] = []
        layout: list[dict[str, Any]] = []
        for slot in slots:
            if slot.kind == "message":
                if text := encodable(slot.text):
                    texts.append(text)
                    layout.append(
                        {"type": "message", "length": len(text)}
                        | ({"phase": slot.phase} if slot.phase else {})
                    )
            elif slot.kind == "reasoning":
                reasoning.append(slot.text)
                kept = None if slot.raw is None else keepable(slot.raw)
                if kept is not None:
                    layout.append(kept)
            elif _is_call(slot):
                call = self._call(slot)
                # The same id, name and arguments again: one call that was told twice.
                if call.id and call in calls:
                    continue
                calls.append(call)
                layout.append({"type": "function_call"})
        blocks: ReasoningBlocks | None = kept_blocks(layout, keeper)
        return ModelResponse(
            SEPARATOR.join(texts),
            tuple(calls),
            "tool_calls" if calls and finish_reason == "stop" else finish_reason,
            self.usage,
            encodable(SEPARATOR.join(each for each in reasoning if each)),
            blocks,
        )

    def _call(self, slot: Slot) -> ToolCall:
        text = slot.text
        arguments = without_lone_surrogates(encodable(text)) if text.strip() else "{}"
        return ToolCall(encodable(slot.call_id or slot.id), known_name(slot.name, self._tools), arguments)

    # --- Which item it is ---

    def _slot_of(self, kind: Kind, event: Mapping[str, Any]) -> Slot:
        """Return the item of a piece: by its id, by its place, or else the last of its kind that is not whole."""
        item_id, index = _string(event.get("item_id")), _index(event.get("output_index"))
        mine = [slot for slot in reversed(self._slots) if slot.kind == kind]
        for slot in mine:
            if item_id and slot.id == item_id:
                return slot
        for slot in mine:
            if not slot.told and (index is None or slot.index == index):
                return slot
        slot = self._begin(kind)
        slot.id, slot.index = item_id, index
        return slot

    def _find(
        self, kind: Kind, item: Mapping[str, Any], index: int | None, *, done: bool, end: bool = False
    ) -> Slot | None:
        """Return what was told before of *item*, which is at place *index* of the output.

        *done* says that it is told whole, *end* that the end of the response tells it once more.
        """
        item_id, call_id = _string(item.get("id")), _string(item.get("call_id"))
        mine = [slot for slot in self._slots if slot.kind == kind and not slot.placed]
        for slot in mine:
            if item_id and slot.id == item_id and not (slot.call_id and call_id and slot.call_id != call_id):
                return slot
        # Under other ids, what was told whole is told again by the end of the response only.
        mine = [slot for slot in mine if end or not slot.told]
        for slot in mine:
            if call_id and slot.call_id == call_id and (done or not (item_id and slot.id)):
                return slot
        free = [slot for slot in mine if not (call_id and slot.call_id)]
        # Some count no places: what begins under an id of its own is another item.
        for slot in reversed(free):
            if index is not None and slot.index == index and (done or not (item_id and slot.id)):
                return slot
        text = _text_of(kind, item)
        for slot in free:
            if text and (slot.text == text or (not slot.done and text.startswith(slot.text))):
                return slot
        return None

    def _next(self, kind: Kind, item: Mapping[str, Any]) -> Slot | None:
        """Return the next of its kind that the end of the response has not told of, where that can be *item*."""
        call_id, name = _string(item.get("call_id")), _string(item.get("name"))
        for slot in self._slots:
            if slot.kind == kind and not slot.placed and not (call_id and slot.call_id):
                return slot if slot.name in ("", name) else None
        return None

    def _begin(self, kind: Kind) -> Slot:
        if len(self._slots) >= MOST_ITEMS:
            raise malformed(f"the answer has more than {MOST_ITEMS} items", retry=False)
        slot = Slot(kind)
        self._slots.append(slot)
        return slot

    def _fill(self, slot: Slot, item: Mapping[str, Any], *, done: bool) -> None:
        slot.id = _string(item.get("id")) or slot.id
        slot.status = _string(item.get("status")) if done else slot.status
        slot.done = slot.done or done
        slot.told = slot.told or done
        text = _text_of(slot.kind, item)
        if slot.kind == "function_call":
            slot.call_id = _string(item.get("call_id")) or slot.call_id
            slot.name = _string(item.get("name")) or slot.name
            # Some servers begin an item with the empty object to which its pieces are then added.
            if done or text != "{}":
                self._set_arguments(slot, text)
        elif slot.kind == "message":
            phase = item.get("phase")
            slot.phase = phase if isinstance(phase, str) else slot.phase
            if done or not slot.pieces:
                slot.set_text(text)
        elif done:
            # The end of a response may tell less than the end of the item.
            if slot.raw is None or item.get("encrypted_content"):
                slot.raw = dict(item)
            if not slot.pieces:
                slot.set_text(text)

    @staticmethod
    def _set_arguments(slot: Slot, text: str) -> None:
        # An empty object in the place of what came in pieces: a relay's, for pieces that it could not read.
        if text != "{}" or not slot.text.strip():
            slot.set_text(text)

    # --- What is shown ---

    def _show_rest(self, slot: Slot) -> ModelDelta | None:
        return self._show(slot, slot.text[slot.shown :]) if slot.kind == "message" else None

    def _show(self, slot: Slot, new: str) -> ModelDelta | None:
        slot.held = ""
        if new and "\ud800" <= new[-1] <= "\udbff":
            slot.held, new = new[-1], new[:-1]
        if not new:
            return None
        if slot.shown == 0 and any(other.shown for other in self._slots):
            slot.shown = len(new)
            return ModelDelta(encodable(SEPARATOR + new))
        slot.shown += len(new)
        return ModelDelta(encodable(new))


def _kind(item: Any) -> Kind | None:
    kind = item.get("type") if is_dict(item) else None
    return _KINDS.get(kind) if isinstance(kind, str) else None


def _is_call(slot: Slot) -> bool:
    return bool(slot.call_id or slot.name.strip() or slot.text.strip())


def _text_of(kind: Kind, item: Mapping[str, Any]) -> str:
    if kind == "function_call":
        return _arguments(item.get("arguments"))
    if kind == "message":
        return _joined(item.get("content"), "")
    return _joined(item.get("content"), SEPARATOR) or _joined(item.get("summary"), SEPARATOR)


def _joined(parts: Any, separator: str) -> str:
    if isinstance(parts, str):
        return parts
    texts: list[str] = []
    for part in parts if is_list(parts) else ():
        text = part.get("text") or part.get("refusal") if is_dict(part) else part
        if isinstance(text, str) and text:
            texts.append(text)
    return separator.join(texts)


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
