"""Names of fields: with underscores here, in camel case in the protocol."""

import re


def camel(name: str) -> str:
    """Return a name of ours as the protocol has it."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def snake(name: str) -> str:
    """Return a name of the protocol as ours."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
