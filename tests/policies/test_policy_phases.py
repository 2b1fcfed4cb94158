"""A session that goes through named phases."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration, approve_all, build_options, open_host, tool
from exeunt.actors.events import Event
from exeunt.policies import HandoffPolicy, Phase, PhasePolicy, messages
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.testing import Gate, ScriptedModel, call, checked_host, crash_session, say
from exeunt.testing.faulty_store import MemoryStore
from tests.actors.session_support import ends, logged, outcomes, plain_tool, settled
from tests.policies.policy_support import look, looks, triggers


@tool
async def build() -> str:
    """Build it."""
    return "built"


@tool
async def check() -> str:
    """Check it."""
    return "all is well"


def phases(**options: Any) -> PhasePolicy:
    return PhasePolicy(
        [
            Phase(name="plan", developer_message="Plan.", tools=[look]),
            Phase(name="build", developer_message="Build.", tools=[build]),
            Phase(name="review", developer_message="Review.", tools=[check], next=("plan",)),
        ],
        **options,
    )


SEED = "This is the phase {}. The phase before, {}, has handed on:\n\n{}"


def tools_of(model: ScriptedModel, number: int) -> list[str]:
    return [definition.name for definition in model.requests[number].tools]


async def test_each_phase_has_its_own_context_tools_and_developer_message(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [
            call("look"),
            call("next_phase", decisions="Rename it."),
            call("build"),
            call("next_phase", decisions="Renamed."),
            call("check"),
            say("done"),
        ]
    )
    policy = phases()
    async with checked_host() as host:
        session = await policy.create_session(
            host,
            model=model,
            on_permission_request=approve_all,
            system_message="You refactor.",
            developer_messages="Be terse.",
        )
        assert await policy.phase_of(session) == "plan"
        reply = await session.send_and_wait("go")
        assert reply.content == "done"
        assert await policy.phase_of(session) == "review"
        assert model.requests[2].contents == (
            "You refactor.", "Be terse.", "Build.", SEED.format("build", "plan", "Rename it.")
        )  # fmt: skip
        assert model.requests[4].contents == (
            "You refactor.", "Be terse.", "Review.", SEED.format("review", "build", "Renamed.")
        )  # fmt: skip
        assert [tools_of(model, number) for number in (0, 2, 4)] == [
            ["look", "next_phase"], ["build", "next_phase"], ["check", "next_phase"]
        ]  # fmt: skip
        assert await triggers(session) == ["phase:build", "phase:review"]
        assert host.metrics.value("exeunt_context_clear_triggers_total", trigger="phase") == 2
    model.verify()


async def test_a_phase_may_lead_back(autojump_clock: MockClock) -> None:
    model = ScriptedModel(
        [
            call("next_phase", decisions="one"),
            call("next_phase", decisions="two"),
            call("next_phase", decisions="again", phase_name="build"),
            call("next_phase", decisions="again", phase_name="plan"),
            say("planning"),
        ]
    )
    policy = phases(template="{phase}: {prompt}")
    async with checked_host() as host:
        session = await policy.create_session(host, model=model, on_permission_request=approve_all)
        await session.send_and_wait("go")
        assert await outcomes(session) == [
            ("next_phase", "success"),
            ("next_phase", "success"),
            ("next_phase", "failure"),
            ("next_phase", "success"),
        ]
        assert "build does not follow review; plan does" in model.requests[3].results["call_3"]
        assert model.requests[-1].contents == ("Plan.", "plan: again")
        assert await policy.phase_of(session) == "plan"
    model.verify()


@pytest.mark.parametrize("decisions", ["", "  ", "x" * 11])
async def test_decisions_that_cannot_be_a_seed_leave_the_phase_as_it_is(
    autojump_clock: MockClock, decisions: str
) -> None:
    model = ScriptedModel([call("next_phase", decisions=decisions), say("well")])
    policy = phases(longest_seed=10)
    async with checked_host() as host:
        session = await policy.create_session(host, model=model, on_permission_request=approve_all)
        await session.send_and_wait("go")
        assert await policy.phase_of(session) == "plan"
        assert await outcomes(session) == [("next_phase", "failure")]


async def test_a_clear_that_is_rolled_back_leaves_the_phase_as_it_is(autojump_clock: MockClock) -> None:
    gate = Gate()
    model = ScriptedModel([[call("next_phase", decisions="on"), call("slow")], call("look"), say("well")])
    policy = phases()
    async with checked_host() as host:
        session = await policy.create_session(
            host, model=model, on_permission_request=approve_all, tools=[plain_tool("slow", gate)]
        )
        await session.send("go")
        await gate.entered()
        await session.abort()
        assert await policy.phase_of(session) == "plan"
        await session.send_and_wait("and?")
        assert tools_of(model, 2) == ["slow", "look", "next_phase"]
        assert (await outcomes(session))[-1] == ("look", "success")


async def test_a_handoff_in_the_middle_of_a_phase_keeps_the_phase(autojump_clock: MockClock) -> None:
    handoff = HandoffPolicy(
        at=messages(3), remind_every=1, force_after=0, summarize=ScriptedModel([], default=say("SUMMARY"))
    )
    model = ScriptedModel(
        [
            *looks(2),
            call("next_phase", decisions="on"),
            call("build"),
            call("build"),
            call("next_phase", decisions="done"),
            say("reviewed"),
        ]
    )
    policy = phases()
    async with checked_host() as host:
        session = await policy.create_session(
            host, **handoff.extend(model=model, on_permission_request=approve_all)
        )
        assert (await session.send_and_wait("go")).content == "reviewed"
        assert await triggers(session) == [
            "handoff_messages", "phase:build", "handoff_messages", "phase:review"
        ]  # fmt: skip
        assert model.requests[5].contents == ("Build.", "SUMMARY")
        assert await policy.phase_of(session) == "review"
    model.verify()


async def test_a_crash_between_the_clear_and_its_seed_begins_the_phase_all_the_same(
    autojump_clock: MockClock,
) -> None:
    crashed: list[bool] = []
    model = ScriptedModel([call("next_phase", decisions="on"), call("build"), say("built")])
    policy = phases()
    async with checked_host() as host:

        async def crash_once(hook_input: Any, invocation: Any) -> None:
            if hook_input.prompt != "go" and not crashed:
                crashed.append(True)
                crash_session(invocation.session)
            await trio.lowlevel.checkpoint()

        session = await policy.create_session(
            host, model=model, on_permission_request=approve_all, on_user_prompt_submitted=crash_once
        )
        await session.send("go")
        await settled(session)
        assert crashed
        assert tools_of(model, 1) == ["build", "next_phase"]
        assert await ends(session) == ["terminal_tool", "completed"]
        assert await policy.phase_of(session) == "build"


async def test_a_stored_session_is_taken_up_in_its_phase() -> None:
    store = MemoryStore()
    async with open_host(journal=DurableJournal(store)) as host:
        session = await phases().create_session(
            host,
            session_id="s1",
            model=ScriptedModel([call("next_phase", decisions="on"), say("built")]),
            on_permission_request=approve_all,
        )
        await session.send_and_wait("go")
    policy = phases()
    model = ScriptedModel([call("build"), say("again"), call("build"), say("woken")])

    async def session_options(session_id: str, metadata: Any) -> Any:
        keywords = await policy.options_for(host, session_id, model=model, on_permission_request=approve_all)
        return build_options(**keywords)

    async with checked_host(journal=DurableJournal(store), session_options=session_options) as host:
        session = await policy.resume_session(host, "s1", model=model, on_permission_request=approve_all)
        assert await policy.phase_of(session) == "build"
        assert (await session.send_and_wait("more")).content == "again"
        assert tools_of(model, 0) == ["build", "next_phase"]
        await session.disconnect()
        session = await host.resume_session("s1")
        assert (await session.send_and_wait("more")).content == "woken"
    model.verify()


async def test_a_phase_that_is_forgotten_is_read_from_the_log(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("next_phase", decisions="on"), say("built")])
    policy = phases()
    async with checked_host() as host:
        session = await policy.create_session(host, model=model, on_permission_request=approve_all)
        await session.send_and_wait("go")
        assert await phases().phase_of(session) == "build"


async def test_a_session_in_its_last_phase_has_no_way_on(autojump_clock: MockClock) -> None:
    policy = PhasePolicy([Phase(name="only", developer_message="Do it.")])
    model = ScriptedModel([say("done")])
    async with checked_host() as host:
        session = await policy.create_session(host, model=model)
        await session.send_and_wait("go")
        assert tools_of(model, 0) == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([], "at least one"),
        ([Phase(name="a", developer_message="x"), Phase(name="a", developer_message="y")], "two phases"),
        ([Phase(name="", developer_message="x")], "name"),
        ([Phase(name="a\n", developer_message="x")], "name"),
        ([Phase(name="x" * 41, developer_message="x")], "name"),
        ([Phase(name="a", developer_message="x", next=("b",))], "there are not"),
    ],
)
def test_phases_that_lead_nowhere_are_refused(made: list[Phase], said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=said):
        PhasePolicy(made)


def test_a_template_with_another_field_is_refused() -> None:
    with pytest.raises(InvalidConfiguration):
        phases(template="{prompt} {ticket}")


async def test_the_new_preamble_stands_before_the_seed_in_the_log(autojump_clock: MockClock) -> None:
    model = ScriptedModel([call("next_phase", decisions="on"), say("built")])
    async with checked_host() as host:
        session = await phases().create_session(host, model=model, on_permission_request=approve_all)
        await session.send_and_wait("go")
        log: list[Event] = list(await session.get_events())
        boundary = next(n for n, event in enumerate(log) if event.type == "session.context_cleared")
        names = [event.type for event in log[boundary:]]
        assert names.index("system.message") < names.index("user.message")
        assert len(await logged(session, "system.message")) == 2


async def test_who_goes_back_behind_a_phase_is_in_the_phase_of_then() -> None:
    model = ScriptedModel(
        [
            call("look"),
            "planned so far",
            call("next_phase", decisions="Rename it."),
            call("build"),
            "built it",
            "a better plan",
            call("next_phase", decisions="Rename all."),
            "built it all",
        ]
    )
    policy = phases()
    store = MemoryStore()
    async with checked_host(journal=DurableJournal(store)) as host:
        session = await policy.create_session(
            host, model=model, on_permission_request=approve_all, session_id="s"
        )
        await session.send_and_wait("plan")
        planned = (await logged(session, "turn.end"))[-1]
        await session.send_and_wait("go on")
        assert await policy.phase_of(session) == "build"
        await session.history.truncate(planned.id)
        assert await policy.phase_of(session) == "plan"
        await session.send_and_wait("once more")
        assert tools_of(model, 5) == ["look", "next_phase"]
        assert "Plan." in model.requests[5].contents
        assert "Build." not in model.requests[5].contents
    async with checked_host(journal=DurableJournal(store)) as host:
        session = await policy.resume_session(host, "s", model=model, on_permission_request=approve_all)
        assert await phases().phase_of(session) == "plan"
        await session.send_and_wait("and now?")
        assert tools_of(model, 6) == ["look", "next_phase"]
        assert tools_of(model, 7) == ["build", "next_phase"]


async def test_an_embedded_host_is_told_how_it_goes_through_phases() -> None:
    class Embedded:
        pass

    embedded: Any = Embedded()
    with pytest.raises(InvalidConfiguration, match=r"first_options\(\)"):
        await phases().create_session(embedded, model=ScriptedModel([]))
