"""What waits for a client's answer."""

from typing import Any

import outcome

from exeunt.actors.turn.live import Waiter
from exeunt.wire.serving.client import Client


class Pending:
    """One request that went to a client as an event, until it is answered."""

    __slots__ = ("client", "request_id", "tool_call_id", "waiter")

    def __init__(self, request_id: str, tool_call_id: str, client: Client | None) -> None:
        self.request_id = request_id
        self.tool_call_id = tool_call_id
        self.client = client
        """Who must answer; `None`: whoever is attached."""
        self.waiter = Waiter()

    def may_answer(self, client: Client | None) -> bool:
        """Whether *client*, who is attached, is the one that was asked, or that one is gone."""
        return client is not None and self.client in (None, client)

    def answer(self, value: Any) -> bool:
        """Give the answer; return whether it was the first."""
        if self.waiter.resolved:
            return False
        self.waiter.resolve(outcome.Value(value))
        return True
