"""From the text that a model wrote as arguments to the values that a handler takes.

A model may write anything: half an object, two objects, `NaN`, a list, a hundred thousand brackets. Every
text gives either bound arguments or `InvalidArguments`, whose message tells the model what to correct.
"""

import re
from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from exeunt.actors.text import encodable

# Names and values from the model come back to it in the message: enough to recognise, no more.
_LONGEST_EXPLANATION = 1000
_MOST_PROBLEMS = 10

# An escape of a whole pair, of half a pair, or of anything else (so that `\\ud83d`, an escaped backslash and
# plain text, is left alone).
_ESCAPES = re.compile(
    r"""\\(?:
        u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
        |u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})
        |.
    )""",
    re.DOTALL | re.VERBOSE,
)

ANY_OBJECT = msgspec.json.Decoder(dict[str, Any])
"""Takes any JSON object, and no number that is not finite."""


class InvalidArguments(ValueError):
    """The arguments of a call are not what its tool takes. The message is written for the model.

    It never leaves the host: the call ends as `invalid`, with the message as its result.
    """


class Unfit(ValueError):
    """What is wrong with arguments, in words for the model; raised by decoders with messages of their own."""


class BoundArguments(msgspec.Struct, frozen=True, gc=False):
    """Validated arguments of one call, one field per parameter in the order of the signature."""


class WholeObject(BoundArguments, frozen=True, gc=False):
    """The arguments of a handler that takes the object as a whole."""

    value: object


def mended(text: str) -> str:
    """Return *text* as JSON that can be encoded and decoded: blank is `{}`, lone surrogates are U+FFFD."""
    if not text.strip():
        return "{}"
    return _ESCAPES.sub(lambda match: r"\ufffd" if match["half"] else match[0], encodable(text))


@attrs.frozen(eq=False)
class Binder:
    """Binds the arguments of one tool. Made once per tool and shared by all sessions."""

    tool_name: str
    decode: Callable[[str], BoundArguments]
    known: frozenset[str] | None = None
    """The properties that there are; `None` where anything may come, or `decode` knows better."""
    required: frozenset[str] = frozenset()

    def bind(self, text: str) -> BoundArguments:
        """Decode and validate *text*.

        Raises `InvalidArguments`, and nothing else, whatever a validator of a user's class raises.
        """
        try:
            return self.decode(text)
        except Exception as error:  # noqa: BLE001 - validators of the user's classes are foreign code
            return self._bind_mended(text, error)

    def _bind_mended(self, text: str, error: Exception) -> BoundArguments:
        better = mended(text)
        if better != text:
            try:
                return self.decode(better)
            except Exception as second:  # noqa: BLE001 - as above
                error = second
        explanation = encodable(self._explain(better, error))
        if len(explanation) > _LONGEST_EXPLANATION:
            explanation = explanation[:_LONGEST_EXPLANATION] + "..."
        raise InvalidArguments(f"The arguments for the tool call '{self.tool_name}' {explanation}") from error

    def _explain(self, text: str, error: Exception) -> str:
        if isinstance(error, RecursionError):
            return "are nested too deep."
        if isinstance(error, Unfit):
            return f"are not valid: {error}"
        if isinstance(error, msgspec.ValidationError):
            message = str(error).replace("`", "")
            if match := re.fullmatch(r"Expected object, got (\w+)", message):
                return f"must be an object but got {match[1]}."
            problems = self._mismatches(text)
            if " - at " in message or not problems:
                problems.append(_placed(message))
            return f"are not valid: {'; '.join(problems[:_MOST_PROBLEMS])}"
        if isinstance(error, msgspec.DecodeError):
            reason = str(error).removeprefix("JSON is malformed: ")
            return f"were not valid JSON: {'the text ends too early' if 'truncated' in reason else reason}."
        # A validator's `ValueError` arrives as a `ValidationError`. This is a fault inside the user's class:
        # its text is not written for the model.
        return f"were refused: {type(error).__name__}."

    def _mismatches(self, text: str) -> list[str]:
        """All missing and all unknown properties of the outer object: the decoder stops at the first."""
        if self.known is None:
            return []
        try:
            given = msgspec.json.decode(text, type=dict[str, msgspec.Raw]).keys()
        except (msgspec.DecodeError, RecursionError):
            return []
        missing = [f"{name}: required but missing" for name in sorted(self.required - given)]
        return missing + [f"{name}: there is no such parameter" for name in sorted(given - self.known)]


def _placed(message: str) -> str:
    """Turn `Expected str, got int - at $.city` into `city: expected str, got int`."""
    match = re.fullmatch(r"(.*?)(?: - at (key in )?\$\.?([^$]*))?", message, re.DOTALL)
    problem, key, place = match.groups("") if match else (message, "", "")
    problem = problem[:1].lower() + problem[1:]
    return f"{key}{place}: {problem}" if place else problem
