"""Listings of sessions by the time of the last use, in parts."""

import base64
import json
from collections.abc import Sequence

from exeunt.actors.errors import InvalidConfiguration
from exeunt.supervisor.journal.store import StoredSession

COLUMNS = "session_id, tenant, start_time, modified_time, last_seq"
"""Of a `StoredSession`, in its order."""


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


def listing(table: str, mark: str, tenant: object, page: str | None) -> tuple[str, Sequence[object]]:
    """Return the query for a part of a listing, and its values but the last, how many sessions to return at most.

    *mark* stands for a value, *tenant* is the value of one, or `None` for all. Raises `InvalidConfiguration`.
    """
    conditions: list[str] = []
    values: list[object] = []
    if tenant is not None:
        # The second half lets the index of tenants be used, which holds those with a name.
        conditions.append(f"tenant = {mark}" + (" AND tenant <> ''" if tenant else ""))
        values.append(tenant)
    if page is not None:
        modified, session_id = place_of(page)
        # The first half bounds the walk through the index; the second decides among equal times.
        conditions.append(f"modified_time <= {mark} AND (modified_time < {mark} OR session_id > {mark})")
        values += (modified, modified, session_id)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return (
        f"SELECT {COLUMNS} FROM {table} {where} ORDER BY modified_time DESC, session_id LIMIT {mark}",
        values,
    )
