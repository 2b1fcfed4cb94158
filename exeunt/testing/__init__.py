"""What tests of Exeunt, and of programs built on it, are made of.

Reading order: `replies` (the words of a script), `scripted` (the model that plays it), `invariants` (what
holds in every request and every stream of events), `doubles` (handlers, clients and readers that misbehave),
`virtual_time` (hours in milliseconds, races that can be repeated), `loopback` (another process that is none),
`crashes` (of a session's actor, on purpose), `checked_host` (a host that checks all of this by itself).

    async def test_a_tool_is_called(autojump_clock):
        model = ScriptedModel([call("look_up", word="exit"), "They leave."])
        ...
        assert model.requests[1].results == {"call_1": "to go off stage"}
        model.verify()
"""

from exeunt.testing.checked_host import checked_host
from exeunt.testing.crashes import InjectedCrash, crash_session
from exeunt.testing.doubles import (
    Failing,
    Gate,
    Recorder,
    Shielded,
    SilentApprover,
    Sleepy,
    SlowSubscriber,
    StubbornModel,
    Swallowing,
    Trace,
    Traced,
)
from exeunt.testing.invariants import EventInvariants, check_request, describe_messages
from exeunt.testing.loopback import LoopbackTransport
from exeunt.testing.replies import (
    Reply,
    after,
    call,
    fail,
    hang,
    raw_call,
    say,
    stream_cut,
    stream_stall,
)
from exeunt.testing.scripted import RecordedRequest, ScriptedModel
from exeunt.testing.virtual_time import run_virtual, schedule_seed

__all__ = [
    "EventInvariants",
    "Failing",
    "Gate",
    "InjectedCrash",
    "LoopbackTransport",
    "RecordedRequest",
    "Recorder",
    "Reply",
    "ScriptedModel",
    "Shielded",
    "SilentApprover",
    "Sleepy",
    "SlowSubscriber",
    "StubbornModel",
    "Swallowing",
    "Trace",
    "Traced",
    "after",
    "call",
    "check_request",
    "checked_host",
    "crash_session",
    "describe_messages",
    "fail",
    "hang",
    "raw_call",
    "run_virtual",
    "say",
    "schedule_seed",
    "stream_cut",
    "stream_stall",
]
