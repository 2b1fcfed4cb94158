"""Plays a `Program` in virtual time and checks that every promise holds."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import trio

from exeunt import ExeuntError, RetryPolicy, ToolInvocation, ToolResult, Waits, approve_all, tool
from exeunt.actors import errors
from exeunt.actors.events import Event
from exeunt.actors.models import ModelRequest
from exeunt.actors.session import Session
from exeunt.actors.state import SessionState
from exeunt.actors.tools import Tool
from exeunt.host import SessionHost
from exeunt.supervisor.journal import MemoryJournal
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.restarts import Backoff, RestartIntensity
from exeunt.testing import ScriptedModel, after, checked_host, fail, hang, raw_call, run_virtual, say
from exeunt.testing import stream_cut, stream_stall
from exeunt.testing.replies import Reply
from tests.properties.programs import (
    Abort,
    Answer,
    Ask,
    Callback,
    Clear,
    Command,
    Crash,
    Leave,
    Program,
    RunTool,
    Send,
    SessionPlan,
    Sleep,
    Step,
    TakeUp,
    Work,
)
from tests.properties.witness import Witness
