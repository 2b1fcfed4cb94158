"""Text that every later door can encode."""

import re
from datetime import UTC, datetime

REPLACEMENT = "\ufffd"


def encodable(text: str) -> str:
    r"""Return *text* with each lone surrogate replaced by U+FFFD.

    JSON may smuggle in half a surrogate pair (`"\ud83d"`). UTF-8 refuses it, so it would raise far from
    here: in the body of the next model request, in the journal, or in a log line.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def current_datetime(moment: float) -> str:
    """Return what tells a model the time, in seconds since the epoch, before a prompt."""
    said = datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
    return f"<current_datetime>{said}</current_datetime>\n\n"


_TOLD = re.compile(r"<current_datetime>[^<]*</current_datetime>\n\n")


def without_datetime(content: str) -> str:
    """Return what a model was told without the time in front of it."""
    told = _TOLD.match(content)
    return content if told is None else content[told.end() :]


MOST_CAUSES = 5
"""Members of an exception group that are named: enough to act on, and no more than a screen."""


def cause_of(error: BaseException) -> str:
    """Return *error* as `Type: text`; of a group, its members. Raises nothing, whatever *error* does."""
    causes = [_cause(leaf) for leaf in _leaves(error)]
    if len(causes) > MOST_CAUSES:
        causes[MOST_CAUSES:] = [f"and {len(causes) - MOST_CAUSES} more"]
    return "; ".join(causes)


def _leaves(error: BaseException) -> list[BaseException]:
    members: tuple[BaseException, ...] | None = getattr(error, "exceptions", None)
    if members is None or not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for member in members for leaf in _leaves(member)]


def _cause(error: BaseException) -> str:
    try:
        text = str(error)
        return encodable(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    except Exception:  # noqa: BLE001 - the text of an exception may be foreign code
        return f"{type(error).__name__}: its text cannot be shown"
