"""How what a handle is given gets to the session's actor: checked, admitted, and awaited where it must not be lost.

The actor may be in memory or have left it; what is in `AWAY` is brought back by the host.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import trio

from exeunt.actors.callers import Caller, would_deadlock
from exeunt.actors.errors import (
    InvalidConfiguration,
    InvalidPrompt,
    JournalUnavailable,
    MailboxFull,
    ReplyTimeout,
    SessionNotConfigured,
)
from exeunt.actors.media import Media, check_size, checked_media, readable_size, total_size
from exeunt.actors.session.waiting import (
    ReplyWaiter,
    refuse_status,
)
from exeunt.actors.turn import aborts, host_calls, turns
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Waiter

T = TypeVar("T")

AWAY = frozenset({"passive", "unconfigured"})
"""Statuses of an actor that takes what it is given by way of its host only."""


async def deliver_within(actor: SessionActor, act: Callable[[SessionActor], T], seconds: float | None) -> T:
    """Bring a session back and act on it. Raises `ReplyTimeout` when that takes longer: then nothing has happened."""
    with trio.move_on_after(math.inf if seconds is None else seconds):
        return await actor.host.deliver(actor.id, act)
    raise ReplyTimeout(
        f"session {actor.id} did not come back into memory in time; the message was not sent",
        session_id=actor.id,
        phase="waking",
        in_flight=(),
        queued=0,
    )


async def stop(actor: SessionActor, reason: str) -> None:
    """End a session for *reason*, also one of the host's. The rest is as with `Session.disconnect`."""
    if is_own_handler(actor):
        actor.put(aborts.stop, reason, None)
        return
    waiter = Waiter()
    await put_anywhere(actor, aborts.stop, reason, waiter)
    await waiter.wait()


async def put_anywhere(actor: SessionActor, handler: Callable[..., None], *arguments: Any) -> None:
    """Give a handler to a session, wherever it is, to end what it does; that needs no model."""
    if actor.status not in AWAY:
        actor.put(handler, *arguments)
        return
    with contextlib.suppress(SessionNotConfigured):
        await actor.host.deliver(actor.id, lambda there: there.put(handler, *arguments))


def put_waiting(
    actor: SessionActor,
    prompt: Any,
    mode: Any,
    caller: Caller | None,
    first: bool,
    note: dict[str, Any] | None,
    attachments: Iterable[Media],
) -> tuple[ReplyWaiter, str]:
    waiter = ReplyWaiter(actor, caller)
    return waiter, put_message(actor, prompt, mode, waiter, first, note, attachments)


def put_call(actor: SessionActor, call: host_calls.HostCall) -> None:
    check_open(actor)
    # Without handlers there is nothing to call, and the log would not remember it.
    if actor.status != "unconfigured":
        actor.put(host_calls.accept, call)


def put_message(
    actor: SessionActor,
    prompt: Any,
    mode: Any,
    waiter: Waiter | None,
    first: bool = False,
    note: dict[str, Any] | None = None,
    attachments: Iterable[Media] = (),
) -> str:
    check_message(prompt, mode)
    media = () if attachments == () else checked_media(attachments)
    check_open(actor)
    if media:
        _check_media(actor, media)
    actor.host.turn_slots.offer(actor.options.tenant, session_id=actor.id)
    message_id = actor.new_id()
    actor.put(turns.accept, message_id, prompt, mode, waiter, first, note, media)
    return message_id


async def until_safe(actor: SessionActor) -> None:
    """Wait until what was accepted cannot be lost, as far as the session's durability and its journal promise."""
    if actor.options.durability != "relaxed" and actor.log.outlives_process:
        while actor.status == "restarting":
            # It is accepted, and will be in the log when the actor is back.
            handled = Waiter()
            actor.put(turns.reached, handled)
            await handled.wait()
        await actor.log.wait_durable(actor.state.seq)
    else:
        await trio.lowlevel.checkpoint_if_cancelled()


def check_message(prompt: Any, mode: Any) -> None:
    """Raise `InvalidPrompt` or `InvalidConfiguration` for what cannot be sent."""
    if not isinstance(prompt, str):
        raise InvalidPrompt(f"a prompt must be a text, not {type(prompt).__name__}")
    try:
        # Nearly every prompt is ASCII, and that can be known without a copy.
        _ = prompt.isascii() or prompt.encode()
    except UnicodeEncodeError as error:
        raise InvalidPrompt(
            f"the prompt holds half a surrogate pair at {error.start} and cannot be sent"
        ) from error
    if mode not in ("enqueue", "immediate"):
        raise InvalidConfiguration(f"mode must be 'enqueue' or 'immediate', not {mode!r}")


def checked_note(note: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of a note that a journal can write. Raises `InvalidConfiguration`."""
    if note is None:
        return None
    try:
        copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(note)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"a note holds JSON values only: {error}") from error
    return copy


def remembered(actor: SessionActor, note: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what is logged with a message: its note, and what traces need. Raises as `checked_note`."""
    noted = checked_note(note)
    # Here, in the task of the sender: a session that is away takes the message in another one.
    tracing = actor.host.tracing
    return noted if tracing is None else tracing.sending(noted)


def check_open(actor: SessionActor) -> None:
    """Refuse new work to a session that is gone, full, or on a host without room."""
    if actor.status != "live":
        refuse_status(actor)
    if not actor.log.has_room:
        actor.host.mailbox_refused()
        raise JournalUnavailable(
            f"session {actor.id}: the journal takes nothing new now; send again later", session_id=actor.id
        )
    depth = actor.mailbox_depth
    if depth >= actor.options.mailbox_size:
        actor.host.mailbox_refused()
        if actor.free:
            # It was taken up without its pending work, which must not keep every new message out for ever.
            actor.put(turns.go_on_with_queue)
        raise MailboxFull(
            f"session {actor.id} holds {depth} messages that wait, and may hold {actor.options.mailbox_size}; "
            "send again when it has taken some in",
            session_id=actor.id,
        )


def _check_media(actor: SessionActor, media: tuple[Media, ...]) -> None:
    """Refuse media that are too large, or that there is no room for beside those that wait already."""
    limits = actor.options.media_limits
    check_size(media, limits)
    waiting = sum(total_size(item.media) for item in actor.state.pending())
    if waiting and waiting + total_size(media) > limits.session:
        actor.host.mailbox_refused()
        raise MailboxFull(
            f"session {actor.id} holds {readable_size(waiting)} of attachments that wait, and may hold "
            f"{readable_size(limits.session)}; send again when it has taken some in",
            session_id=actor.id,
        )


def is_own_handler(actor: SessionActor) -> bool:
    return would_deadlock(actor)


def encoded(arguments: Any) -> str:
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"the arguments of a tool call must be JSON: {error}") from error
