"""A session of another process can do what a session can, with what it is given, and what it cannot do is listed."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest
import trio

from exeunt import (
    ApproveOnce,
    History,
    InvalidAnswer,
    InvalidConfiguration,
    InvalidMedia,
    LimitDecision,
    Media,
    PermissionRequest,
    Reject,
    RemoteHistory,
    RemoteSession,
    RequestNotPending,
    Session,
    SessionLimitsExhaustedRequest,
    TransportLost,
    UserInputRequest,
    UserInputResponse,
    answer_request,
    ask_user_tool,
    leave_pending,
    tool,
)
from exeunt.actors.events import MessageAccepted, UserMessage
from exeunt.telemetry import Telemetry
from exeunt.testing import LoopbackTransport, ScriptedModel, call, checked_host, hang, say
from tests.actors.session_support import open_session
from tests.actors.test_remote_session import remote_session
from tests.telemetry.traced import Traces, parent_id

PICTURE = Media("image/png", b"\x89PNG and more", "a cat")

ONLY_AT_HAND = {
    "tenant": "a property answers at once; statistics() has it",
    "send_now": "it promises to wait for nothing, and the answer of another process has to be waited for",
    "on": "a callback is called while the session acts; events() brings the same events",
    "ask_user": "only a handler of a tool call of the session may ask, and that is where the actor is",
    "record_handoff": "for the policies of the host where the actor is",
}
"""What a `Session` has and a `RemoteSession` does not, and why."""

OTHER_PARAMETERS = {
    "events": "the buffer is that of the other side",
}

ONLY_THE_REFUSAL = (
    "the conversation is elsewhere: get_events() tells it, and clears belong to tool calls there"
)


def public(owner: type) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}


def test_a_remote_session_has_what_a_session_has_but_for_what_is_listed() -> None:
    there, here = public(Session), public(RemoteSession)
    assert there.keys() - here.keys() == ONLY_AT_HAND.keys()
    assert here.keys() <= there.keys()
    assert public(RemoteHistory).keys() <= public(History).keys(), ONLY_THE_REFUSAL


@pytest.mark.parametrize(
    "name", sorted(public(RemoteSession).keys() - OTHER_PARAMETERS.keys() - {"history", "session_id"})
)
def test_a_method_of_a_remote_session_takes_and_gives_what_that_of_a_session_does(name: str) -> None:
    def shape(function: Callable[..., Any]) -> tuple[list[tuple[str, Any, Any]], dict[str, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(one.name, one.kind, one.default) for one in found], typing.get_type_hints(function)

    assert shape(getattr(RemoteSession, name)) == shape(getattr(Session, name))
    assert inspect.iscoroutinefunction(getattr(RemoteSession, name))


async def test_a_message_arrives_with_all_that_it_was_given(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang(), say("seen"), say("done")])) as (remote, _, session):
        await remote.send("busy")
        await trio.sleep(1)
        await remote.send("second")
        await remote.send("first", attachments=[PICTURE], first=True, note={"from": "afar"})
        waiting = await remote.pending_messages()
        assert waiting == session.pending_messages()
        assert [(item.prompt, item.media) for item in waiting] == [("first", (PICTURE,)), ("second", ())]
        accepted = [event for event in await session.get_events() if isinstance(event, MessageAccepted)]
        assert accepted[-1].note == {"from": "afar"}
        await remote.abort("keep")
        await trio.sleep(1)
        taken = [event.content for event in await remote.get_events() if isinstance(event, UserMessage)]
        assert taken == ["busy", "first", "second"]
        assert list(await remote.get_events(3)) == list(await session.get_events(3))


async def test_what_cannot_be_sent_is_refused_here(autojump_clock: None) -> None:
    wrong: Any = "a picture"
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        for refused in (
            lambda: remote.send("x", attachments=wrong),
            lambda: remote.send_and_wait("x", attachments=[wrong]),
        ):
            with pytest.raises(InvalidMedia):
                await refused()
        for refuse in (
            lambda: remote.send("x", note={"a": object()}),
            lambda: remote.call_tool(""),
            lambda: remote.call_tool("t", {"a": object()}),
            lambda: remote.get_events(0),
            lambda: remote.limit_credits(-1),
        ):
            with pytest.raises(InvalidConfiguration):
                await refuse()
        with pytest.raises(InvalidAnswer, match="another process"):
            await remote.answer("r", object())
        assert transport.requests == []


async def test_a_message_that_waits_can_be_taken_back(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang()])) as (remote, _, _):
        await remote.send("busy")
        await trio.sleep(1)
        message_id = await remote.send("never mind")
        assert [await remote.withdraw(message_id) for _ in range(2)] == [True, False]
        assert await remote.pending_messages() == ()


async def test_a_caller_that_is_cancelled_may_take_its_turn_with_it(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([hang(), hang()])) as (remote, _, session):
        for aborts in (True, False):
            with trio.move_on_after(1):
                await remote.send_and_wait("go", timeout=None, abort_on_cancel=aborts)
            await trio.sleep(1)
            assert session.statistics().phase == ("idle" if aborts else "model")


@tool
async def write(text: str) -> str:
    """Write something down."""
    return f"wrote {text}"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (ApproveOnce(), "success"),
        ("approve-once", "success"),
        (Reject("not now"), "rejected"),
        ({"kind": "reject"}, "rejected"),
    ],
)
async def test_an_approval_is_asked_for_and_given_from_afar(
    answer: Any, outcome: str, autojump_clock: None
) -> None:
    model = ScriptedModel([call("write", text="it"), "done"])
    async with remote_session(model, tools=[write], on_permission_request=leave_pending) as (
        remote,
        _,
        session,
    ):
        await remote.send("write")
        await trio.sleep(1)
        (request,) = await remote.pending_requests()
        assert (request,) == session.pending_requests()
        assert isinstance(request.request, PermissionRequest)
        assert request.request.arguments == {"text": "it"}
        with pytest.raises(InvalidAnswer):
            await remote.answer(request.request_id, "perhaps")
        await remote.answer(request.request_id, answer)
        with pytest.raises(RequestNotPending):
            await remote.answer(request.request_id, answer)
        await trio.sleep(1)
        assert await remote.pending_requests() == ()
        done = [event for event in await remote.get_events() if event.type == "tool.execution_complete"]
        assert [event.payload()["outcome"] for event in done] == [outcome]


async def test_a_question_is_answered_from_afar(autojump_clock: None) -> None:
    model = ScriptedModel([call("ask_user", question="Which?", choices=["a", "b"]), "done"])
    async with remote_session(model, tools=[ask_user_tool()], on_user_input_request=leave_pending) as (
        remote,
        _,
        _,
    ):
        await remote.send("ask")
        await trio.sleep(1)
        (request,) = await remote.pending_requests()
        assert isinstance(request.request, UserInputRequest)
        assert request.request.choices == ("a", "b")
        await remote.answer(request.request_id, UserInputResponse("b", False))
        await trio.sleep(1)
        assert "User selected: b" in model.requests[-1].results.values()


async def test_credits_are_limited_asked_for_and_added_from_afar(autojump_clock: None) -> None:
    model = ScriptedModel([say("one"), say("two")])
    options: dict[str, Any] = {
        "prices": {"ScriptedModel": {"request": 10}},
        "on_session_limits_exhausted": leave_pending,
    }
    async with remote_session(model, **options) as (remote, _, _):
        await remote.send_and_wait("one")
        spent = (await remote.statistics()).credits_spent
        assert spent > 0
        await remote.limit_credits(spent)
        await remote.send("two")
        await trio.sleep(1)
        (request,) = await remote.pending_requests()
        assert isinstance(request.request, SessionLimitsExhaustedRequest)
        await remote.answer(request.request_id, LimitDecision("add", spent))
        await trio.sleep(1)
        assert (await remote.statistics()).credit_limit == 2 * spent
        assert (await remote.get_events())[-1].type == "turn.end"


async def test_a_tool_is_called_from_afar(autojump_clock: None) -> None:
    @tool(skip_permission=True)
    async def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    async with remote_session(ScriptedModel([]), tools=[add]) as (remote, _, _):
        done = await remote.call_tool("add", {"a": 1, "b": 2})
        assert (done.tool_name, done.outcome, done.content) == ("add", "success", "3")
        assert (await remote.call_tool("add", '{"a": "x"}')).outcome == "invalid"


async def test_a_session_is_disconnected_from_afar(autojump_clock: None) -> None:
    async with remote_session(ScriptedModel([])) as (remote, _, session):
        with pytest.raises(InvalidConfiguration, match="disconnect"):
            await remote.disconnect(reason="host")
        await remote.disconnect(reason="enough")
        assert session.statistics().status == "closed"
        assert (await session.get_events())[-1].payload() == {"reason": "enough"}


async def test_a_message_takes_the_trace_of_its_sender_along(autojump_clock: None) -> None:
    near_traces, far_traces = Traces(), Traces()
    far_telemetry: Telemetry = far_traces.telemetry()
    async with (
        checked_host(telemetry=far_telemetry) as far,
        checked_host(telemetry=near_traces.telemetry()) as near,
    ):
        await open_session(far, ScriptedModel(["one", "two"]), session_id="s")
        remote = near.attach_remote("s", LoopbackTransport(far))
        with near_traces.tracer.start_as_current_span("request") as span:
            await remote.send_and_wait("one")
            await remote.send("two", note={"mine": 1})
        await trio.sleep(1)
    assert [parent_id(turn) for turn in far_traces.turns] == [span.get_span_context().span_id] * 2


@pytest.mark.parametrize(
    ("answer", "ask"),
    [
        ([{"kind": "permission"}], "pending_requests"),
        ([{"kind": "mood"}], "pending_requests"),
        ({}, "pending_requests"),
        ([{"type": "mood"}], "get_events"),
        ("yes", "withdraw"),
        ([7], "pending_messages"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_as_good_as_lost(
    answer: Any, ask: str, autojump_clock: None
) -> None:
    async with remote_session(ScriptedModel([])) as (remote, transport, _):
        transport.answer_next({"result": answer})
        arguments = ["m"] if ask == "withdraw" else []
        with pytest.raises(TransportLost):
            await getattr(remote, ask)(*arguments)


async def test_a_request_that_is_not_of_the_protocol_is_answered_with_an_error(autojump_clock: None) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([]))
        for method, params, name in (
            ("dance", {}, "InvalidConfiguration"),
            ("send", {}, "InvalidConfiguration"),
            ("send", {"prompt": "x", "mode": "enqueue", "attachments": [{"data": 7}]}, "InvalidMedia"),
            ("send", {"prompt": 7, "mode": "enqueue"}, "InvalidPrompt"),
        ):
            answer = await answer_request(session, method, params)
            assert answer["error"]["type"] == name
        assert "result" in await answer_request(session, "statistics", {"more": "than is known"})
