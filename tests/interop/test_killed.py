"""A server with a journal is killed; the official client, unchanged, takes its sessions up and goes on."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from exeunt.testing.http_double import HttpReply, HttpRequest, open_http_double
from tests.interop.running import LONGEST, line_of, python, serving

CLIENT = Path(__file__).parent / "clients" / "killed"

CALLED = {"tool": "look_up", "permission": "deploy", "clear": "clear_context"}
"""What the model calls first, by the session."""


class Model:
    """Calls one tool of a session and then repeats what it reads. The session `model` waits for it, until a kill."""

    def __init__(self) -> None:
        self.requests: dict[str, list[list[str]]] = {}
        """The conversation in each request, by session."""
        self.asked = trio.Event()
        """Set when the session `model` waits for it."""

    def __call__(self, request: HttpRequest) -> HttpReply:
        name = request.target.split("/")[1]
        messages = request.json["messages"]
        seen = self.requests.setdefault(name, [])
        seen.append([f"{one['role']}: {one.get('content') or 'a call'}" for one in messages])
        last = messages[-1]["content"]
        message: dict[str, Any] = {"role": "assistant", "content": f"re: {last}"}
        if name == "model" and len(seen) == 1:
            self.asked.set()
            return HttpReply(body=[3600.0], framing="chunked")
        if name in CALLED and last == "go":
            call = {
                "id": f"call_{name}",
                "type": "function",
                "function": {"name": CALLED[name], "arguments": "{}"},
            }
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return HttpReply(body=json.dumps(answer).encode())


@attrs.frozen
class Ended:
    """What became of a session."""

    requests: list[list[str]]
    """The conversation in each request to the model."""
    counted: list[bool]
    """Which of two equal answers to what was asked before the kill counted."""
    called: list[str]
    """The tools that the client was asked to run afterwards."""
    succeeded: list[bool]
    """The outcome of each call, as the log has them."""
    cleared: int
    """How often the log says that the context was cleared."""


async def kill_and_come_back(folder: Path) -> dict[str, Ended]:
    journal, model = f"sqlite:///{folder}/journal.sqlite3", Model()
    async with open_http_double() as double:
        double.otherwise = model
        script = python(CLIENT, f"http://127.0.0.1:{double.port}")
        async with script.talking() as client:
            assert client.stdin is not None
            async with serving("--journal", journal, killed=True) as address:
                await client.stdin.send_all(f"{address}\n".encode())
                assert await line_of(client) == "ready"
                with trio.fail_after(LONGEST):
                    await model.asked.wait()
            port = int(address.rpartition(":")[2])
            async with serving("--journal", journal, port=port) as same:
                assert same == address
                await client.stdin.send_all(f"{same}\n".encode())
                became = json.loads(await line_of(client))
    return {name: Ended(requests=model.requests[name], **told) for name, told in became.items()}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Four sessions of one server, each killed in another state: by their names, what became of them."""
    return trio.run(kill_and_come_back, tmp_path_factory.mktemp("killed"))


pytestmark = pytest.mark.timeout(600)  # the client is installed by the first test that needs it

ASKED = ["system: You are terse.", "user: go"]
CALLING = [*ASKED, "assistant: a call", "tool: it is done"]


def test_a_call_of_the_model_that_a_kill_cut_off_is_made_again(ended: dict[str, Ended]) -> None:
    assert ended["model"] == Ended(
        requests=[ASKED, ASKED, [*ASKED, "assistant: re: go", "user: and now?"]],
        counted=[],
        called=[],
        succeeded=[],
        cleared=0,
    )


def test_a_call_of_a_tool_that_a_kill_cut_off_is_not_run_again_and_ends_with_the_first_answer(
    ended: dict[str, Ended],
) -> None:
    assert ended["tool"] == Ended(
        requests=[ASKED, CALLING, [*CALLING, "assistant: re: it is done", "user: and now?"]],
        counted=[True, False],
        called=[],
        succeeded=[True],
        cleared=0,
    )


def test_a_call_that_waited_for_an_approval_waits_on_and_runs_once_when_it_is_given(
    ended: dict[str, Ended],
) -> None:
    assert ended["permission"] == Ended(
        requests=[ASKED, CALLING, [*CALLING, "assistant: re: it is done", "user: and now?"]],
        counted=[True, False],
        called=["deploy"],
        succeeded=[True],
        cleared=0,
    )


def test_a_clear_that_was_staged_before_a_kill_is_gone_and_its_call_ends_the_turn(
    ended: dict[str, Ended],
) -> None:
    assert ended["clear"] == Ended(
        requests=[ASKED, [*CALLING, "user: and now?"]],
        counted=[True, False],
        called=[],
        succeeded=[True],
        cleared=0,
    )
