"""Responses that real servers gave and no server should: each ends as it must, in the door and in a session."""

from typing import Any

import pytest
import trio

from exeunt import Outcome, TurnFailed, approve_all
from exeunt.actors.events import AssistantTurnRetry, Event, ModelCallFailure, ToolExecutionComplete
from exeunt.actors.models import ModelDelta, ModelError, ModelRequest, ModelResponse
from exeunt.testing import checked_host
from exeunt.testing.http_double import open_http_double
from tests.models.dirty_cases import RESPONSES, read, reply_of
from tests.models.openai_session_support import QUICK, Toolbox
from tests.models.openai_support import Said
from tests.models.responses_support import RECOVERED, provider_at, recovered, responses_at
from tests.models.strict_responses import refusals
from tests.models.test_openai_dirty import TOOLS, check_answer, check_invalid

REQUEST = ModelRequest([Said("user", "Go.")], TOOLS)
EACH = pytest.mark.parametrize(
    "case", [read(path) for path in RESPONSES], ids=[path.stem for path in RESPONSES]
)


@EACH
async def test_a_dirty_response_ends_as_it_must(case: dict[str, Any]) -> None:
    expected = case["expected"]
    answer: ModelResponse | None = None
    failure: ModelError | None = None
    shown = ""
    async with open_http_double(reply_of(case)) as double:
        model = responses_at(double)
        try:
            with trio.fail_after(15):
                if case["stream"]:
                    async for piece in model.stream(REQUEST):
                        if isinstance(piece, ModelDelta):
                            shown += piece.text
                        else:
                            answer = piece
                else:
                    answer = await model.complete(REQUEST)
        except ModelError as error:
            failure = error
        await model.aclose()
        assert len(double.requests) == 1
    if expected["outcome"] == "error":
        assert failure is not None, answer
        assert (failure.kind, failure.retry) == (expected["error"]["kind"], expected["error"]["retry"])
        return
    assert failure is None
    assert answer is not None
    check_answer(expected, answer)
    if expected["outcome"] == "invalid_call":
        check_invalid(case, expected["invalid"], answer)
    else:
        assert shown == answer.content


@EACH
async def test_a_session_does_what_is_right_with_a_dirty_response_and_goes_on(case: dict[str, Any]) -> None:
    expected = case["expected"]
    box = Toolbox()
    events: list[Event] = []
    async with open_http_double(reply_of(case)) as double, checked_host() as host:
        double.otherwise = recovered
        provider = provider_at(double)
        session = await host.create_session(
            model="m", provider=provider, tools=box.tools(), streaming=case["stream"],
            retries=QUICK, on_permission_request=approve_all,
        )  # fmt: skip
        session.on(events.append)
        retries = [AssistantTurnRetry] if expected.get("error", {}).get("retry") else []
        if expected["outcome"] == "error" and not retries:
            with pytest.raises(TurnFailed) as caught:
                await session.send_and_wait("Go.", timeout=20)
            assert isinstance(caught.value.__cause__, ModelError)
            assert caught.value.__cause__.kind == expected["error"]["kind"]
        else:
            reply = await session.send_and_wait("Go.", timeout=20)
            assert reply.content == expected.get("text", RECOVERED)
        assert [type(event) for event in events if isinstance(event, AssistantTurnRetry)] == retries
        failures = [event.error_type for event in events if isinstance(event, ModelCallFailure)]
        assert failures == ([expected["error"]["kind"]] if expected["outcome"] == "error" else [])
        done = [event for event in events if isinstance(event, ToolExecutionComplete)]
        assert [event.tool_call_id for event in done] == [each["id"] for each in expected.get("invalid", ())]
        assert {event.outcome for event in done} <= {Outcome.INVALID}
        assert box.calls == []
        assert (await session.send_and_wait("And now?", timeout=20)).content == RECOVERED
        assert [refusals(request.body) for request in double.requests] == [[]] * len(double.requests)


def test_no_case_is_missing() -> None:
    assert len(RESPONSES) == 7
