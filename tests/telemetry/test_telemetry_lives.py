"""Restarts, resumes and ends of sessions in traces."""

import logging
from collections.abc import Generator
from pathlib import Path

import pytest
import trio
from opentelemetry.trace import StatusCode
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt import (
    HostOptions,
    PendingRequest,
    Session,
    SessionFailed,
    TurnInterrupted,
    leave_pending,
    open_host,
)
from exeunt.actors.events import (
    MessageAccepted,
    Origin,
    SessionResume,
    SessionShutdown,
    ToolExecutionComplete,
    ToolExecutionStart,
    TurnEnd,
    UserMessage,
)
from exeunt.actors.outcomes import Outcome, TurnEndReason
from exeunt.actors.ports import Observer, Tracing
from exeunt.actors.state.snapshot import dump
from exeunt.supervisor import RestartIntensity
from exeunt.testing import ScriptedModel, call, checked_host, crash_session, hang, say
from tests.actors.session_support import open_session, plain_tool
from tests.durability.resume_support import until
from tests.supervisor.restart_support import EXACT
from tests.telemetry.traced import Traces, about, happened, linked, parent_id, seconds, span_id


@pytest.fixture(autouse=True)
def _silence() -> Generator[None]:
    logging.disable(logging.CRITICAL)  # crashes are planned here
    yield
    logging.disable(logging.NOTSET)


async def _nothing() -> str:
    await trio.lowlevel.checkpoint()
    return "done"


