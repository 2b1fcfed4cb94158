"""`exeunt chat`: a person, or a pipe, and one session.

Reading order: `choice` (which model), `transcript` (from events to text), `screen` and `lines` (output and input,
neither of which may hold up the loop), `commands` (what begins with a slash), `farewell` (how to come back),
`conversation` (all of it together).
"""

from exeunt.cli.chat.choice import WrongChoice, choose_model
from exeunt.cli.chat.conversation import run_chat

__all__ = ["WrongChoice", "choose_model", "run_chat"]
