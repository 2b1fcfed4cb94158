"""Seeds: the model's note in a frame of the host's, within a length."""

import inspect
import string
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import attrs

from exeunt.actors.errors import InvalidConfiguration

LONGEST_SEED = 20_000
"""Characters: some ten pages, more than a note should need and little beside what it replaces."""

NOTE = "prompt"
"""The field of a template where the model's note goes."""

State = Callable[[Any], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Gives the values of a template's other fields, of the invocation of a tool or a hook, when a seed is made."""


class SeedTooLong(ValueError):
    """The note is longer than a seed may be; the model is told, and may write a shorter one."""


@attrs.frozen
class SeedFrame:
    """How a seed is made of a note.

    Raises `InvalidConfiguration` for a template without `{prompt}`, or a bad length.
    """

    template: str = "{prompt}"
    longest: int = LONGEST_SEED
    state: State | None = None

    def __attrs_post_init__(self) -> None:
        longest = cast("Any", self.longest)
        if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
            raise InvalidConfiguration(f"the longest seed is a number of characters, not {longest!r}")
        try:
            fields = {name for _, name, _, _ in string.Formatter().parse(self.template) if name is not None}
        except (ValueError, TypeError) as error:
            raise InvalidConfiguration(f"{self.template!r:.80} is no template: {error}") from error
        if NOTE not in fields:
            raise InvalidConfiguration(
                f"the template {self.template!r:.80} has no {{{NOTE}}}: nothing of the model's would be handed on"
            )
        if self.state is None and fields != {NOTE}:
            raise InvalidConfiguration(
                f"the template has the fields {sorted(fields - {NOTE})}, and no state says what goes there"
            )

    async def seed(self, note: str, invocation: Any) -> str:
        """Return the seed.

        Raises `SeedTooLong`, what `state` raises, and `KeyError` for a field that it does not give.
        """
        if len(note) > self.longest:
            raise SeedTooLong(
                f"The prompt has {len(note)} characters; at most {self.longest} are handed on. Write a shorter one."
            )
        values: Any = {} if self.state is None else self.state(invocation)
        if inspect.isawaitable(values):
            values = await values
        return self.template.format_map({**values, NOTE: note})
