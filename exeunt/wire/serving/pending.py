"""What waits for a client's answer."""

from typing import Any

import outcome

from exeunt.actors.turn.live import Waiter
from exeunt.wire.serving.client import Client

ELICITATION = "elicitation"
COMMAND = "command"
QUEUED_COMMAND = "queued command"
TOOL_CALL = "tool call"


class Pending:
    """One request that went to a client as an event, until it is answered."""

    __slots__ = ("about", "bystanders", "client", "request_id", "tool_call_id", "waiter")

    def __init__(
        self, request_id: str, tool_call_id: str, client: Client | None, about: str = TOOL_CALL
    ) -> None:
        self.request_id = request_id
        self.tool_call_id = tool_call_id
        self.about = about
        self.client = client
        """Who must answer; `None`: whoever is attached."""
        self.bystanders: tuple[Client, ...] = ()
        """Others that were attached when it was asked."""
        self.waiter = Waiter()

    def may_answer(self, client: Client | None) -> bool:
        """Whether *client*, who is attached, is the one that was asked, or that one is gone."""
        return client is not None and self.client in (None, client)

    def may_take_over(self, client: Client | None) -> bool:
        """Whether an answer of *client* counts: it may answer, or has attached since the request was made.

        Who takes a session up finds in its log what is pending, is not asked for it again, and so answers because it
        means to. Who was there already has seen that another was asked.
        """
        return self.may_answer(client) or (client is not None and client not in self.bystanders)

    def answer(self, value: Any) -> bool:
        """Give the answer; return whether it was the first."""
        if self.waiter.resolved:
            return False
        self.waiter.resolve(outcome.Value(value))
        return True
