"""Places in a listing that goes by the time of the last use."""

import base64
import json

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor.journal.store import StoredSession


def page_after(last: StoredSession) -> str:
    """Return the opaque name of the page behind *last*."""
    return base64.urlsafe_b64encode(json.dumps([last.modified_time, last.session_id]).encode()).decode()


def place_of(page: str) -> tuple[float, str]:
    """Return the time and id of the session that *page* begins behind. Raises `InvalidConfiguration`."""
    try:
        modified, session_id = json.loads(base64.urlsafe_b64decode(page))
        return float(modified), str(session_id)
    except (ValueError, TypeError) as error:
        raise InvalidConfiguration(f"{page!r:.80} is no page of a listing") from error
