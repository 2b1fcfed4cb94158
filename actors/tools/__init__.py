"""Tools: how a Python function becomes something that a model can call.

Reading order: `definition` (what a tool is), `decorator` (how it is made), `signature` (what its function takes),
`schema` and `pydantic_models` (the same as JSON Schema and decoder), `arguments` (the model's text into values,
or into a text that says what is wrong), `invocation` (what a handler is told about its call), `results` (what it
returns, as text), `toolset` (the tools of one session), `ask_user` (the ready-made tool that asks the user).
"""

from exeunt.actors.tools.arguments import BoundArguments, InvalidArguments
from exeunt.actors.tools.ask_user import ask_user_tool
from exeunt.actors.tools.decorator import tool
from exeunt.actors.tools.definition import Tool
from exeunt.actors.tools.invocation import CallInvocation, CallState, ToolInvocation
from exeunt.actors.tools.results import to_result
from exeunt.actors.tools.toolset import ToolSet

__all__ = [
    "BoundArguments",
    "CallInvocation",
    "CallState",
    "InvalidArguments",
    "Tool",
    "ToolInvocation",
    "ToolSet",
    "ask_user_tool",
    "to_result",
    "tool",
]
