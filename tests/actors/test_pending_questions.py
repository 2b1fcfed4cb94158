"""Questions to the user: who may ask, who answers, and how long that takes."""

from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from exeunt import (
    HostOptions,
    InvalidConfiguration,
    NotInToolCall,
    Session,
    ToolInvocation,
    UserInputRequest,
    UserInputResponse,
    UserInputTimeout,
    UserInputUnavailable,
    Waits,
    ask_user_tool,
    leave_pending,
    tool,
)
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.actors.pending_support import open_session, paint, pending, told
from tests.actors.session_support import begin, outcomes, tool_of

ASK = ask_user_tool()


async def test_the_ready_made_tool_asks_in_the_model_s_words(autojump_clock: MockClock) -> None:
    asked: list[Any] = []

    def handler(request: UserInputRequest, invocation: Any) -> dict[str, Any]:
        asked.append((request, invocation.tool_call_id))
        return {"answer": "blue", "wasFreeform": False}

    model = ScriptedModel(
        [
            call("ask_user", question="Which?", choices=["red", "blue"], allow_freeform=False),
            call("ask_user", question="Why?"),
            say("done"),
        ]
    )
    async with checked_host() as host:
        session = await open_session(host, model, ASK, on_user_input_request=handler)
        await session.send_and_wait("go")
        assert asked == [
            (UserInputRequest("Which?", ("red", "blue"), allow_freeform=False), "call_1"),
            (UserInputRequest("Why?"), "call_2"),
        ]
        assert model.requests[2].results == {"call_1": "User selected: blue", "call_2": "User selected: blue"}
        assert await told(session) == [("user_input", "answered")] * 2
    model.verify()


def test_the_ready_made_tool_can_be_named_and_described() -> None:
    made = ask_user_tool(name="ask", description="Ask.", timeout=5)
    assert (made.name, made.description, made.idempotent, made.skip_permission) == ("ask", "Ask.", True, True)
    assert set(made.definition.parameters["properties"]) == {"question", "choices", "allow_freeform"}
    assert made.definition.parameters["required"] == ["question"]


async def test_a_text_of_the_handler_is_an_answer(autojump_clock: MockClock) -> None:
    async def handler(request: Any, invocation: Any) -> str:
        await trio.sleep(1)
        return "mauve"

    model = ScriptedModel([call("paint"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, paint, on_user_input_request=handler)
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "User responded: mauve"}


async def test_without_a_handler_nobody_can_be_asked(autojump_clock: MockClock) -> None:
    async def ask(invocation: ToolInvocation) -> str:
        with pytest.raises(UserInputUnavailable, match="leave_pending"):
            await invocation.ask_user("Which?")
        return "asked"

    model = ScriptedModel([[call("ask"), call("ask_user", question="Which?")], say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("ask", ask), ASK, on_user_input_request=None)
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "asked", "call_2": "The user cannot be asked."}
        assert await outcomes(session) == [("ask", "success"), ("ask_user", "failure")]
        assert await told(session) == []


@pytest.mark.parametrize("answer", [RuntimeError("broken"), None, 7, "green"])
async def test_a_handler_that_fails_leaves_the_question_without_an_answer(
    autojump_clock: MockClock, answer: Any
) -> None:
    def handler(request: Any, invocation: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(invocation: ToolInvocation) -> str:
        with pytest.raises(UserInputUnavailable) as caught:
            await invocation.ask_user("Which?", ["red"], allow_freeform=False)
        assert caught.value.__cause__ is not None
        return "asked"

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("ask", ask), on_user_input_request=handler)
        await session.send_and_wait("go")
        assert await outcomes(session) == [("ask", "success")]
        assert await told(session) == [("user_input", "unavailable")]


async def test_each_question_has_its_own_time(autojump_clock: MockClock) -> None:
    times: dict[str, float] = {}

    async def ask(invocation: ToolInvocation, name: str, seconds: float | None) -> None:
        began = trio.current_time()
        with pytest.raises(UserInputTimeout):
            await invocation.ask_user(f"{name}?", timeout=seconds)
        times[name] = trio.current_time() - began

    async def all_at_once(invocation: ToolInvocation) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, invocation, "short", 10)
            nursery.start_soon(ask, invocation, "long", 86_400)
            nursery.start_soon(ask, invocation, "default", None)
        return "asked"

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host:
        session = await open_session(
            host, model, tool_of("ask", all_at_once, timeout=30), waits=Waits(user_input=600)
        )
        await session.send_and_wait("go", None)
        assert times == pytest.approx({"short": 10, "default": 600, "long": 86_400}, abs=0.1)
        assert await outcomes(session) == [("ask", "success")]
        assert await told(session) == [("user_input", "timeout")] * 3


