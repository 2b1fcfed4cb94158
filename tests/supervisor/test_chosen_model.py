"""A model that was chosen while a session ran holds when it comes back, also where a function gives its options."""

from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt import SessionOptions, build_options, open_host
from exeunt.actors.events import SessionModelChange
from exeunt.testing import ScriptedModel, call, checked_host
from exeunt.wire.server import WireServer
from exeunt.wire.serving.models import DefaultProvider
from tests.actors.session_support import open_session
from tests.actors.test_auto_model import WEEKLY, Named, saying
from tests.supervisor.passivation_support import AFTER, idle_away, passivating
from tests.wire.wire_client import Wire, tool


class Models:
    """A `session_options` function with a model, and another for limits. Notes which model it is told of."""

    def __init__(self, replies: list[Any], others: list[Any]) -> None:
        self.own, self.auto = Named("own", replies), Named("auto", others)
        self.told: list[str] = []

    def keywords(self) -> dict[str, Any]:
        return {
            "model": self.own,
            "auto_model": self.auto,
            "on_auto_mode_switch_request": saying("yes"),
        }

    async def __call__(self, session_id: str, metadata: Any) -> SessionOptions:
        await trio.lowlevel.checkpoint()
        self.told.append(metadata.model)
        return build_options(**self.keywords())


async def test_the_model_that_has_taken_over_at_a_limit_stays_when_the_session_comes_back(
    autojump_clock: object,
) -> None:
    models = Models([WEEKLY], ["one", "two"])
    async with passivating(session_options=models) as host:
        session = await host.create_session(**models.keywords())
        assert (await session.send_and_wait("A")).content == "one"
        await idle_away(session)
        assert (await session.send_and_wait("B")).content == "two"
        assert models.told == ["auto"]
        changes = [event for event in await session.get_events() if isinstance(event, SessionModelChange)]
        assert [change.new_model for change in changes] == ["auto"]
    models.own.verify()
    models.auto.verify()


async def test_so_it_does_in_another_process(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path / 'journal.db'}"
    models = Models([WEEKLY], ["one", "two"])
    async with open_host(journal=journal) as host:
        session = await host.create_session(**models.keywords())
        assert (await session.send_and_wait("A")).content == "one"
    async with open_host(journal=journal, session_options=models) as host:
        session = await host.resume_session(session.session_id)
        assert (await session.send_and_wait("B")).content == "two"
    models.auto.verify()


async def test_options_that_are_given_anew_hold(autojump_clock: object) -> None:
    models = Models([WEEKLY, "own again"], ["one"])
    async with checked_host(session_options=models) as host:
        session = await host.create_session(**models.keywords())
        await session.send_and_wait("A")
        await session.disconnect()
        session = await host.resume_session(session.session_id, **models.keywords())
        assert (await session.send_and_wait("B")).content == "own again"
        assert models.told == []


async def test_a_session_without_a_choice_has_what_the_function_gives(autojump_clock: object) -> None:
    models = Models(["one", "two"], [])
    async with passivating(session_options=models) as host:
        session = await open_session(host, models.own)
        await session.send_and_wait("A")
        await idle_away(session)
        assert (await session.send_and_wait("B")).content == "two"
        assert models.told == [""]


async def test_a_function_is_told_the_model_that_the_program_has_given_a_session_since(
    autojump_clock: object,
) -> None:
    models = Models(["from the function"], [])
    async with passivating(session_options=models) as host:
        session = await open_session(host, Named("first", []))
        await host.resume_session(session.session_id, model=Named("second", ["two"]))
        assert (await session.send_and_wait("A")).content == "two"
        await host.resume_session(session.session_id, system_message="Be brief.", model=Named("second", []))
        (change,) = [event for event in await session.get_events() if isinstance(event, SessionModelChange)]
        assert (change.new_model, change.previous_model, change.cause) == ("second", "first", "")
        await idle_away(session)
        assert (await session.send_and_wait("B")).content == "from the function"
        assert models.told == ["second"]


@pytest.mark.parametrize("others", [False, True])
async def test_a_session_of_a_client_comes_back_with_what_its_client_wants(
    others: bool, autojump_clock: object
) -> None:
    """The program that serves it has a function for sessions of its own, which knows nothing of clients."""
    models = Models(["of the program"], [])
    model = ScriptedModel(["one", call("t"), "done"])
    default = DefaultProvider(client=model, model="first")
    async with passivating(session_options=models) as host, trio.open_nursery() as nursery:
        wire = Wire(WireServer(host, default=default), host, nursery)
        if others:
            # Another server on the same host has sessions of its own.
            WireServer(host, default=default)
        client = await wire.connect()
        await client.create(tools=[tool("t")])
        await client.say("A")
        await client.event("session.idle")
        await client.call("session.model.switchTo", sessionId="s", modelId="second")
        await trio.sleep(AFTER + 1)
        assert host.find("s") is None
        client.notifications.clear()
        await client.say("B")
        assert await client.give(await client.requested(), result="from the client")
        await client.event("session.idle")
        assert (await client.call("session.model.getCurrent", sessionId="s"))["modelId"] == "second"
        assert models.told == []
        nursery.cancel_scope.cancel()
    model.verify()
