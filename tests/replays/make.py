"""Writes records of this version's logs: `python -m tests.replays.make 0.1`. Those that are there stay as they are.

To be run when the logs have something new in them, under the number of the release that writes it first.
"""

import sys
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import trio

from exeunt import (
    Media,
    RetryPolicy,
    Session,
    SessionHost,
    Tool,
    ToolInvocation,
    approve_all,
    ask_user_tool,
    leave_pending,
    open_host,
    tool,
)
from exeunt.actors.events import SessionInfo, SessionModeChanged, SessionModelChange, SessionTitleChanged
from exeunt.actors.events.codec import PERSISTED
from exeunt.actors.state.snapshot import dump
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.journal.slices import seal
from exeunt.supervisor.options import HostOptions
from exeunt.supervisor.restarts import RestartIntensity
from exeunt.testing import Gate, ScriptedModel, call, crash_session, fail, raw_call, say
from exeunt.testing.faulty_store import MemoryStore
from exeunt.testing.journal_events import TEXT, every_event
from exeunt.testing.journals import running_journal
from exeunt.testing.replies import Call, Say
from tests.actors.clear_support import settled
from tests.actors.media_support import NOTES, PAPER, PIXEL
from tests.durability.resume_support import until
from tests.replays.records import FOLDER, Record, record

SESSION = "hamlet"

Play = Callable[[SessionHost, MemoryStore], Awaitable[None]]


@tool
async def read(line: int = 1) -> str:
    """Read a line."""
    return f"line {line}"


@tool
async def broken() -> str:
    """Break."""
    raise RuntimeError("it broke")


@tool(timeout=0.01)
async def slow() -> str:
    """Take too long."""
    await trio.sleep_forever()
    raise AssertionError


@tool(is_terminal=True)
async def submit() -> str:
    """Hand in."""
    return "handed in"


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Start a new context."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


@tool
async def clear_softly(prompt: str, invocation: ToolInvocation) -> str:
    """Start a new context, without ending the turn."""
    await invocation.session.history.clear_context(prompt)
    return "cleared"


def tool_at(gate: Gate, name: str, **flags: Any) -> Tool[..., Any]:
    @tool(name, **flags)
    async def waiting() -> str:
        """Wait."""
        return await gate()

    return waiting


async def create(host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **options: Any) -> Session:
    options.setdefault("on_permission_request", approve_all)
    return await host.create_session(
        session_id=SESSION,
        model=model,
        tools=tools,
        system_message="You are terse.",
        developer_messages=["Be kind.", TEXT],
        retries=RetryPolicy(attempts=0),
        **options,
    )


async def outcomes(host: SessionHost, _: MemoryStore) -> None:
    """A turn with every outcome of a tool, hooks that add and change, an answer with reasoning, a failed request."""

    def decide(asked: Any, invocation: Any) -> Any:
        return {"kind": "reject", "feedback": "not now"} if asked.tool_name == "submit" else "approve-once"

    def before(hook_input: Any, invocation: Any) -> Any:
        if hook_input.tool_name == "clear_context":
            return {"permission_decision": "deny", "permission_decision_reason": "no clears"}
        if hook_input.tool_args == {"line": 2}:
            return {"modified_args": {"line": 3}, "additional_context": "Line 2 was cut."}
        return None

    batch: list[Say | Call | str] = [
        say(f"let me see {TEXT}", reasoning="all of them"),
        *(call("read"), call("read", line=2), call("broken"), call("slow"), call("submit"), call("unknown")),
        *(raw_call("read", '{"line": "x"}'), call("clear_context", prompt="anew")),
    ]
    model = ScriptedModel([batch, say("so that is that", reasoning="hm"), fail("bad_request", status=400)])
    tools = (read, broken, slow, submit, clear_context)
    session = await create(
        host, model, *tools, on_permission_request=decide, on_pre_tool_use=before, tenant="globe"
    )
    await session.send(TEXT)
    await settled(session)
    await session.send("and once more")
    await settled(session)
    await session.call_tool("read", {"line": 4})


