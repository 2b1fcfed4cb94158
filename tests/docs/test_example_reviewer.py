"""The routes of the reviewer's example, spoken to over HTTP in virtual time."""

import importlib.util
import json
from typing import Any

import h11
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from exeunt import SessionHost, ask_user_tool, leave_pending
from exeunt.testing import ScriptedModel, call, checked_host, say
from tests.actors.pending_support import pending
from tests.docs.documents import ROOT


@pytest.fixture(scope="module")
def reviewer() -> Any:
    spec = importlib.util.spec_from_file_location("reviewer", ROOT / "examples" / "reviewer.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def exchange(
    reviewer: Any, host: SessionHost, method: str, path: str, value: Any = None
) -> tuple[int, Any]:
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery, near:
        nursery.start_soon(reviewer.serve, host, far)
        answer: tuple[int, Any] = await reviewer.ask(near, method, path, value)
    return answer


async def test_an_approval_arrives_by_http_a_minute_later(autojump_clock: MockClock, reviewer: Any) -> None:
    model = ScriptedModel(
        [
            call("read_change", number=7),
            call("ask_user", question="Squash?"),
            call("merge", number=7),
            say("done"),
        ]
    )
    async with checked_host() as host:
        session = await host.create_session(
            model=model,
            tools=[reviewer.read_change, reviewer.merge, ask_user_tool()],
            on_permission_request=leave_pending,
            on_user_input_request=leave_pending,
        )
        await session.send("go")
        await pending(session)
        await trio.sleep(60)
        status, [shown] = await exchange(reviewer, host, "GET", "/requests")
        assert (status, shown["kind"], shown["request"]["question"]) == (200, "user_input", "Squash?")
        path = f"/requests/{shown['session_id']}/{shown['request_id']}"
        for wrong in ({"answer": 7}, {"reply": "yes"}, ["yes"], None):
            status, said = await exchange(reviewer, host, "POST", path, wrong)
            assert (status, list(said)) == (422, ["error"])
        assert await exchange(reviewer, host, "POST", path, {"answer": "yes"}) == (
            200,
            {"answered": shown["request_id"]},
        )
        assert (await exchange(reviewer, host, "POST", path, {"answer": "yes"}))[0] == 409
        (request,) = await pending(session)
        path = f"/requests/{session.session_id}/{request.request_id}"
        # A person sleeps over it: the tool gives three days.
        await trio.sleep(2 * 86_400)
        assert (await exchange(reviewer, host, "POST", path, {"answer": {"kind": "approve-once"}}))[0] == 200
        with trio.fail_after(10):
            await trio.lowlevel.checkpoint()
            while session.statistics().phase != "idle":  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert model.requests[-1].results["call_3"] == "Change 7 is merged."
    model.verify()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("DELETE", "/requests", 404),
        ("POST", "/requests/nobody/nothing", 409),
        ("GET", "/requests", 200),
    ],
)
async def test_what_cannot_be_answered_says_so(
    autojump_clock: MockClock, reviewer: Any, method: str, path: str, status: int
) -> None:
    async with checked_host() as host:
        assert (await exchange(reviewer, host, method, path, {"answer": "yes"}))[0] == status


async def test_a_connection_may_ask_several_times_and_one_that_is_no_http_is_closed(
    autojump_clock: MockClock, reviewer: Any
) -> None:
    async with checked_host() as host:
        near, far = memory_stream_pair()
        async with trio.open_nursery() as nursery, near:
            nursery.start_soon(reviewer.serve, host, far)
            for _ in range(2):
                await near.send_all(b"GET /requests HTTP/1.1\r\nHost: x\r\n\r\n")
                connection = h11.Connection(h11.CLIENT)
                connection.send(h11.Request(method="GET", target="/requests", headers=[("Host", "x")]))
                connection.send(h11.EndOfMessage())
                response = await reviewer.next_event(connection, near)
                body = await reviewer.next_event(connection, near)
                assert (response.status_code, json.loads(body.data)) == (200, [])
            await near.send_all(b"\x00\x01\x02 nonsense\r\n\r\n")
            assert await near.receive_some() == b""
