"""Files of sessions with a client that fails, lies, is silent, or leaves: the session goes on as if it had none."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from exeunt.testing import ScriptedModel, call
from exeunt.wire.files import transcript
from exeunt.wire.options import WireOptions
from tests.wire.client_files import ROOT, ClientFiles
from tests.wire.wire_client import Silence, WireFailure, open_wire, tool

FAILED = {"code": "UNKNOWN", "message": "the disk is on fire"}


def fails(name: str, params: dict[str, Any]) -> Any:
    if name in ("writeFile", "appendFile", "rename", "rm", "mkdir"):
        return FAILED
    return {"content": "", "entries": [], "exists": False, "error": FAILED}


def lies(name: str, params: dict[str, Any]) -> Any:
    return [1, 2, {"what": "is this"}]


def lies_in_objects(name: str, params: dict[str, Any]) -> Any:
    return {"exists": "perhaps", "content": 7, "entries": {"a": None}, "size": -1, "code": 5, "error": None}


def is_silent(name: str, params: dict[str, Any]) -> Any:
    raise Silence


@pytest.mark.parametrize("fault", [fails, lies, lies_in_objects, is_silent])
async def test_a_turn_ends_as_ever_whatever_becomes_of_the_files(
    fault: Callable[[str, dict[str, Any]], Any], autojump_clock: MockClock
) -> None:
    files = ClientFiles()
    files.fault = fault
    model = ScriptedModel([call("t", n=1), call("t", n=2), "done", "SUMMARY", "more"])
    async with open_wire(model) as wire:
        client = await files.keeper(wire, tools=[tool("t")])
        await client.say()
        for number in (1, 2):
            await client.give(await client.requested(number), result="x" * 60_000)
        await client.event("session.idle")
        took = trio.current_time()
        assert (await client.call("session.history.compact", sessionId="s"))["success"] is True
        for method, params in (
            ("session.plan.read", {}),
            ("session.plan.update", {"content": "x"}),
            ("session.workspaces.listFiles", {}),
            ("session.workspaces.createFile", {"path": "x", "content": "x"}),
            ("session.workspaces.addSummary", {"title": "t", "content": "x"}),
        ):
            with pytest.raises(WireFailure) as refused:
                await client.call(method, sessionId="s", **params)
            assert refused.value.data == {"type": "SessionFilesUnavailable"}
        await client.turn()
        await trio.sleep(1)
        # It is mended, and so is the transcript, with all that it missed.
        files.fault = None
        await trio.sleep(120)
        assert files.lines() == await client.history()
        counts = wire.server.statistics().files
        await client.call("session.destroy", sessionId="s")
    assert model.requests[2].contents[-1] == "x" * 60_000
    assert (counts.results_kept, counts.results_moved) == (2, 0)
    assert counts.transcripts_behind == 1
    assert "checkpointNumber" not in files.text("events.jsonl")
    # Of one that is silent only the first request is waited for.
    assert took <= 30.0
    assert trio.current_time() < 300


async def test_a_session_leaves_in_order_though_its_client_keeps_silent(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    files.fault = is_silent
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        before = trio.current_time()
        assert await client.call("session.destroy", sessionId="s") == {"success": True}
        assert trio.current_time() - before <= 5.0
        files.fault = None
        await client.call("session.resume", sessionId="s")
        await client.call("session.destroy", sessionId="s")
    assert [event["type"] for event in files.lines()][-3:] == [
        "session.shutdown",
        "session.resume",
        "session.shutdown",
    ]


async def test_an_append_of_unknown_outcome_leaves_nothing_twice(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    once = iter([True])

    def appends_and_fails(name: str, params: dict[str, Any]) -> Any:
        if name == "appendFile" and next(once, False):
            files.files[params["sessionId"], params["path"]] = params["content"] + '{"half": a li'
            return FAILED
        return None

    files.fault = appends_and_fails
    async with open_wire(ScriptedModel(["hi"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        await trio.sleep(10)
        assert files.lines() == await client.history()
        assert wire.server.statistics().files.transcripts_rewritten == 1
        await client.call("session.destroy", sessionId="s")


async def test_another_client_keeps_the_files_when_the_first_one_leaves(autojump_clock: MockClock) -> None:
    here, there = ClientFiles(), ClientFiles()
    async with open_wire(ScriptedModel(["one", "two", "three"])) as wire:
        first = await wire.connect()
        await here.register(first)
        await first.create()
        await first.say()
        second = await wire.connect()
        await there.register(second)
        await second.call("session.resume", sessionId="s")
        await first.event("session.idle")
        await trio.sleep(1)
        assert not there.files
        await first.leave()
        await second.say()
        await second.event("session.idle", 1)
        await trio.sleep(10)
        logged = await second.history()
        # What the first one has it has; the second one's is whole.
        assert there.lines() == logged
        await second.leave()
    assert here.lines() == logged[: len(here.lines())]


async def test_a_client_that_comes_back_finds_what_was_done_without_it(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["one", "two"]), options=WireOptions(wait_for_clients=True)) as wire:
        client = await files.keeper(wire)
        bare = await wire.connect()
        await bare.call("session.resume", sessionId="s")
        await client.leave()
        await bare.say()
        await bare.event("session.idle")
        await trio.sleep(200)
        asked = len(files.asked)
        back = await wire.connect()
        await files.register(back)
        await back.call("session.resume", sessionId="s")
        await trio.sleep(10)
        assert len(files.asked) > asked
        assert files.lines() == await back.history()
        await back.call("session.destroy", sessionId="s")


async def test_a_session_gets_files_from_the_client_that_comes_to_it(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["one"])) as wire:
        keeper = await wire.connect()
        await files.register(keeper)
        bare = await wire.connect()
        await bare.create()
        await bare.say()
        await bare.event("session.idle")
        made = await keeper.call("session.resume", sessionId="s")
        await trio.sleep(10)
        assert made["workspacePath"] == ROOT
        assert files.lines() == await keeper.history()


async def test_a_session_with_which_nothing_was_done_leaves_no_files(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await wire.connect()
        await files.register(client)
        await client.create("idle")
        await client.create("used")
        await client.say(session="used")
        await client.event("session.idle")
        await trio.sleep(1)
        assert {session for session, _ in files.files} == {"idle", "used"}
        await client.call("session.destroy", sessionId="idle")
        assert {session for session, _ in files.files} == {"used"}
        await client.call("session.delete", sessionId="used")
        assert not files.files


async def test_more_events_than_the_buffer_takes_are_read_from_the_log(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MOST_WAITING", 4_000)
    files = ClientFiles()
    model = ScriptedModel([call("t", n=n) for n in range(20)] + ["done"])
    async with open_wire(model) as wire:
        client = await files.keeper(wire, tools=[tool("t")])
        await client.say()
        for number in range(1, 21):
            await client.give(await client.requested(number), result="x" * 500)
        await client.event("session.idle")
        await trio.sleep(10)
        assert files.lines() == await client.history()
        counts = wire.server.statistics().files
        await client.call("session.destroy", sessionId="s")
    assert counts.transcripts_behind >= 1
    assert counts.transcripts_rewritten >= 1


async def test_a_transcript_that_somebody_has_changed_is_written_anew_and_kept(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        await client.call("session.destroy", sessionId="s")
        more = '{"type":"user.message","id":"../of/another","data":{}}\n'
        changed = files.text("events.jsonl") + more
        files.files["s", f"{ROOT}/events.jsonl"] = changed
        await client.call("session.resume", sessionId="s")
        await trio.sleep(10)
        assert files.lines() == await client.history()
        assert files.text("events.ofanother.jsonl") == changed
        await client.call("session.destroy", sessionId="s")


async def test_the_end_of_the_server_is_not_held_up(autojump_clock: MockClock) -> None:
    files = ClientFiles()
    files.fault = is_silent
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        await wait_all_tasks_blocked()
        before = trio.current_time()
    assert trio.current_time() - before < 10


async def test_a_new_session_keeps_the_transcript_of_an_old_one_with_its_id(
    autojump_clock: MockClock,
) -> None:
    files = ClientFiles()
    files.files["s", f"{ROOT}/events.jsonl"] = "of old\n"
    async with open_wire(ScriptedModel(["one"])) as wire:
        client = await files.keeper(wire)
        await client.turn()
        await client.call("session.destroy", sessionId="s")
    (kept,) = [text for (_, path), text in files.files.items() if "events.before-" in path]
    assert kept == "of old\n"
    assert files.lines()[0]["type"] == "session.start"