async def clears(host: SessionHost, _: MemoryStore) -> None:
    """Clears by terminal and other tools, by the host, with messages that steer and queue meanwhile; an abort."""
    gate = Gate()
    first = [call("clear_context", prompt=f"Act 2. {TEXT}"), call("wait")]
    model = ScriptedModel(
        [
            first,
            "act 2 it is",
            "queued is answered",
            call("clear_softly", prompt="Act 3."),
            call("submit"),
            "act 4",
        ],
        default=call("wait"),
    )
    session = await create(host, model, clear_context, clear_softly, submit, tool_at(gate, "wait"))
    await session.send("begin")
    await gate.entered()
    await session.send("a message that steers", "immediate")
    await session.send("a message that waits")
    gate.open()
    await settled(session)
    await session.send_and_wait("clear softly")
    await session.call_tool("clear_context", {"prompt": "Act 4."})
    await settled(session)
    gate.close()
    await session.send("to be aborted")
    await gate.entered(2)
    await session.send("to be dropped")
    await session.abort()


async def cut_off(host: SessionHost, store: MemoryStore) -> None:
    """A log that ends in the middle: calls open, one for want of an approval, messages that steer and wait."""
    gate = Gate()

    async def decide(asked: Any, invocation: Any) -> Any:
        if asked.tool_name == "submit":
            await Gate()()
        return "approve-once"

    model = ScriptedModel(
        ["hi", [say("all at once"), call("read"), call("wait"), call("look"), call("submit")]]
    )
    tools = (read, submit, tool_at(gate, "wait"), tool_at(gate, "look", idempotent=True))
    session = await create(host, model, *tools, on_permission_request=decide)
    await session.send_and_wait("hello")
    await session.send("work")
    await gate.entered(2)
    await session.send("a message that steers", "immediate")
    await session.send("first in the queue")
    await session.send("second in the queue")


async def taken_up(host: SessionHost, store: MemoryStore) -> None:
    """Three activations: one that ended in order, one that was crashed in, and one that goes on with a queue."""
    gate = Gate()
    wait = tool_at(gate, "wait")
    model = ScriptedModel(
        ["hi", call("wait"), call("clear_context", prompt="anew"), "fresh"], default=say("well")
    )
    session = await create(host, model, wait, clear_context)
    await session.send_and_wait("hello")
    await session.send("to be cut off")
    await gate.entered()
    await session.send("to wait")
    await session.disconnect()
    session = await host.resume_session(SESSION, continue_pending_work=True)
    await settled(session)
    crash_session(session)
    await settled(session)
    await session.disconnect()
    session = await host.resume_session(SESSION)
    await session.send_and_wait("still there?")


async def people(host: SessionHost, store: MemoryStore) -> None:
    """Questions and approvals, the last of them open; a handoff, a summary, and what the host noted."""
    asks = [call("ask_user", question=TEXT, choices=["left", "right"]), call("submit")]
    model = ScriptedModel(
        [
            *asks,
            "so far",
            "well",
            [call("ask_user", question="And now?", allow_freeform=True), call("deploy")],
        ]
    )
    session = await create(
        host,
        model,
        ask_user_tool(),
        submit,
        tool_at(Gate(), "deploy", approval_timeout=86_400),
        on_permission_request=leave_pending,
        on_user_input_request=leave_pending,
    )
    await session.send("begin")
    await session.answer(await asked(session), "left")
    await session.answer(await asked(session), "approved")
    await settled(session)
    await session.send_and_wait("hello")
    session.record_handoff("sent", session_id="claudius", message_id="m-1", detail=TEXT)
    statistics = session.statistics()
    await session.history.compact(f"They spoke. {TEXT}", messages=3, generation=statistics.generation)
    (actor,) = host.actors()
    actor.record(SessionTitleChanged, TEXT)
    actor.record(SessionInfo, "notification", TEXT, "warning", "https://elsinore.example")
    actor.record(SessionModeChanged, "interactive", "plan")
    actor.record(SessionModelChange, "another", "fake", "high")
    await session.send_and_wait("and again")
    await session.send("ask")
    await asked(session, 2)


async def asked(session: Session, number: int = 1) -> str:
    """Return the id of the first request to people, once there are so many."""
    await until(lambda: len(session.pending_requests()) >= number)
    return session.pending_requests()[0].request_id


