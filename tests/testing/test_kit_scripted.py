"""The scripted model: what it answers, what it keeps, and how loud it is."""

from collections.abc import Sequence

import msgspec
import pytest
import trio
from trio.testing import MockClock

from exeunt.actors.errors import InvalidConfiguration, InvariantViolation, ScriptExhausted
from exeunt.actors.media import Media
from exeunt.actors.models import (
    ModelClient,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
    Role,
    ToolCall,
    Usage,
)
from exeunt.testing import (
    Reply,
    ScriptedModel,
    after,
    call,
    fail,
    hang,
    raw_call,
    say,
    stream_cut,
    stream_stall,
)


class Text(msgspec.Struct, frozen=True):
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()


def asked(text: str = "hello", *, session_id: str = "s") -> ModelRequest:
    return ModelRequest([Text("user", text)], session_id=session_id, turn_id="t")


async def pieces(model: ScriptedModel, request: ModelRequest) -> list[ModelDelta | ModelResponse]:
    return [piece async for piece in model.stream(request)]


async def test_replies_come_in_the_order_of_the_requests() -> None:
    model = ScriptedModel(["first", say("second", usage=Usage(3, 4), reasoning="hm")])

    first = await model.complete(asked())
    second = await model.complete(asked())

    assert isinstance(model, ModelClient)
    assert first == ModelResponse("first")
    assert second == ModelResponse("second", usage=Usage(3, 4), reasoning="hm")
    assert (model.calls, model.remaining) == (2, 0)
    model.verify()


async def test_a_tool_parameter_may_have_any_name() -> None:
    arguments = {
        "delay": 1,
        "tool_name": "x",
        "name": "y",
        "prompt": "z",
        "self": None,
        "id": 7,
        "usage": 2.5,
    }
    model = ScriptedModel([call("f", **arguments)])

    response = await model.complete(asked())

    assert response.finish_reason == "tool_calls"
    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == [("call_1", "f", arguments)]


async def test_a_list_is_one_answer_with_a_text_and_calls() -> None:
    model = ScriptedModel([[say("looking"), call("read", path="a"), call("read", path="b").with_id("own")]])

    response = await model.complete(asked())

    assert response.content == "looking"
    assert response.tool_calls == (
        ToolCall("call_1", "read", '{"path":"a"}'),
        ToolCall("own", "read", '{"path":"b"}'),
    )


async def test_generated_ids_are_never_used_twice_by_one_model() -> None:
    model = ScriptedModel.per_session([[call("f"), call("g")]], cycle=True)

    answers = [await model.complete(asked(session_id=name)) for name in ("a", "b", "a")]

    ids = [c.id for answer in answers for c in answer.tool_calls]
    assert ids == [f"call_{number}" for number in range(1, 7)]


async def test_a_raw_call_is_sent_as_it_is() -> None:
    model = ScriptedModel([raw_call("f", '{"half":', id="")])

    assert (await model.complete(asked())).tool_calls == (ToolCall("", "f", '{"half":'),)


async def test_a_function_sees_the_request_and_gives_any_reply() -> None:
    async def later(request: ModelRequest, /) -> Reply:
        await trio.lowlevel.checkpoint()
        return call("echo", text=request.messages[0].content)

    model = ScriptedModel([lambda request: later, lambda request: request.session_id])

    assert (await model.complete(asked("ping"))).tool_calls[0].arguments == {"text": "ping"}
    assert (await model.complete(asked(session_id="s9"))).content == "s9"


async def test_a_function_can_answer_a_stream_or_fail_it() -> None:
    def overloaded(request: ModelRequest, /) -> Reply:
        raise ModelError(ModelErrorKind.OVERLOADED, "later")

    model = ScriptedModel([lambda _: "x", overloaded])

    assert await pieces(model, asked()) == [ModelDelta(text="x"), ModelResponse("x")]
    with pytest.raises(ModelError, match="later"):
        await pieces(model, asked())
    model.verify()


async def test_delays_add_up_in_virtual_time(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(60, after(2, say("late", delay=0.5))), after(3, lambda _: after(4, "x"))])

    await model.complete(asked())
    assert trio.current_time() == 62.5

    await model.complete(asked())
    assert trio.current_time() == 69.5


async def test_a_stream_is_cut_by_words_and_ends_with_the_whole() -> None:
    model = ScriptedModel([say(" two  words\n", reasoning="hm")])

    assert await pieces(model, asked()) == [
        ModelDelta(reasoning="hm"),
        ModelDelta(text=" two"),
        ModelDelta(text="  words"),
        ModelDelta(text="\n"),
        ModelResponse(" two  words\n", reasoning="hm"),
    ]


