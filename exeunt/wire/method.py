"""How a method is described, and how its parameters are read."""

import functools
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import attrs
import cattrs
import cattrs.v
import msgspec

from exeunt.wire.rpc import FAILED, INVALID_PARAMS, NULL, RpcError

MOST_PROBLEMS = 5
"""Wrong fields that a client is told of at once."""


def _strictly(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _one_of(value: Any, kind: Any) -> Any:
    choices = get_args(kind)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"expected one of {', '.join(map(str, choices))}, got {value!r:.80}")
    return value


_converter = cattrs.Converter()
_converter.register_structure_hook_func(_is_literal, _one_of)
for _kind in (str, int, bool):
    _converter.register_structure_hook(_kind, _strictly)


@functools.cache
def _decoder(params: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(params)


@attrs.frozen
class Method:
    """One row of the table of methods."""

    handler: Callable[[Any, Any], Any]
    """Called `handler(connection, params)` by the task that reads, so it never waits; what has to, it returns as a
    coroutine, which gets a task of its own."""
    params: type
    """The class of the parameters."""
    hot: bool = False
    """Whether it belongs to a turn: its parameters are decoded by a decoder of their own. The others are structured
    from plain values, which takes ten times as long and names every field that is wrong."""
    before_login: bool = False
    """Whether a client may call it before it has shown a token."""

    passed_over: Callable[[Any, bytes, str], None] | None = None
    """Called `passed_over(connection, beginning, why)` when a request was too long to be read, and is refused: for one
    with which something ends that waits."""

    def prepare(self) -> None:
        """Make the decoder of a hot method now, which takes up to 2 ms, and not with its first request."""
        if self.hot:
            _decoder(self.params)

    def read(self, name: str, params: msgspec.Raw) -> Any:
        """Return the parameters. Raises `RpcError`."""
        text = bytes(params)
        if text in (b"", NULL):
            text = b"{}"
        try:
            if self.hot:
                return _decoder(self.params).decode(text)
            structure: Any = _converter.structure
            made: Any = structure(msgspec.json.decode(text, type=dict[str, Any]), self.params)
            return made
        except RecursionError as error:
            raise RpcError(INVALID_PARAMS, f"invalid parameters of {name}: nested too deep") from error
        except Exception as error:
            raise self._refusal(name, text, error) from error

    def _refusal(self, name: str, text: bytes, error: Exception) -> RpcError:
        if self.needs_session and not _has_session(text):
            return RpcError(FAILED, f"Missing sessionId in {name} request")
        if isinstance(error, msgspec.MsgspecError):
            return RpcError(INVALID_PARAMS, f"invalid parameters of {name}: {error}")
        problems = cattrs.transform_error(error, path="params", format_exception=_said)
        return RpcError(
            INVALID_PARAMS, f"invalid parameters of {name}: {'; '.join(problems[:MOST_PROBLEMS])}"
        )

    @property
    def needs_session(self) -> bool:
        """Whether the parameters must name a session."""
        fields: Any = attrs.fields_dict(self.params)
        return "sessionId" in fields and fields["sessionId"].default is attrs.NOTHING


def _has_session(text: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(text, type=dict[str, Any]).get("sessionId"), str)
    except msgspec.MsgspecError:
        return False


def _said(error: BaseException, kind: type | None) -> str:
    if isinstance(error, ValueError) and error.args and not isinstance(error, cattrs.BaseValidationError):
        return str(error)
    return cattrs.v.format_exception(error, kind)
