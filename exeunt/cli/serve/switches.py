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


def folders(environ: Mapping[str, str], variable: str, given: Sequence[Path]) -> tuple[Path, ...] | None:
    """Return folders: those of the options, or those of a variable, or `None` where neither says anything.

    A variable names them as PATH does, and none when it is empty. Raises `InvalidConfiguration` for what is no folder.
    """
    named = environ.get(variable)
    if not given and named is None:
        return None
    found = given or [Path(each) for each in (named or "").split(os.pathsep) if each]
    for folder in found:
        if not folder.is_dir():
            raise InvalidConfiguration(f"{str(folder)!r} is no folder that could be read")
    return tuple(folder.resolve() for folder in found)