@pytest.mark.parametrize(
    ("text", "chunks", "expected"),
    [
        ("abcdefg", 3, ["ab", "cd", "efg"]),
        ("ab", 5, ["a", "b"]),
        ("", 2, []),
        ("abc", ["a", "", "bc"], ["a", "", "bc"]),
        ("", None, []),
    ],
)
async def test_a_stream_is_cut_as_asked(
    text: str, chunks: Sequence[str] | int | None, expected: list[str]
) -> None:
    model = ScriptedModel([say(text, chunks=chunks)])

    *deltas, whole = await pieces(model, asked())

    assert [delta.text for delta in deltas if isinstance(delta, ModelDelta)] == expected
    assert whole == ModelResponse(text)


async def test_a_gap_lies_between_pieces_only(autojump_clock: MockClock) -> None:
    model = ScriptedModel([say("one two three", delay=5, gap=10)])
    times: list[float] = []

    async for _ in model.stream(asked()):
        times.append(trio.current_time())

    assert times == [5, 15, 25, 25]


async def test_a_cut_stream_raises_after_its_pieces() -> None:
    model = ScriptedModel([stream_cut(2, "a b c", retry=False)], cycle=True)
    seen: list[object] = []

    async def read() -> None:
        async for piece in model.stream(asked()):
            seen.append(piece)

    with pytest.raises(ModelError) as caught:
        await read()

    assert seen == [ModelDelta(text="a"), ModelDelta(text=" b")]
    assert (caught.value.kind, caught.value.retry) == (ModelErrorKind.TRUNCATED_STREAM, False)
    with pytest.raises(ModelError):
        await model.complete(asked())
    assert model.cancelled == 0


async def test_a_stalled_stream_goes_quiet_after_its_pieces(autojump_clock: MockClock) -> None:
    model = ScriptedModel([stream_stall(1)])
    seen: list[object] = []

    with trio.move_on_after(100) as scope:
        async for piece in model.stream(asked()):
            seen.append(piece)

    assert scope.cancelled_caught
    assert seen == [ModelDelta(text="an")]
    assert (model.cancelled, model.in_flight) == (1, 0)


async def test_a_stream_closed_early_counts_as_cancelled_and_one_closed_after_its_answer_does_not() -> None:
    model = ScriptedModel(["one two"], cycle=True)

    early = model.stream(asked())
    await anext(early)
    assert model.in_flight == 1
    await early.aclose()  # type: ignore[attr-defined]
    assert (model.cancelled, model.in_flight) == (1, 0)

    whole = model.stream(asked())
    while not isinstance(await anext(whole), ModelResponse):
        pass
    await whole.aclose()  # type: ignore[attr-defined]
    assert (model.cancelled, model.in_flight) == (1, 0)


async def test_hang_answers_nobody_until_cancelled(autojump_clock: MockClock) -> None:
    model = ScriptedModel([hang()])

    with trio.move_on_after(3600) as scope:
        await model.complete(asked())

    assert scope.cancelled_caught
    assert (model.cancelled, model.in_flight, model.max_in_flight) == (1, 0, 1)


async def test_calls_in_flight_are_counted(autojump_clock: MockClock) -> None:
    model = ScriptedModel([after(2, "x")], cycle=True)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(model.complete, asked())
        await trio.sleep(1)
        assert model.in_flight == 3

    assert (model.in_flight, model.max_in_flight) == (0, 3)


async def test_a_failure_has_the_kind_and_the_facts_that_the_script_gives() -> None:
    model = ScriptedModel(
        [fail("rate_limited", "slow down", retry=True, status=429, retry_after=7)], cycle=True
    )

    with pytest.raises(ModelError, match="slow down") as first:
        await model.complete(asked())
    with pytest.raises(ModelError) as second:
        await pieces(model, asked())

    error = first.value
    assert (error.kind, error.retry, error.status, error.retry_after) == ("rate_limited", True, 429, 7)
    assert second.value is not error


async def test_any_exception_can_play_a_faulty_client() -> None:
    model = ScriptedModel([fail(KeyError("choices"))])

    with pytest.raises(KeyError, match="choices"):
        await model.complete(asked())

    model.verify()


async def test_a_request_after_the_script_is_loud_and_remembered() -> None:
    model = ScriptedModel(["only"])
    await model.complete(asked())

    with pytest.raises(ScriptExhausted, match=r"Request 2, of session 's'.*1 replies") as caught:
        await model.complete(asked("again"))

    assert "'again'" in str(caught.value)
    with pytest.raises(InvariantViolation, match="ScriptExhausted: Request 2"):
        model.verify()


async def test_a_default_answers_after_the_script() -> None:
    model = ScriptedModel(["one"], default="more")

    assert [(await model.complete(asked())).content for _ in range(3)] == ["one", "more", "more"]