async def test_a_crash_ends_the_spans_of_its_turn_and_the_next_turn_is_linked_to_it(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    model = ScriptedModel([call("wait"), say("again")])
    async with checked_host(telemetry=traces.telemetry(), options=EXACT) as host:
        session = await open_session(host, model, plain_tool("wait", trio.sleep_forever))
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(TurnInterrupted):
                    await session.send_and_wait("go")

            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            crash_session(session)
        await session.send_and_wait("and now?")
    traces.check()
    first, second = traces.turns
    assert (first.status.status_code, about(first)["error.type"]) == (StatusCode.ERROR, "interrupted")
    assert ("session.restarted", {"exeunt.restart.epoch": 1}) in happened(first)
    assert about(traces.calls[0])["error.type"] == "interrupted"
    assert linked(second) == [(span_id(first), {"exeunt.link": "interrupted"})]


async def test_a_turn_that_waits_for_people_goes_on_in_its_span_after_a_crash(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    model = ScriptedModel([call("deploy"), say("done")])
    async with checked_host(telemetry=traces.telemetry(), options=EXACT) as host:
        deploy = plain_tool("deploy", _nothing, skip_permission=False)
        session = await open_session(host, model, deploy, on_permission_request=leave_pending)
        await session.send("go")
        await wait_all_tasks_blocked()
        crash_session(session)
        await trio.sleep(5)
        (request,) = session.pending_requests()
        await session.answer(request.request_id, "approved")
        await trio.sleep(1)
    traces.check()
    (turn,), (tool_call,) = traces.turns, traces.calls
    assert about(turn)["exeunt.turn.reason"] == "completed"
    assert seconds(tool_call) == pytest.approx(5.0)


async def test_a_session_that_fails_leaves_no_span_open(autojump_clock: MockClock) -> None:
    traces = Traces()
    options = HostOptions(intensity=RestartIntensity(0, 60.0))
    async with checked_host(telemetry=traces.telemetry(), options=options) as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("go")
        await wait_all_tasks_blocked()
        crash_session(session)
        with pytest.raises(SessionFailed):
            await session.send("again")
    traces.check()
    assert [about(turn)["error.type"] for turn in traces.turns] == ["interrupted"]


async def test_the_first_turn_after_a_resume_is_linked_to_the_last_one_before(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry()) as host:
        session = await open_session(host, ScriptedModel(["one"]))
        await session.send_and_wait("go")
        await session.disconnect()
        session = await host.resume_session(session.session_id, model=ScriptedModel(["two", "three"]))
        await session.send_and_wait("and?")
        await session.send_and_wait("and?")
    traces.check()
    one, two, three = traces.turns
    assert linked(two) == [(span_id(one), {"exeunt.link": "session_resumed"})]
    assert linked(three) == []


async def _until_asked(session: Session) -> PendingRequest:
    await until(session.pending_requests)
    (request,) = session.pending_requests()
    return request


async def test_a_turn_that_a_host_leaves_open_ends_there_and_goes_on_in_the_next(tmp_path: Path) -> None:
    before, after = Traces(), Traces()
    journal = f"sqlite:///{tmp_path / 'journal.sqlite3'}"
    deploy = plain_tool("deploy", _nothing, skip_permission=False)
    async with open_host(telemetry=before.telemetry(), journal=journal) as host:
        model = ScriptedModel([call("deploy")])
        session = await open_session(host, model, deploy, on_permission_request=leave_pending)
        await session.send("go")
        await _until_asked(session)
    before.check()
    (turn,) = before.turns
    assert about(turn)["exeunt.turn.left_open"] is True
    assert turn.status.status_code is StatusCode.UNSET
    async with open_host(telemetry=after.telemetry(), journal=journal) as host:
        session = await host.resume_session(
            session.session_id,
            continue_pending_work=True,
            model=ScriptedModel(["done"]),
            tools=[deploy],
            on_permission_request=leave_pending,
        )
        await session.answer((await _until_asked(session)).request_id, "approved")
        await until(lambda: after.turns)
    after.check()
    (turn,), (tool_call,) = after.turns, after.calls
    assert about(turn)["exeunt.turn.resumed"] is True
    assert about(turn)["exeunt.turn.reason"] == "completed"
    assert about(tool_call)["exeunt.tool.outcome"] == "success"


async def test_what_an_earlier_process_has_left_is_told_as_interrupted(tmp_path: Path) -> None:
    traces = Traces()
    journal = f"sqlite:///{tmp_path / 'journal.sqlite3'}"
    deploy = plain_tool("deploy", _nothing, skip_permission=False)
    async with open_host(journal=journal) as host:
        model = ScriptedModel([call("deploy")])
        session = await open_session(host, model, deploy, on_permission_request=leave_pending)
        await session.send("go")
        await _until_asked(session)
    async with open_host(telemetry=traces.telemetry(), journal=journal) as host:
        await host.resume_session(session.session_id, model=ScriptedModel([]))
    traces.check()
    (turn,), (tool_call,) = traces.turns, traces.calls
    assert about(turn)["error.type"] == about(tool_call)["error.type"] == "interrupted"


@pytest.mark.parametrize("snapshot", [False, True])
async def test_a_message_that_another_process_runs_has_the_parent_of_its_sender(
    snapshot: bool, tmp_path: Path
) -> None:
    before, after = Traces(), Traces()
    journal = f"sqlite:///{tmp_path / 'journal.sqlite3'}"
    parents: list[int] = []
    async with open_host(telemetry=before.telemetry(), journal=journal) as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("busy")
        await until(lambda: session.statistics().phase == "model")
        for prompt in ("one", "two"):
            with before.tracer.start_as_current_span(prompt) as span:
                await session.send(prompt)
            parents.append(span.get_span_context().span_id)
        await session.send("of nobody")
        if snapshot:
            actor = host.find(session.session_id)
            assert actor is not None
            actor.log.snapshot(actor.state.seq, dump(actor.state, actor.origin.event_id(actor.state.seq)))
    async with open_host(telemetry=after.telemetry(), journal=journal) as host:
        model = ScriptedModel(["first", "second", "third"])
        await host.resume_session(session.session_id, continue_pending_work=True, model=model)
        await until(lambda: len(after.turns) == 3)
    after.check()
    assert [parent_id(turn) for turn in after.turns] == [*parents, None]


async def test_a_message_that_waits_through_a_resume_in_the_same_process_keeps_its_parent(
    autojump_clock: MockClock,
) -> None:
    traces = Traces()
    async with checked_host(telemetry=traces.telemetry(), options=EXACT) as host:
        session = await open_session(host, ScriptedModel([hang()]))
        await session.send("busy")
        await wait_all_tasks_blocked()
        with traces.tracer.start_as_current_span("request") as span:
            await session.send("next")
        await session.disconnect()
        await trio.sleep(3)
        session = await host.resume_session(
            session.session_id, continue_pending_work=True, model=ScriptedModel(["done"])
        )
        await trio.sleep(1)
    traces.check()
    assert parent_id(traces.turns[-1]) == span.get_span_context().span_id


class HostWithoutSessions:
    """A host whose sessions another host has taken over: they are gone, and no event says so."""

    tracing: Tracing | None = None

    def observe(self, observer: Observer) -> None:
        """Take an observer, and tell it nothing."""

    def find(self, session_id: str, /) -> None:
        """Find nothing."""


def test_spans_of_sessions_that_left_without_a_word_are_ended_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exeunt.telemetry.telemetry.SWEEP_FROM", 2)
    traces, origin = Traces(), Origin.fresh()
    telemetry = traces.telemetry()
    telemetry.attach(HostWithoutSessions())
    for name in ("one", "two", "three"):
        telemetry.observe(name, [UserMessage(origin, 1, 5.0, "hi", "t", "m", "idle")])
    assert telemetry.statistics().open_sessions == 1
    assert telemetry.statistics().left_open == 2
    assert [about(turn)["exeunt.turn.left_open"] for turn in traces.turns] == [True, True]


def test_a_session_that_leaves_takes_its_open_spans_along() -> None:
    traces, origin = Traces(), Origin.fresh()
    telemetry = traces.telemetry()
    telemetry.attach(HostWithoutSessions())
    telemetry.observe(
        "one",
        [
            UserMessage(origin, 1, 5.0, "hi", "t", "m", "idle"),
            ToolExecutionStart(origin, 2, 6.0, "c", "deploy", "{}", "t"),
            MessageAccepted(origin, 3, 7.0, "n", "enqueue", "and"),
        ],
    )
    telemetry.observe("one", [SessionShutdown(origin, 4, 9.0, "host")])
    assert telemetry.statistics().open_sessions == 0
    assert [span.end_time for span in traces.spans] == [9_000_000_000] * 2
    traces.check()


def test_a_call_that_a_turn_leaves_open_ends_with_it() -> None:
    traces, origin = Traces(), Origin.fresh()
    telemetry = traces.telemetry()
    telemetry.attach(HostWithoutSessions())
    telemetry.observe("one", [ToolExecutionStart(origin, 2, 6.0, "c", "deploy", "{}", "t")])
    telemetry.observe("one", [TurnEnd(origin, 3, 8.0, "t", TurnEndReason.INTERRUPTED, 0, 1, 2.0)])
    assert len(traces.calls) == len(traces.turns) == 1
    traces.check()


def test_calls_of_an_earlier_activation_lie_within_the_span_that_their_turn_gets_here() -> None:
    traces, origin = Traces(), Origin.fresh()
    telemetry = traces.telemetry()
    telemetry.attach(HostWithoutSessions())
    ends = [
        ToolExecutionComplete(origin, 5, 100.0, "a", "deploy", Outcome.SUCCESS, "", "t", 1.0),
        ToolExecutionComplete(origin, 6, 100.0, "b", "deploy", Outcome.INTERRUPTED, "", "t", 90.0),
        TurnEnd(origin, 7, 100.0, "t", TurnEndReason.INTERRUPTED, 0, 1, 2.0),
    ]
    telemetry.observe("one", ends)
    assert len(traces.calls) == 2
    traces.check()


def test_a_session_that_comes_back_to_this_host_ends_what_it_had_left_open() -> None:
    traces = Traces()
    telemetry = traces.telemetry()
    telemetry.attach(HostWithoutSessions())
    telemetry.observe("one", [UserMessage(Origin.fresh(), 1, 5.0, "hi", "t", "m", "idle")])
    telemetry.observe("one", [SessionResume(Origin.fresh(None, 7), 7, 9.0, 6)])
    assert [about(turn)["exeunt.turn.left_open"] for turn in traces.turns] == [True]
    traces.check()


async def test_detaching_ends_what_is_open_and_traces_no_more(autojump_clock: MockClock) -> None:
    traces = Traces()
    telemetry = traces.telemetry()
    async with checked_host(telemetry=telemetry, settled=False) as host:
        session = await open_session(host, ScriptedModel([hang(), "more"]))
        await session.send("go")
        await wait_all_tasks_blocked()
        telemetry.detach()
        assert host.tracing is None
        traces.check()
        assert about(traces.turns[0])["exeunt.turn.left_open"] is True
        await session.abort()
        await session.send_and_wait("again")
    assert len(traces.turns) == 1


async def test_only_so_many_last_turns_are_remembered(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exeunt.telemetry.telemetry.REMEMBERED", 1)
    traces = Traces()
    telemetry = traces.telemetry()
    async with checked_host(telemetry=telemetry) as host:
        sessions = [await open_session(host, ScriptedModel(["one"])) for _ in range(2)]
        for session in sessions:
            await session.send_and_wait("go")
        for session in reversed(sessions):
            await session.disconnect()
            again = await host.resume_session(session.session_id, model=ScriptedModel(["two"]))
            await again.send_and_wait("and?")
    traces.check()
    assert [len(linked(turn)) for turn in traces.turns[2:]] == [1, 0]
    assert telemetry.statistics().forgotten == 2
