"""From mappings, as they stand in a file or in a program, to the values that options are made of."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
import cattrs
import cattrs.v

from exeunt.actors.errors import InvalidConfiguration

T = TypeVar("T")


def _whole(value: Any, _: type) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r:.80} is no whole number")  # noqa: TRY004 - a value, for who wrote it
    return value


def _number(value: Any, _: type) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"{value!r:.80} is no number")  # noqa: TRY004 - as above
    return float(value)


# cattrs would take "12" for 12, which hides mistakes of who wrote the file.
_converter = cattrs.Converter(forbid_extra_keys=True)
_converter.register_structure_hook(int, _whole)
_converter.register_structure_hook(float, _number)


def _said(error: BaseException, kind: type | None) -> str:
    """Our own checks say what is wrong; the rest is said by cattrs."""
    if isinstance(error, ValueError) and error.args and not isinstance(error, cattrs.BaseValidationError):
        return str(error)
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        return (
            f"unknown: {', '.join(sorted(error.extra_fields))}; there are {', '.join(_field_names(error.cl))}"
        )
    return cattrs.v.format_exception(error, kind)


def _field_names(cl: type) -> list[str]:
    return [field.name for field in attrs.fields(cl)]


def structured(name: str, value: T | Mapping[str, Any] | None, kind: type[T], default: T) -> T:
    """Return *value* as a *kind*: as it is, from a mapping of its fields, or *default* for `None`.

    Raises `InvalidConfiguration`, naming the keyword *name* and each field that is wrong.
    """
    if value is None:
        return default
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InvalidConfiguration(f"{name} must be a mapping or a {kind.__name__}, not {value!r:.80}")
    try:
        return _converter.structure(value, kind)
    except InvalidConfiguration:
        raise
    except Exception as error:
        details = "; ".join(cattrs.transform_error(error, path=name, format_exception=_said))
        raise InvalidConfiguration(details) from error