async def failed(host: SessionHost, store: MemoryStore) -> None:
    """A session that crashed too often, with messages in its queue."""
    gate = Gate()
    session = await create(host, ScriptedModel([call("wait")]), tool_at(gate, "wait"))
    await session.send("work")
    await gate.entered()
    await session.send("to be dropped")
    for _ in range(4):
        crash_session(session)
        await trio.sleep(0.2)
    assert session.statistics().status == "failed"


async def truncated(host: SessionHost, store: MemoryStore) -> None:
    """A conversation that went back: within a context, and behind a clear."""
    model = ScriptedModel(
        ["hi", [call("read")], "read it", "gone", call("clear_context", prompt="Act 2."), "act 2"],
        default=say(f"well {TEXT}"),
    )
    session = await create(host, model, read, clear_context)
    for text in ("hello", "read", "to be taken back"):
        await session.send_and_wait(text)
    ends = [event for event in await session.get_events() if event.type == "turn.end"]
    await session.history.truncate(ends[1].id)
    await session.send_and_wait("clear")
    await settled(session)
    await session.history.truncate(ends[0].id)
    await session.send_and_wait("again from there")


async def pictures(host: SessionHost, store: MemoryStore) -> None:
    """Attachments and results that show something; the oldest have left the context, and more wait."""
    gate = Gate()

    @tool
    async def draw() -> list[str | Media]:
        """Draw."""
        return ["drawn", PIXEL]

    model = ScriptedModel([call("draw"), "nice", call("draw"), call("wait")])
    session = await create(host, model, draw, tool_at(gate, "wait"), media_limits={"session": 250})
    await session.send_and_wait(TEXT, attachments=[PAPER, NOTES])
    await session.send("and another", attachments=[Media("text/plain", TEXT.encode(), TEXT)])
    await gate.entered()
    await session.send("to wait", attachments=[PIXEL])


async def played(play: Play) -> Record:
    """Return the record of what *play* does, as it is stored when that is done and nothing has been ended."""
    store = MemoryStore()
    kept: list[Record] = []
    options = HostOptions(intensity=RestartIntensity(2))
    async with open_host(journal=DurableJournal(store), options=options) as host:
        await play(host, store)
        (actor,) = host.actors()
        await actor.log.wait_durable(actor.state.seq)
        await trio.sleep(0.1)  # the snapshot follows
        last = (await actor.log.read())[-1]
        snapshot = store.read_snapshot(SESSION) or (last.seq, seal(dump(actor.state, last.id)))
        about = (play.__doc__ or "").strip()
        kept.append(record(about, store.read(SESSION, 1), snapshot))
    return kept[0]


async def kinds(new: Collection[str]) -> Record:
    """Return a record with an event of each of the *new* kinds, all fields given, then with defaults."""
    store = MemoryStore()
    async with running_journal(store) as journal:
        for number, defaults in enumerate((False, True)):
            log = await journal.create(f"{SESSION} {number}")
            events = every_event(f"{SESSION} {number}", defaults=defaults, only=new)
            log.append(events)
            await log.wait_durable(len(events))
    slices = [*store.read(f"{SESSION} 0", 1), *store.read(f"{SESSION} 1", 1)]
    return record(
        "An event of each kind: all fields given, then as few as may be.", slices, None, whole=False
    )


async def main(version: str) -> None:
    """Write the records that are not there yet, and one of the kinds of events that are in none."""
    for play in (outcomes, clears, cut_off, taken_up, people, failed, truncated, pictures):
        path = FOLDER / f"{version}-{play.__name__}.jsonl"
        if not path.exists():
            write(path, await played(play))
    before = sorted(FOLDER.glob("*-every_kind*.jsonl"))
    known = {event["type"] for path in before for event in Record.read(path).events}
    new = {kind.type for kind in PERSISTED} - known
    if new:
        write(FOLDER / f"{version}-every_kind_{len(before) + 1}.jsonl", await kinds(new))


def write(path: Path, made: Record) -> None:
    made.write(path)
    print(f"{path.name}: {len(made.events)} events")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
