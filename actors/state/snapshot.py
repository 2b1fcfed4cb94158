"""A session's state as bytes, so that taking a session up again need not read its whole log.

A snapshot says the same as the events up to its number; it can be thrown away at any time. It holds the context's
messages as the events that they are, grouped by activation.
"""

from collections import deque
from collections.abc import Iterable

import msgspec

from exeunt.actors.errors import JournalError
from exeunt.actors.events import Event
from exeunt.actors.events.codec import Data, SliceDecoder, encode_slices
from exeunt.actors.state.account import NO_ACCOUNT, Account
from exeunt.actors.state.context import Batch, Context
from exeunt.actors.state.session_state import FOLDS, Pending, SessionState

FORMAT = 1
"""Number of the encoding. A snapshot of another one is not used: the log has everything."""


class _Snapshot(msgspec.Struct, array_like=True):
    format: int
    seq: int
    last_id: str
    generation: int
    clears_in_a_row: int
    turn_id: str | None
    turn_steps: int
    queue: list[Pending]
    steering: list[Pending]
    call_ids: list[str]
    preamble: list[memoryview]
    messages: list[memoryview]
    batch: list[memoryview]
    """The open answer and the results so far, in the order of their numbers."""
    step: list[memoryview]
    open_calls: list[memoryview]
    approvals: dict[str, str] = {}
    """Of versions that kept no more of a request than its id, by the id of the call."""
    requests: list[memoryview] = []
    """What open calls have asked people, and the answers that are there, in the order of their numbers."""
    labels: dict[str, str] = {}
    question: list[memoryview] = []
    """What the open turn has asked people, if anything."""
    account: Account | None = None
    """`None`: it has neither a limit nor spent anything."""
    media_came: bool = False


_decoder = msgspec.msgpack.Decoder(_Snapshot)


def dump(state: SessionState, last_id: str) -> bytes:
    """Return *state* as bytes; *last_id* is the id of the last event that it holds."""
    context = state.context
    batch: list[Event] = []
    if context.batch is not None:
        batch = [context.batch.message, *(r for r in context.batch.results if r is not None)]
        batch.sort(key=lambda event: event.seq)
    return msgspec.msgpack.encode(
        _Snapshot(
            FORMAT,
            state.seq,
            last_id,
            context.generation,
            state.clears_in_a_row,
            state.turn_id,
            state.turn_steps,
            list(state.queue or ()),
            list(state.steering or ()),
            list(state.call_ids or ()),
            _encoded(context.preamble),
            _encoded(context.shared[: context.length]),
            _encoded(batch),
            _encoded(() if state.step is None else (state.step,)),
            _encoded((state.open_calls or {}).values()),
            {},
            _encoded(_requests(state)),
            state.labels or {},
            _encoded(() if state.question is None else (state.question,)),
            None if state.account is NO_ACCOUNT else state.account,
            state.media_came,
        )
    )


def _requests(state: SessionState) -> list[Event]:
    asked = (state.requests or {}).values()
    events: list[Event] = [one.request for one in asked]
    events.extend(one.answer for one in asked if one.answer is not None)
    return sorted(events, key=lambda event: event.seq)


def _encoded(events: Iterable[Event]) -> list[memoryview]:
    return [memoryview(data) for data in encode_slices(events)]


def usable(data: Data) -> bool:
    """Say whether `load` would return a state. Costs much less. Raises `JournalError` for bytes that are damaged."""
    return _read(data) is not None


def _read(data: Data) -> _Snapshot | None:
    try:
        snapshot = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise JournalError(f"a snapshot cannot be read: {error}") from error
    # What was asked stands in the log only, where the snapshot knows no more than that something was.
    return None if snapshot.format != FORMAT or snapshot.approvals else snapshot


def load(data: Data) -> SessionState | None:
    """Return the state, or `None` for bytes of another format. Raises `JournalError` for bytes that are damaged."""
    snapshot = _read(data)
    if snapshot is None:
        return None
    decoder = SliceDecoder()
    state = SessionState()
    state.seq = snapshot.seq
    state.last_id = snapshot.last_id
    state.clears_in_a_row = snapshot.clears_in_a_row
    state.turn_id = snapshot.turn_id
    state.turn_steps = snapshot.turn_steps
    state.queue = deque(snapshot.queue) if snapshot.queue else None
    state.steering = deque(snapshot.steering) if snapshot.steering else None
    state.call_ids = snapshot.call_ids or None
    state.labels = snapshot.labels or None
    messages = decoder.decode_all(snapshot.messages)
    context = Context(
        tuple(decoder.decode_all(snapshot.preamble)), messages, len(messages), snapshot.generation, None
    )
    state.context = context
    for event in decoder.decode_all(snapshot.step):
        state.step = event
    open_calls = decoder.decode_all(snapshot.open_calls)
    if open_calls:
        state.open_calls = {call.tool_call_id: call for call in open_calls}
    for event in decoder.decode_all(snapshot.requests):
        FOLDS[type(event)](state, event)
    for event in decoder.decode_all(snapshot.question):
        state.question = event
    state.account = snapshot.account or NO_ACCOUNT
    state.media_came = snapshot.media_came
    batch = decoder.decode_all(snapshot.batch)
    if batch:
        message, *results = batch
        context = Context(
            context.preamble,
            context.shared,
            context.length,
            context.generation,
            Batch(message, (None,) * len(message.tool_calls)),
        )
        for result in results:
            context = context.with_event(result)
        state.context = context
    return state
