"""What the variables of a server turn on."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from exeunt.actors.errors import InvalidConfiguration

ON = frozenset({"1", "true", "yes", "on"})
OFF = frozenset({"", "0", "false", "no", "off"})


def switched_on(environ: Mapping[str, str], variable: str) -> bool:
    """Return whether a variable turns something on; one that is not set does not. Raises `InvalidConfiguration`."""
    value = environ.get(variable, "").strip().lower()
    if value in ON:
        return True
    if value in OFF:
        return False
    raise InvalidConfiguration(f"{variable} turns something on (1) or off (0); it is {value!r:.40}")


def whole_number(
    environ: Mapping[str, str], variable: str, *, least: int = 1, most: int | None = None
) -> int | None:
    """Return the number that a variable says, if it is set. Raises `InvalidConfiguration`."""
    value = environ.get(variable, "").strip()
    if not value:
        return None
    # int() would take signs, underscores and digits of other scripts.
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS else -1
    if number < least or (most is not None and number > most):
        above = f" above {least - 1}" if least else ""
        bounds = above if most is None else f" from {least} to {most}"
        raise InvalidConfiguration(f"{variable} must be a whole number{bounds}, not {value!r:.40}")
    return number


MOST_DIGITS = 18
"""Of a number in a variable: more than anything has, and few enough for any machine's integers."""

ROOTS = "EXEUNT_INSTRUCTION_ROOTS"
"""Folders in which clients may name some with instructions, as PATH names folders; empty: none."""


def instruction_roots(
    environ: Mapping[str, str], given: Sequence[Path] = (), *, anywhere: bool = False
) -> tuple[Path, ...]:
    """Return the folders of the options, or else those of the variable `ROOTS`; without either, none.

    With *anywhere* it is the whole disk, where the variable does not say otherwise: for a server that its client has
    started as itself, and that may read what the client may. Raises `InvalidConfiguration` for what is no folder.
    """
    named = environ.get(ROOTS)
    if not given and named is None:
        return (Path(Path.cwd().anchor),) if anywhere else ()
    found = given or [Path(each) for each in (named or "").split(os.pathsep) if each]
    for folder in found:
        if not folder.is_dir():
            raise InvalidConfiguration(f"{str(folder)!r} is no folder that could be read")
    return tuple(folder.resolve() for folder in found)
