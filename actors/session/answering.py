"""The other side of a `RemoteSession`: what a transport asks of a session of this process, and what that answers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from exeunt.actors.errors import InvalidConfiguration, InvalidMedia
from exeunt.actors.media import Media
from exeunt.actors.session.frames import error_frame, event_frame, request_frame
from exeunt.actors.session.session import Session

Params = Mapping[str, Any]


class _Given(dict[str, Any]):
    """What was asked."""

    def __missing__(self, name: str) -> Any:
        raise InvalidConfiguration(f"a session was asked without {name!r}")


async def answer_request(session: Session, method: str, params: Params) -> dict[str, Any]:
    """Do what a `RemoteSession` asks of *session*; return the answer as plain JSON values.

    That is `{"result": ...}`, or `{"error": ...}` for whatever was raised, also for a method or params that are
    not of the protocol. Cancelled: as the method of the session that was called. The table stands in `remote`.
    """
    try:
        serve = _METHODS.get(method)
        if serve is None:
            raise InvalidConfiguration(f"a session does not answer {method!r:.80}")
        return {"result": msgspec.to_builtins(await serve(session, _Given(params)))}
    except Exception as error:  # noqa: BLE001 - travels to whoever asked
        return {"error": error_frame(error)}


def _message(params: Params) -> dict[str, Any]:
    """Return what a message has beside its prompt. Older hosts send it without."""
    try:
        media = msgspec.convert(params.get("attachments", ()), tuple[Media, ...])
    except msgspec.ValidationError as error:
        raise InvalidMedia(f"these attachments cannot be read: {error}") from error
    return {
        "mode": params["mode"],
        "attachments": media,
        "first": params.get("first", False),
        "note": params.get("note"),
    }


async def _send(session: Session, params: Params) -> object:
    return await session.send(params["prompt"], **_message(params))


async def _send_and_wait(session: Session, params: Params) -> object:
    aborts = bool(params.get("abort_on_cancel"))
    return await session.send_and_wait(
        params["prompt"], params["timeout"], abort_on_cancel=aborts, **_message(params)
    )


async def _pending_messages(session: Session, params: Params) -> object:
    return session.pending_messages()


async def _withdraw(session: Session, params: Params) -> object:
    return session.withdraw(params["message_id"])


async def _abort(session: Session, params: Params) -> object:
    return await session.abort(params["queued"], reason=params["reason"])


async def _disconnect(session: Session, params: Params) -> object:
    await session.disconnect(reason=params["reason"])
    return None


async def _pending_requests(session: Session, params: Params) -> object:
    return [request_frame(request) for request in session.pending_requests()]


async def _answer(session: Session, params: Params) -> object:
    await session.answer(params["request_id"], params["answer"])
    return None


async def _limit_credits(session: Session, params: Params) -> object:
    await session.limit_credits(params["limit"])
    return None


async def _call_tool(session: Session, params: Params) -> object:
    return await session.call_tool(params["name"], params["arguments"])


async def _get_events(session: Session, params: Params) -> object:
    return [event_frame(event) for event in await session.get_events(params["from_seq"])]


async def _statistics(session: Session, params: Params) -> object:
    return session.statistics()


_METHODS: dict[str, Callable[[Session, Params], Awaitable[object]]] = {
    "send": _send,
    "send_and_wait": _send_and_wait,
    "pending_messages": _pending_messages,
    "withdraw": _withdraw,
    "abort": _abort,
    "disconnect": _disconnect,
    "pending_requests": _pending_requests,
    "answer": _answer,
    "limit_credits": _limit_credits,
    "call_tool": _call_tool,
    "get_events": _get_events,
    "statistics": _statistics,
}
