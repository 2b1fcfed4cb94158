"""Media in the events that clients see: with their data, as far as there is room for these.

An event is one message of the protocol, and so is a whole log. Where the data do not fit, the protocol says how large
they are, and why they are not there.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from exeunt.actors.events import Event
from exeunt.actors.media import Media, total_size

MIB = 1024 * 1024

MOST_IN_EVENT = 8 * MIB
"""Bytes of data that one event shows: as base64 less than what may wait for a slow client."""

MOST_IN_LOG = 16 * MIB
"""Bytes of data that a whole log shows, those of the last events."""


def shown(media: Sequence[Media], *, with_data: bool) -> list[dict[str, Any]]:
    """Return for each of *media* the fields with its data, or those that say why they are absent."""
    room = MOST_IN_EVENT if with_data else 0
    fields: list[dict[str, Any]] = []
    for one in media:
        size = len(one.data)
        if size <= room:
            room -= size
            fields.append({"data": one.base64})
        else:
            fields.append({"byteLength": size, "omittedReason": "too_large"})
    return fields


def binary_result(media: Media, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return media of a tool's result. *fields* are those of its data; by default all of them."""
    kind = "image" if media.kind == "image" else "resource"
    data = {"data": media.base64} if fields is None else fields
    about = {"description": media.name} if media.name else {}
    return {"type": kind, **data, "mimeType": media.mime_type, **about}


def binary_results(media: Sequence[Media], *, with_data: bool) -> list[dict[str, Any]]:
    """Return what a tool's result brings, as its event shows it."""
    return [
        binary_result(one, fields)
        for one, fields in zip(media, shown(media, with_data=with_data), strict=True)
    ]


def attachments(
    noted: Iterable[dict[str, Any]] | None, media: Sequence[Media], *, with_data: bool
) -> list[dict[str, Any]]:
    """Return what is attached to a message, as its event shows it.

    *noted* is what a client has attached, without the data (see `exeunt.wire.serving.attachments`); `None` where the
    message was sent by the host.
    """
    fields = shown(media, with_data=with_data)
    if noted is None:
        return [_blob(one, data) for one, data in zip(media, fields, strict=True)]
    told: list[dict[str, Any]] = []
    for attachment in noted:
        place = attachment.get(PLACE)
        if place is None or attachment.get("type") != "blob" or place >= len(fields):
            told.append({name: value for name, value in attachment.items() if name != PLACE})
        else:
            rest = {name: value for name, value in attachment.items() if name not in (PLACE, "type")}
            told.append({"type": "blob", **fields[place], **rest})
    return told


PLACE = "media"
"""Under which a noted attachment says which of the message's media it is."""


def _blob(media: Media, fields: dict[str, Any]) -> dict[str, Any]:
    about = {"displayName": media.name} if media.name else {}
    return {"type": "blob", **fields, "mimeType": media.mime_type, **about}


def data_from(events: Sequence[Event]) -> int:
    """Return the number of the first event of a log from which on its media are shown with their data."""
    room = MOST_IN_LOG
    for event in reversed(events):
        media: tuple[Media, ...] = getattr(event, "media", ())
        if media:
            room -= total_size(media)
            if room < 0:
                return event.seq + 1
    return 0