async def test_a_cycle_begins_again() -> None:
    model = ScriptedModel(["a", "b"], cycle=True)

    assert [(await model.complete(asked())).content for _ in range(5)] == ["a", "b", "a", "b", "a"]
    model.verify()


async def test_replies_that_nobody_asked_for_are_a_violation() -> None:
    model = ScriptedModel(["a", "b"])
    await model.complete(asked())

    with pytest.raises(InvariantViolation, match="1 replies were never asked for; 1 requests came"):
        model.verify()
    model.verify(all_given=False)


async def test_each_session_gets_a_script_of_its_own() -> None:
    model = ScriptedModel.per_session(["one", "two"])

    answers = [(await model.complete(asked(session_id=name))).content for name in ("a", "b", "a", "b")]

    assert answers == ["one", "one", "two", "two"]
    model.verify()
    with pytest.raises(ScriptExhausted, match="session 'a'"):
        await model.complete(asked(session_id="a"))


async def test_the_script_of_a_session_can_depend_on_its_id() -> None:
    model = ScriptedModel.per_session(lambda session_id: [f"I am {session_id}", "bye"])

    assert (await model.complete(asked(session_id="a"))).content == "I am a"
    assert (await model.complete(asked(session_id="b"))).content == "I am b"
    assert model.remaining == 2


async def test_requests_are_kept_as_they_were() -> None:
    messages = [Text("system", "be kind"), Text("user", "hi")]
    model = ScriptedModel(["x"])

    await model.complete(ModelRequest(messages, session_id="s1", turn_id="t1"))
    messages.append(Text("assistant", "later"))

    request = model.requests[0]
    assert (request.roles, request.contents) == (("system", "user"), ("be kind", "hi"))
    assert (request.session_id, request.turn_id, request.tools) == ("s1", "t1", ())
    assert str(request) == "  [0] system 'be kind'\n  [1] user 'hi'"


async def test_results_of_a_request_are_found_by_the_id_of_their_call() -> None:
    calls = (ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}"))
    messages = [
        Text("user", "hi"),
        Text("assistant", "", calls),
        Text("tool", "one", tool_call_id="1"),
        Text("tool", "two", tool_call_id="2"),
    ]
    model = ScriptedModel(["x"])

    await model.complete(ModelRequest(messages))

    assert model.requests[0].results == {"1": "one", "2": "two"}


async def test_an_invalid_request_is_refused_recorded_and_uses_up_no_reply() -> None:
    model = ScriptedModel(["x"])

    with pytest.raises(InvariantViolation, match="the conversation is empty"):
        await model.complete(ModelRequest([Text("system", "alone")]))

    assert (len(model.requests), model.remaining) == (1, 1)
    with pytest.raises(InvariantViolation, match="the conversation is empty"):
        model.verify(all_given=False)


async def test_an_unchecked_model_takes_any_request_and_keeps_none() -> None:
    model = ScriptedModel(["x"], check=False, record=False)

    assert (await model.complete(ModelRequest([]))).content == "x"
    assert (model.requests, model.calls) == ([], 1)


async def test_a_reply_function_that_raises_is_remembered() -> None:
    def wrong(request: ModelRequest) -> Reply:
        assert request.session_id == "other"
        return "x"

    model = ScriptedModel([wrong])

    with pytest.raises(AssertionError):
        await model.complete(asked())
    with pytest.raises(InvariantViolation, match="AssertionError"):
        model.verify()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("hello", "write \\['hello'\\]"),
        ([7], "7 is no reply"),
        ([[fail("timeout"), call("f")]], "cannot be part of an answer"),
        ([["a", "b"]], "one text"),
    ],
)
def test_a_script_that_is_none_is_refused(script: list[Reply], message: str) -> None:
    with pytest.raises(InvalidConfiguration, match=message):
        ScriptedModel(script)


def test_words_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="delay is -1"):
        say("x", delay=-1)
    with pytest.raises(InvalidConfiguration, match="gap is nan"):
        say("x", gap=float("nan"))
    with pytest.raises(InvalidConfiguration, match="seconds is inf"):
        after(float("inf"), "x")
    with pytest.raises(InvalidConfiguration, match="at least one piece"):
        say("x", chunks=0)
    with pytest.raises(InvalidConfiguration, match="do not add up"):
        say("xy", chunks=["x"])
    with pytest.raises(InvalidConfiguration, match="the text has 2 pieces"):
        stream_cut(3, "a b")
    with pytest.raises(InvalidConfiguration, match="no kind of ModelError"):
        fail("tired")
    with pytest.raises(InvalidConfiguration, match="no JSON form"):
        call("f", x=object())