async def test_the_ready_made_tool_says_that_nobody_answered(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("ask_user", question="Which?"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, ask_user_tool(timeout=5))
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "The user did not answer in time."}
        assert await outcomes(session) == [("ask_user", "timeout")]


async def test_the_handler_s_own_time_goes_on_after_the_answer(autojump_clock: MockClock) -> None:
    async def ask(invocation: ToolInvocation) -> None:
        await trio.sleep(6)
        await invocation.ask_user("Which?")
        await trio.sleep_forever()

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, tool_of("ask", ask, timeout=10))
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await trio.sleep(1_000)
        answered = trio.current_time()
        await session.answer(request.request_id, "red")
        await turn.wait()
        assert trio.current_time() - answered == pytest.approx(4, abs=0.1)
        assert await outcomes(session) == [("ask", "timeout")]


async def test_a_question_whose_task_is_cancelled_is_withdrawn(autojump_clock: MockClock) -> None:
    async def ask(invocation: ToolInvocation) -> str:
        with trio.move_on_after(5):
            await invocation.ask_user("Which?")
        assert invocation.session.pending_requests() == ()
        return "gave up"

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("ask", ask))
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "gave up"}
        assert await told(session) == [("user_input", "cancelled")]


@pytest.mark.parametrize("how", ["abort", "disconnect"])
async def test_an_end_of_the_turn_ends_what_it_asks(autojump_clock: MockClock, how: str) -> None:
    model = ScriptedModel([[call("paint"), call("ask_user", question="Why?")]])
    async with checked_host() as host:
        session = await open_session(host, model, paint, ASK)
        await session.send("go")
        requests = await pending(session, 2)
        await getattr(session, how)()
        assert session.pending_requests() == ()
        assert {request.kind for request in requests} == {"user_input"}
        assert await told(session) == [("user_input", "cancelled")] * 2
        assert sorted(await outcomes(session)) == [("ask_user", "cancelled"), ("paint", "cancelled")]


