"""Events and errors as plain JSON values, and back, whatever comes in."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exeunt
from exeunt import ExeuntError, ModelError, ModelErrorKind, ReplyTimeout, SessionError, tool
from exeunt.actors.events import Event
from exeunt.actors.session.frames import BadFrame, error_frame, error_from, event_frame, event_from
from exeunt.testing import Gate, ScriptedModel, call, checked_host, fail, say


def _approved(request: object, invocation: object) -> str:
    return "approved"


def _better(data: object, invocation: object) -> dict[str, str]:
    return {"modified_prompt": "better"}


async def test_every_event_of_a_session_survives_json(autojump_clock: None) -> None:
    model = ScriptedModel([[say("I look"), call("gate")], fail("rate_limited", retry=True), say("ünï\ud83d")])
    gate = Gate()
    gate.open()
    seen: list[Event] = []
    async with checked_host() as host:
        session = await host.create_session(
            model=model,
            tools=[tool(name="gate")(gate)],
            on_permission_request=_approved,
            on_user_prompt_submitted=_better,
        )
        session.on(seen.append)
        await session.send_and_wait("hello")
        seen.extend(await session.get_events())
    for event in seen:
        assert event_from(json.loads(json.dumps(event_frame(event)))) == event


@pytest.mark.parametrize(
    "frame", [None, [], {}, {"type": "no.such"}, {"type": ["x"]}, {"type": "session.idle"}]
)
def test_what_is_no_event_is_a_bad_frame(frame: Any) -> None:
    with pytest.raises(BadFrame):
        event_from(frame)


def _error_classes() -> list[type[ExeuntError]]:
    things = [getattr(exeunt, name) for name in exeunt.__all__]
    return [thing for thing in things if isinstance(thing, type) and issubclass(thing, ExeuntError)]


@pytest.mark.parametrize("kind", _error_classes())
def test_every_error_of_exeunt_comes_back_as_itself(kind: Any) -> None:
    fields: dict[str, Any] = {}
    if kind is ReplyTimeout:
        fields = {"phase": "tools", "in_flight": ("a", "b"), "queued": 3}
    if kind is ModelError:
        error: ExeuntError = ModelError(
            ModelErrorKind.OVERLOADED, "why", retry=True, status=503, retry_after=1.5
        )
    else:
        error = kind("why", **fields)
    back = error_from(json.loads(json.dumps(error_frame(error))))
    assert type(back) is kind
    assert str(back) == "why"
    assert vars(back) == vars(error)


def test_an_error_that_is_not_of_exeunt_becomes_an_error_of_the_session() -> None:
    back = error_from(error_frame(KeyError("x")))
    assert type(back) is SessionError
    assert str(back) == "KeyError: 'x'"


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(
    st.sampled_from(["type", "message", "data", "cause", "kind", "x"]) | st.text(), v)))  # fmt: skip
def test_no_frame_does_more_than_raise_that_it_is_bad(frame: Any) -> None:
    for decode in (event_from, error_from):
        with suppress(BadFrame):
            decode(frame)
