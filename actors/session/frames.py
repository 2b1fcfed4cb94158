"""How a session crosses a process boundary: its events and errors as plain JSON values, and back. Pure.

An event becomes its fields and its `type`; an error becomes the name of its class, its message and its fields. Both
come back as the same classes. What comes in is somebody else's: only the classes that are listed here are ever made.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypeGuard, TypeVar, cast

import msgspec

from exeunt.actors import errors, events
from exeunt.actors.errors import ExeuntError, InvalidAnswer, SessionError
from exeunt.actors.events import Event, Origin
from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.actors.permissions import PermissionDecision, PermissionRequest
from exeunt.actors.session.pending import PendingRequest, RequestKind
from exeunt.actors.session.subscriptions import StreamLagged, StreamReset
from exeunt.actors.turn_requests import AutoModeSwitchRequest, SessionLimitsExhaustedRequest, TurnRequest
from exeunt.actors.user_input import UserInputRequest

T = TypeVar("T")


class _RequestHead(msgspec.Struct):
    """The fields of a `PendingRequest` that say how to read the rest."""

    session_id: str
    tenant: str
    request_id: str
    kind: RequestKind
    tool_call_id: str
    tool_name: str
    asked_at: datetime
    deadline: datetime | None


_REQUESTS: dict[RequestKind, type[PermissionRequest | UserInputRequest | TurnRequest]] = {
    "permission": PermissionRequest,
    "user_input": UserInputRequest,
    "session_limits": SessionLimitsExhaustedRequest,
    "auto_mode_switch": AutoModeSwitchRequest,
}


class BadFrame(ValueError):
    """What came in is no frame. Says that the other side speaks another language; never leaves the room."""


def event_frame(event: Event) -> dict[str, Any]:
    """Return *event* as plain JSON values."""
    frame: dict[str, Any] = msgspec.to_builtins(event, enc_hook=_plain_origin)
    frame["type"] = event.type
    return frame


def _plain_origin(value: Any) -> list[Any]:
    if isinstance(value, Origin):
        return list(value.key())
    raise NotImplementedError(f"an event holds {type(value).__name__}, which is no JSON")


def _origin_from(kind: type, value: Any) -> Any:
    if kind is Origin:
        return Origin(*msgspec.convert(value, tuple[str, str | None, int]))
    raise NotImplementedError(f"no frame holds {kind.__name__}")


def event_from(frame: object) -> Event:
    """Return the event that *frame* stands for. Raises `BadFrame`."""
    fields = _mapping(frame, "an event")
    name = fields.get("type")
    kind = _EVENTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadFrame(f"there is no event of type {name!r:.80}")
    return value_from(fields, kind)


def request_frame(request: PendingRequest) -> dict[str, Any]:
    """Return an open request as plain JSON values. Its `kind` says which class its `request` has."""
    frame: dict[str, Any] = msgspec.to_builtins(request)
    return frame


def request_from(frame: object) -> PendingRequest:
    """Return the open request that *frame* stands for. Raises `BadFrame`."""
    head = value_from(frame, _RequestHead)
    request = value_from(_mapping(frame, "a request").get("request"), _REQUESTS[head.kind])
    return PendingRequest(
        head.session_id,
        head.tenant,
        head.request_id,
        head.kind,
        head.tool_call_id,
        head.tool_name,
        head.asked_at,
        head.deadline,
        request,
    )


def answer_frame(answer: Any) -> Any:
    """Return the answer to a request as plain JSON values, which mean the same. Raises `InvalidAnswer`."""
    try:
        plain = msgspec.to_builtins(answer)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidAnswer(f"{answer!r:.80} cannot be sent to another process: {error}") from error
    # Decisions have their kind as classes, and a field more or none.
    return {"kind": answer.kind, **plain} if isinstance(answer, PermissionDecision) else plain


def error_frame(error: Exception) -> dict[str, Any]:
    """Return *error* as plain JSON values, and with it the `ModelError` that caused it.

    One that Exeunt does not raise on purpose becomes a `SessionError`: its class means nothing elsewhere.
    """
    if not isinstance(error, ExeuntError):
        return {"type": "SessionError", "message": f"{type(error).__name__}: {error}", "data": {}}
    data = {name: plain for name, value in vars(error).items() if (plain := _plain(value)) is not _NOTHING}
    frame: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "data": data}
    if isinstance(error.__cause__, ModelError):
        frame["cause"] = error_frame(error.__cause__)
    return frame


def error_from(frame: object) -> ExeuntError:
    """Return the error that *frame* stands for. Raises `BadFrame`.

    A class that is not known here becomes a `SessionError` with that name in its message.
    """
    fields = _mapping(frame, "an error")
    name, message = fields.get("type"), fields.get("message")
    data = _mapping(fields.get("data", {}), "the data of an error")
    if not isinstance(name, str) or not isinstance(message, str):
        raise BadFrame("an error has a type and a message")
    error = _make_error(name, message, data)
    if fields.get("cause") is not None:
        error.__cause__ = error_from(fields["cause"])
    return error


def value_from(value: object, kind: type[T]) -> T:
    """Return *value*, of plain JSON values, as a *kind*. Raises `BadFrame`."""
    try:
        return msgspec.convert(value, kind, dec_hook=_origin_from)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadFrame(f"this is no {kind.__name__}: {error}") from error


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadFrame(f"{what} is a mapping, not {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _make_error(name: str, message: str, data: Mapping[str, Any]) -> ExeuntError:
    kind = _ERRORS.get(name)
    if kind is None:
        return SessionError(f"{name}: {message}")
    # JSON has no tuples; no error has a field that is a list.
    fields: dict[str, Any] = {key: tuple(item) if _is_list(item) else item for key, item in data.items()}
    try:
        if kind is ModelError:
            return ModelError(ModelErrorKind(fields.pop("kind")), message, **fields)
        made: ExeuntError = kind(message, **fields)
    except (TypeError, ValueError, KeyError) as error:
        raise BadFrame(f"these are not the fields of a {name}: {sorted(fields)}") from error
    return made


_NOTHING = object()


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, tuple) and all(isinstance(item, str) for item in cast("tuple[object, ...]", value)):
        return list(cast("tuple[str, ...]", value))
    return _NOTHING


def _all_events() -> Iterator[type[Event]]:
    for name in events.__all__:
        kind = getattr(events, name)
        if isinstance(kind, type) and issubclass(kind, Event) and kind.type:
            yield kind
    yield StreamLagged
    yield StreamReset


_EVENTS: dict[str, type[Event]] = {kind.type: kind for kind in _all_events()}

_ERRORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), ModelError)
    if isinstance(kind, type) and issubclass(kind, ExeuntError)
}
