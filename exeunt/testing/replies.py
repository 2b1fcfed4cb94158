"""The words in which a test writes what a scripted model answers.

A reply is one of the values made here, a plain `str` (the same as `say`), a list of one `say` and any number
of `call`s (one answer with all of it), or a function that gets the request and returns a reply, or the
awaitable of one.
"""

import itertools
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelError, ModelErrorKind, ModelRequest, Usage

_WORDS = re.compile(r"\s*\S+|\s+")


def _not_negative(_: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidConfiguration(f"{attribute.name} is {value!r}: give finite seconds, 0 or more.")


@attrs.frozen
class Say:
    """A text. Make it with `say`."""

    text: str
    pieces: tuple[str, ...]
    delay: float = attrs.field(default=0.0, validator=_not_negative)
    gap: float = attrs.field(default=0.0, validator=_not_negative)
    usage: Usage | None = None
    reasoning: str = ""


@attrs.frozen
class Call:
    """A tool call. Make it with `call` or `raw_call`."""

    name: str
    arguments_json: str
    id: str | None = None

    def with_id(self, id: str) -> "Call":
        """The same call with an id of the test's own, which is sent as it is, even if empty or used before.

        Generated ids look like `call_1`: choose others.
        """
        return attrs.evolve(self, id=id)


@attrs.frozen
class Fail:
    """An error instead of an answer. Make it with `fail`."""

    make: Callable[[], Exception]


@attrs.frozen
class Hang:
    """No answer, until cancelled. Make it with `hang`."""


@attrs.frozen
class Broken:
    """A stream that breaks off or goes quiet. Make it with `stream_cut` or `stream_stall`."""

    pieces: tuple[str, ...]
    end: Literal["cut", "stall"]
    retry: bool = True


@attrs.frozen
class After:
    """A reply that comes later. Make it with `after`."""

    seconds: float = attrs.field(validator=_not_negative)
    reply: "Reply"


class ReplyFunction(Protocol):
    """Decides on the reply when the request is there."""

    def __call__(self, request: ModelRequest, /) -> "Reply | Awaitable[Reply]": ...


Reply: TypeAlias = (
    str | Say | Call | Fail | Hang | Broken | After | Sequence[Say | Call | str] | ReplyFunction
)
"""Everything that a script may hold."""


def say(
    text: str,
    *,
    delay: float = 0.0,
    gap: float = 0.0,
    chunks: Sequence[str] | int | None = None,
    usage: Usage | None = None,
    reasoning: str = "",
) -> Say:
    """Answer with *text*.

    *delay* is the seconds before the answer, or before its first piece; *gap* the seconds between two pieces
    of a stream (a call of `complete` does not wait for them). *chunks* says how a stream is cut: the pieces
    themselves, which must add up to *text*, how many of about equal length, or `None` for one a word.
    """
    return Say(text, _pieces(text, chunks), delay, gap, usage, reasoning)


def call(tool_name: str, /, **arguments: Any) -> Call:
    """Ask for a call of *tool_name* with these arguments. Any argument name works: `call` has no options.

    Wrap it in `after` to delay it, put several in a list for one batch.
    """
    try:
        encoded = msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidConfiguration(
            f"The arguments of call({tool_name!r}) have no JSON form ({error}). "
            "Use raw_call(name, text) for arguments that a model should not have written."
        ) from error
    return Call(tool_name, encoded)


def raw_call(tool_name: str, arguments_json: str, *, id: str | None = None) -> Call:
    """Ask for a call with the arguments as this very text, valid JSON or not."""
    return Call(tool_name, arguments_json, id)


def fail(
    error: ModelErrorKind | str | Exception,
    message: str = "scripted failure",
    *,
    retry: bool = False,
    status: int | None = None,
    retry_after: float | None = None,
    code: str = "",
    limited_for: float | None = None,
) -> Fail:
    """Raise a `ModelError` of this kind, with the other arguments; or *error* itself if it is an exception.

    An exception that is no `ModelError` plays a faulty client.
    """
    if isinstance(error, Exception):
        return Fail(lambda: error.with_traceback(None))
    try:
        kind = ModelErrorKind(error)
    except ValueError:
        kinds = ", ".join(ModelErrorKind)
        raise InvalidConfiguration(f"{error!r} is no kind of ModelError. Kinds: {kinds}.") from None
    # A new one each time: a script that cycles would otherwise pile up tracebacks on one object.
    details: dict[str, Any] = {"status": status, "retry_after": retry_after, "code": code}
    return Fail(lambda: ModelError(kind, message, retry=retry, limited_for=limited_for, **details))


def hang() -> Hang:
    """Never answer. Only a cancellation, such as the session's time-out, ends the call."""
    return Hang()


def after(seconds: float, reply: Reply) -> After:
    """Give *reply* after that many seconds. Delays add up."""
    return After(seconds, reply)


def stream_cut(
    after_chunks: int,
    text: str = "an answer that breaks off before its end",
    *,
    chunks: Sequence[str] | int | None = None,
    retry: bool = True,
) -> Broken:
    """Stream the first *after_chunks* pieces of *text*, then raise `ModelError` of kind `truncated_stream`.

    A call of `complete` raises it at once. *chunks* as in `say`.
    """
    return Broken(_first(after_chunks, text, chunks), "cut", retry)


def stream_stall(
    after_chunks: int,
    text: str = "an answer that goes quiet before its end",
    *,
    chunks: Sequence[str] | int | None = None,
) -> Broken:
    """Stream the first *after_chunks* pieces of *text*, then nothing until cancelled.

    A call of `complete` never answers.
    """
    return Broken(_first(after_chunks, text, chunks), "stall")


def _first(count: int, text: str, chunks: Sequence[str] | int | None) -> tuple[str, ...]:
    pieces = _pieces(text, chunks)
    if not 0 <= count <= len(pieces):
        raise InvalidConfiguration(f"after_chunks is {count}, but the text has {len(pieces)} pieces.")
    return pieces[:count]


def _pieces(text: str, chunks: Sequence[str] | int | None) -> tuple[str, ...]:
    if chunks is None:
        return tuple(_WORDS.findall(text))
    if isinstance(chunks, int):
        if chunks < 1:
            raise InvalidConfiguration(f"chunks is {chunks}: a stream has at least one piece.")
        cuts = [len(text) * part // chunks for part in range(chunks + 1)]
        return tuple(text[start:end] for start, end in itertools.pairwise(cuts) if start < end)
    if "".join(chunks) != text:
        raise InvalidConfiguration(f"The chunks {list(chunks)!r} do not add up to the text {text!r}.")
    return tuple(chunks)
