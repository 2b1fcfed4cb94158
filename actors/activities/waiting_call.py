"""A tool call that waited for an approval when its actor or its process ended, and waits on."""

from typing import TYPE_CHECKING

from exeunt.actors.activities.tool_call import Call
from exeunt.actors.events import PermissionRequested, ToolExecutionStart
from exeunt.actors.models import ToolCall
from exeunt.actors.turn.requests import OpenRequest

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor
    from exeunt.actors.turn.live import Turn


class WaitingCall(Call):
    """A call of which nothing has run but the hook before it, whose findings the request holds."""

    def __init__(
        self,
        actor: "SessionActor",
        turn: "Turn",
        call: ToolCall,
        index: int,
        now: float,
        start: ToolExecutionStart,
        asked: PermissionRequested,
    ) -> None:
        super().__init__(actor, turn, call, index, now)
        self.start = start
        self.arguments_json = asked.arguments_json
        if asked.arguments_json != call.arguments_json:
            self.modified_arguments = asked.arguments_json
        if asked.guidance is not None:
            self.guidance.append(asked.guidance)
        seconds = actor.options.waits.approval
        if asked.deadline is not None:
            # To the millisecond: the clock of the log has moved on a little between the two.
            seconds = round(asked.deadline - asked.time, 3)
        self.open_request = OpenRequest(self, seconds, asked.request_id)
        self.requests = {asked.request_id: self.open_request}