async def test_a_synchronous_handler_asks_from_its_thread() -> None:
    @tool(skip_permission=True)
    def paint_slowly(invocation: ToolInvocation) -> str:
        """Paint it."""
        return invocation.run(invocation.ask_user, "Which?", ["red"]).text

    model = ScriptedModel([call("paint_slowly"), say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, paint_slowly)
        turn = begin(nursery, session.send_and_wait, "go", None)
        (request,) = await pending(session)
        await session.answer(request.request_id, "red")
        await turn.wait()
        assert model.requests[1].results == {"call_1": "User selected: red"}


async def test_a_question_leaves_its_slots_to_others(autojump_clock: MockClock) -> None:
    one = HostOptions(running_turns=1, tool_slots=1)
    async with checked_host(options=one) as host, trio.open_nursery() as nursery:
        asking = await open_session(host, ScriptedModel([call("paint"), say("painted")]), paint)
        turn = begin(nursery, asking.send_and_wait, "go", None)
        (request,) = await pending(asking)
        other = await open_session(host, ScriptedModel([call("look"), say("seen")]), tool_of("look", _look))
        assert (await other.send_and_wait("go")).content == "seen"
        await asking.answer(request.request_id, "red")
        assert (await turn.wait()).value.content == "painted"


async def _look(invocation: ToolInvocation) -> str:
    await trio.sleep(1)
    return "seen"


async def test_only_a_running_call_of_the_session_may_ask(autojump_clock: MockClock) -> None:
    kept: list[ToolInvocation] = []

    async def keep(invocation: ToolInvocation) -> str:
        kept.append(invocation)
        with pytest.raises(NotInToolCall):
            await other.ask_user("Which?")
        return "kept"

    model = ScriptedModel([call("keep"), say("done")])
    async with checked_host() as host:
        other = await open_session(host, ScriptedModel([]))
        session: Session = await open_session(host, model, tool_of("keep", keep))
        with pytest.raises(NotInToolCall):
            await session.ask_user("Which?")
        await session.send_and_wait("go")
        assert await outcomes(session) == [("keep", "success")]
        with pytest.raises(NotInToolCall):
            await kept[0].ask_user("Which?")
        assert await told(session) == []


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("", {}),
        ("  ", {}),
        (7, {}),
        ("Which?", {"choices": "red"}),
        ("Which?", {"choices": [""]}),
        ("Which?", {"choices": 7}),
        ("Which?", {"choices": [7]}),
        ("Which?", {"allow_freeform": False}),
        ("Which?", {"allow_freeform": "no"}),
        ("Which?", {"timeout": 0}),
        ("Which?", {"timeout": float("inf")}),
        ("Which?", {"timeout": "5"}),
    ],
)
async def test_a_question_that_nobody_could_be_asked_is_refused(
    autojump_clock: MockClock, question: Any, options: dict[str, Any]
) -> None:
    async def ask(invocation: ToolInvocation) -> str:
        with pytest.raises(InvalidConfiguration):
            await invocation.ask_user(question, **options)
        return "refused"

    model = ScriptedModel([call("ask"), say("done")])
    async with checked_host() as host:
        session = await open_session(host, model, tool_of("ask", ask))
        await session.send_and_wait("go")
        assert model.requests[1].results == {"call_1": "refused"}
        assert await told(session) == []


async def test_options_are_checked_when_the_session_is_made() -> None:
    async with checked_host() as host:
        with pytest.raises(InvalidConfiguration, match="on_user_input_request"):
            await host.create_session(model=ScriptedModel([]), on_user_input_request=cast("Any", "yes"))
        with pytest.raises(InvalidConfiguration, match="user_input"):
            await host.create_session(model=ScriptedModel([]), waits={"user_input": -1})
        for seconds in (0, -1, float("inf"), True, "5"):
            with pytest.raises(InvalidConfiguration, match="approval_timeout"):
                tool("x", approval_timeout=seconds)(_look)  # type: ignore[arg-type]


async def test_an_approval_may_have_the_tool_s_own_time(autojump_clock: MockClock) -> None:
    async def deploy(invocation: ToolInvocation) -> str:
        return "deployed"

    patient = tool_of("deploy", deploy, skip_permission=False, approval_timeout=86_400 * 3)
    hasty = tool_of("tidy", deploy, skip_permission=False, approval_timeout=5)
    model = ScriptedModel([[call("deploy"), call("tidy")], say("done")])
    async with checked_host() as host, trio.open_nursery() as nursery:
        session = await open_session(host, model, patient, hasty, on_permission_request=leave_pending)
        turn = begin(nursery, session.send_and_wait, "go", None)
        await pending(session, 2)
        await trio.sleep(86_400)
        (request,) = session.pending_requests()
        await session.answer(request.request_id, "approved")
        await turn.wait()
        assert await outcomes(session) == [("tidy", "denied"), ("deploy", "success")]
        assert "within 5 s" in model.requests[1].results["call_2"]


async def test_a_response_is_told_to_the_model_in_the_words_that_clients_know() -> None:
    assert UserInputResponse("red", was_freeform=False).text == "User selected: red"
    assert UserInputResponse("mauve").text == "User responded: mauve"
