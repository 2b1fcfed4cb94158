"""What follows from the events: pure values and rules, without I/O, clock or trio.

Read `context` (what the model sees), `session_state` (everything else that a log tells), `termination` (when a
turn ends).
"""

from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.state.context import Context, Messages
from exeunt.actors.state.session_state import Pending, SessionState
from exeunt.actors.state.termination import Limits

__all__ = ["Context", "Limits", "Messages", "Pending", "SessionState", "TurnEndReason"]
