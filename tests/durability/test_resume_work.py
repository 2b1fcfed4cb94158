"""What becomes of a turn that the end of a process cut off."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from exeunt import Session, Tool, ToolInvocation, tool
from exeunt.supervisor.options import HostOptions
from exeunt.testing import Gate, ScriptedModel, call, hang, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.clear_support import ends, logged, outcomes, plain_tool, settled
from tests.durability.resume_support import (
    checked,
    clear_context,
    create,
    doomed,
    durable,
    read,
    resume,
    submit,
    until,
)

INTERRUPTED = "interrupted"


async def cut_off(
    model: ScriptedModel,
    gate: Gate,
    *tools: Tool[..., Any],
    ready: Callable[[Session], bool] | None = None,
    **others: Any,
) -> MemoryStore:
    """Return what is left when the process is killed while a tool waits at *gate*."""
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, model, *tools, **others)
        await session.send("begin")
        await gate.entered()
        await until(lambda: ready is None or ready(session))
        await durable(session)
        return store.copy()


def one_is_left(session: Session) -> bool:
    return len(session.statistics().in_flight) == 1


async def test_an_open_call_is_interrupted_and_the_model_sees_it() -> None:
    gate = Gate()
    left = await cut_off(
        ScriptedModel([[call("slow"), call("read")]]), gate, plain_tool("slow", gate), read, ready=one_is_left
    )
    model = ScriptedModel(["I see"])
    async with checked(left) as host:
        session = await resume(host, model, plain_tool("slow", gate), read)
        assert sorted(await outcomes(session)) == [("read", "success"), ("slow", "interrupted")]
        assert await ends(session) == ["interrupted"]
        assert session.statistics().phase == "idle"
        reply = await session.send_and_wait("what happened?")
        assert reply.content == "I see"
        (slow, result) = [m.content for m in model.requests[0].messages if m.role == "tool"]
        assert "interrupted" in slow
        assert result == "what was read"
    assert len(gate.calls) == 1
    model.verify()


async def test_with_continue_pending_work_the_model_is_asked_again_with_the_interrupted_call() -> None:
    gate = Gate()
    left = await cut_off(ScriptedModel([call("slow")]), gate, plain_tool("slow", gate))
    model = ScriptedModel(["I see"])
    async with checked(left) as host:
        session = await resume(host, model, plain_tool("slow", gate), go_on=True)
        await settled(session)
        assert await outcomes(session) == [("slow", "interrupted")]
        assert await ends(session) == ["completed"]
        assert [event.step for event in await logged(session, "assistant.turn_start")] == [0, 1]
        assert len({event.turn_id for event in await logged(session, "assistant.turn_start")}) == 1
    assert len(gate.calls) == 1
    model.verify()


async def test_a_model_call_that_was_cut_off_is_made_again() -> None:
    store = MemoryStore()
    async with doomed(store) as host:
        session = await create(host, ScriptedModel([hang()]))
        await session.send("hello")
        await durable(session)
        left = store.copy()
    model = ScriptedModel(["hi"])
    async with checked(left) as host:
        session = await resume(host, model, go_on=True)
        await settled(session)
        assert model.requests[0].contents == ("You are terse.", "hello")
        assert await ends(session) == ["completed"]
        assert len(await logged(session, "user.message")) == 1
    model.verify()


def counting(runs: list[str], gate: Gate, *, name: str = "look_up", **flags: Any) -> Tool[..., Any]:
    @tool(name, **flags)
    async def counted(invocation: ToolInvocation) -> str:
        """Count."""
        runs.append(invocation.idempotency_key)
        return await gate()

    return counted


async def test_an_idempotent_tool_runs_once_more_with_the_same_key_and_another_never() -> None:
    runs: list[str] = []
    writes: list[str] = []
    finished: list[str] = []
    gate, done = Gate(), Gate()
    done.open()
    tools = (
        counting(runs, gate, idempotent=True),
        counting(writes, gate, name="write"),
        counting(finished, done, name="finished", idempotent=True),
    )
    model = ScriptedModel([[call("look_up"), call("write"), call("finished")]])

    def two_are_left(session: Session) -> bool:
        return len(session.statistics().in_flight) == 2

    left = await cut_off(model, gate, *tools, ready=two_are_left)
    assert (len(runs), len(writes), len(finished)) == (1, 1, 1)
    gate.open()
    after = ScriptedModel(["all seen"])
    async with checked(left) as host:
        session = await resume(host, after, *tools, go_on=True)
        await settled(session)
        assert runs == [runs[0]] * 2
        assert (len(writes), len(finished)) == (1, 1)
        assert sorted(await outcomes(session)) == [
            ("finished", "success"), ("look_up", "success"), ("write", "interrupted")
        ]  # fmt: skip
        assert await ends(session) == ["completed"]
    after.verify()


async def test_an_idempotent_tool_that_is_cut_off_twice_keeps_its_key() -> None:
    runs: list[str] = []
    gate = Gate()
    look_up = counting(runs, gate, idempotent=True)
    store = await cut_off(ScriptedModel([call("look_up")]), gate, look_up)
    async with doomed(store) as host:
        await resume(host, ScriptedModel([]), look_up, go_on=True)
        await gate.entered(2)
        store = store.copy()
    gate.open()
    async with checked(store) as host:
        session = await resume(host, model := ScriptedModel(["done"]), look_up, go_on=True)
        await settled(session)
    assert runs == [runs[0]] * 3
    model.verify()


async def test_without_continue_pending_work_an_idempotent_tool_is_not_run_again() -> None:
    runs: list[str] = []
    gate = Gate()
    look_up = counting(runs, gate, idempotent=True)
    left = await cut_off(ScriptedModel([call("look_up")]), gate, look_up)
    async with checked(left) as host:
        session = await resume(host, ScriptedModel([]), look_up)
        assert await outcomes(session) == [("look_up", "interrupted")]
    assert len(runs) == 1


async def test_a_tool_that_is_not_idempotent_any_more_is_not_run_again() -> None:
    for before, now in ((True, False), (False, True)):
        runs: list[str] = []
        gate = Gate()
        left = await cut_off(ScriptedModel([call("look_up")]), gate, counting(runs, gate, idempotent=before))
        async with checked(left) as host:
            model = ScriptedModel(["so be it"])
            session = await resume(host, model, counting(runs, gate, idempotent=now), go_on=True)
            await settled(session)
            assert await outcomes(session) == [("look_up", "interrupted")]
        assert len(runs) == 1


async def test_two_calls_with_one_id_in_two_contexts_have_two_keys() -> None:
    runs: list[str] = []
    gate = Gate()
    gate.open()
    look_up = counting(runs, gate)
    one = [call("look_up").with_id("c1")]
    model = ScriptedModel([one, "ok", call("clear_context", prompt="anew"), "ready", one, "ok"])
    async with checked(MemoryStore()) as host:
        session = await create(host, model, look_up, clear_context)
        for text in ("look", "clear", "look"):
            await session.send_and_wait(text)
    assert len(set(runs)) == 2
    model.verify()


async def test_a_terminal_success_in_the_log_ends_the_turn_without_another_request() -> None:
    gate = Gate()
    tools = (plain_tool("slow", gate), submit)
    left = await cut_off(ScriptedModel([[call("slow"), call("submit")]]), gate, *tools, ready=one_is_left)
    model = ScriptedModel([])
    async with checked(left) as host:
        session = await resume(host, model, *tools, go_on=True)
        await settled(session)
        assert await ends(session) == ["terminal_tool"]
        assert model.calls == 0
        assert session.statistics().phase == "idle"


async def test_the_budget_of_steps_goes_on() -> None:
    gate = Gate()
    tools = (plain_tool("slow", gate), read)
    left = await cut_off(ScriptedModel([call("read"), call("slow")]), gate, *tools, limits={"steps": 3})
    model = ScriptedModel([call("read")])
    async with checked(left) as host:
        session = await resume(host, model, *tools, go_on=True, limits={"steps": 3})
        await settled(session)
        assert await ends(session) == ["limit"]
        (end,) = await logged(session, "turn.end")
        assert end.steps == 3
    model.verify()


async def test_a_host_run_call_is_interrupted_and_the_context_gets_nothing_of_it() -> None:
    gate = Gate()
    slow = plain_tool("slow", gate, idempotent=False)
    for go_on in (False, True):
        store = MemoryStore()
        async with doomed(store) as host, trio.open_nursery() as nursery:
            session = await create(host, ScriptedModel([]), slow)
            nursery.start_soon(session.call_tool, "slow")
            await gate.entered(1 + go_on)
            await session.send("behind it")
            left = store.copy()
            nursery.cancel_scope.cancel()
        model = ScriptedModel(["hi"])
        async with checked(left, settled=go_on) as host:
            session = await resume(host, model, slow, go_on=go_on)
            assert await outcomes(session) == [("slow", "interrupted")]
            if go_on:
                await settled(session)
                assert model.requests[0].contents == ("You are terse.", "behind it")
            else:
                assert session.statistics().queued == 1
    assert len(gate.calls) == 2


async def at_the_boundary(*messages: str) -> MemoryStore:
    """Return what is left when the process is killed between the commit of a clear and its seeded turn."""
    store = MemoryStore()
    gate = Gate()

    async def guard(hook_input: Any, invocation: Any) -> None:
        if hook_input.prompt != "clear":
            await gate()

    model = ScriptedModel([call("clear_context", prompt="Begin with act 2.")])
    async with doomed(store) as host:
        session = await create(host, model, clear_context, on_user_prompt_submitted=guard)
        await session.send("clear")
        await gate.entered()
        for text in messages:
            await session.send(text)
        await durable(session)
        return store.copy()


async def test_the_seeded_turn_of_a_committed_clear_runs() -> None:
    left = await at_the_boundary("next")
    model = ScriptedModel(["act 2", "next it is"])
    async with checked(left) as host:
        session = await resume(host, model, clear_context, go_on=True)
        await settled(session)
        assert [request.contents for request in model.requests] == [
            ("You are terse.", "Begin with act 2."),
            ("You are terse.", "Begin with act 2.", "act 2", "next"),
        ]
        assert await ends(session) == ["terminal_tool", "completed", "completed"]
    model.verify()


async def test_without_continue_pending_work_the_seed_stands_unanswered() -> None:
    left = await at_the_boundary()
    model = ScriptedModel(["at last"])
    async with checked(left) as host:
        session = await resume(host, model, clear_context)
        assert [m.content for m in session.history.messages()] == ["You are terse.", "Begin with act 2."]
        assert (session.statistics().phase, session.statistics().generation) == ("idle", 1)
        await trio.testing.wait_all_tasks_blocked()
        assert model.calls == 0
        await session.send_and_wait("well?")
        assert model.requests[0].contents == ("You are terse.", "Begin with act 2.", "well?")
    model.verify()


async def test_a_clear_that_was_not_committed_is_gone() -> None:
    gate = Gate()
    slow = plain_tool("slow", gate)
    model = ScriptedModel([[call("clear_context", prompt="anew"), call("slow")]])

    def staged(session: Session) -> bool:
        return session.statistics().clear_staged

    left = await cut_off(model, gate, slow, clear_context, ready=staged)
    after = ScriptedModel([call("clear_context", prompt="anew"), "fresh"])
    async with checked(left) as host:
        session = await resume(host, after, slow, clear_context, go_on=True)
        await settled(session)
        assert await outcomes(session) == [
            ("clear_context", "interrupted"), ("slow", "interrupted"), ("clear_context", "success")
        ]  # fmt: skip
        assert after.requests[0].roles == ("system", "user", "assistant", "tool", "tool")
        assert after.requests[1].contents == ("You are terse.", "anew")
    after.verify()


async def test_an_approval_that_nobody_can_give_any_more_is_closed() -> None:
    gate = Gate()

    async def approver(asked: Any, invocation: Any) -> Any:
        await gate()

    store = await cut_off(ScriptedModel([call("read")]), gate, read, on_permission_request=approver)
    async with checked(store) as host:
        session = await resume(host, ScriptedModel([], default=say("well")), read)
        await settled(session)
        (asked,) = await logged(session, "permission.requested")
        (closed,) = await logged(session, "permission.completed")
        assert (closed.request_id, closed.kind) == (asked.request_id, "cancelled")


async def test_what_a_hook_wanted_the_model_to_read_is_not_lost() -> None:
    gate = Gate()
    slow = plain_tool("slow", gate)

    def advise(hook_input: Any, invocation: Any) -> Any:
        return {"additional_context": "Mind the gap."} if hook_input.tool_name == "read" else None

    model = ScriptedModel([[call("read"), call("slow")]])
    left = await cut_off(model, gate, slow, read, ready=one_is_left, on_pre_tool_use=advise)
    after = ScriptedModel(["ok"])
    async with checked(left) as host:
        session = await resume(host, after, slow, read, go_on=True)
        await settled(session)
        assert "Mind the gap." in after.requests[0].contents[-1]
    after.verify()


@pytest.mark.parametrize("how", ["abort", "disconnect"])
@pytest.mark.parametrize("at", ["model", "tools"])
async def test_a_turn_that_waits_for_a_slot_to_go_on_can_be_ended(at: str, how: str) -> None:
    gate, runs = Gate(), list[str]()
    look_up = counting(runs, gate, idempotent=True)
    if at == "tools":
        left = await cut_off(ScriptedModel([call("look_up")]), gate, look_up)
    else:
        left = MemoryStore()
        async with doomed(left) as host:
            session = await create(host, ScriptedModel([hang()]), look_up)
            await session.send("begin")
            await durable(session)
            left = left.copy()
    model = ScriptedModel([], default=say("well"))
    async with checked(left, options=HostOptions(running_turns=1)) as host:
        other = await host.create_session(
            model=ScriptedModel([call("gate")], default=say("done")), tools=[plain_tool("gate", gate)]
        )
        await other.send("take the slot")
        await gate.entered(1 + len(runs))
        session = await resume(host, model, look_up, go_on=True)
        assert session.statistics().phase in ("waiting", "tools")
        if how == "abort":
            await session.abort()
        else:
            await session.disconnect()
            session = await resume(host, model, look_up)
        gate.open()
        await settled(other)
        assert await ends(session) == ["aborted"]
        steps = [len(await logged(session, f"assistant.turn_{what}")) for what in ("start", "end")]
        assert steps[0] == steps[1]
        assert await outcomes(session) == ([("look_up", "interrupted")] if at == "tools" else [])
        assert (await session.send_and_wait("and now?")).content == "well"
    assert len(runs) == (at == "tools")
    model.verify()
