"""Pictures and documents, as clients send them and are shown them."""

from typing import Any

from tests.actors.media_support import PIXEL
from tests.wire.wire_client import WireClient

BLOB = {"type": "blob", "data": PIXEL.base64, "mimeType": "image/png", "displayName": "pixel.png"}
"""An attachment."""


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return what the events of a kind say."""
    return [event["data"] for event in events if event["type"] == kind]


async def stored(client: WireClient, kind: str) -> list[dict[str, Any]]:
    """Return what the events of a kind say that the log has."""
    return of_kind((await client.call("session.getMessages", sessionId="s"))["events"], kind)
