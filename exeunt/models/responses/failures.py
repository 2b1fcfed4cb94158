"""What went wrong, from the error of a response or of a stream. Pure."""

from typing import Any

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.door.failures import failure, failure_in_answer
from exeunt.models.door.jsontext import dumps, is_dict

# In an error's `code`, the first that fits: those of this API that say more than the words which all doors know.
_BY_CODE: tuple[tuple[str, ModelErrorKind, bool], ...] = (
    ("policy", ModelErrorKind.CONTENT_FILTERED, False),
    ("image", ModelErrorKind.BAD_REQUEST, False),
    ("invalid_prompt", ModelErrorKind.BAD_REQUEST, False),
    ("invalid_encrypted", ModelErrorKind.BAD_REQUEST, False),
    ("data_residency", ModelErrorKind.BAD_REQUEST, False),
    # Of a web socket that has reached its age: another takes its place.
    ("connection_limit", ModelErrorKind.CONNECTION_LOST, True),
)


def failed(error: Any, status: Any = None) -> ModelError:
    """The error for what stands under `error` in a response or an event, or for an `error` event itself.

    *status* is the HTTP status that an event of a web socket tells.
    """
    found = (
        failure(status, {}, dumps({"error": error}).encode())
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600
        else failure_in_answer(error)
    )
    code = error.get("code") if is_dict(error) else None
    for word, kind, retry in _BY_CODE:
        if isinstance(code, str) and word in code:
            return ModelError(kind, str(found), retry=retry, status=found.status)
    return found
