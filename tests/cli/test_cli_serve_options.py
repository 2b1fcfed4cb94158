"""What the options and variables of the servers come to."""

import gc
import logging
import os
import re
import weakref
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration
from exeunt.cli.serve import serving
from exeunt.cli.serve.switches import ROOTS, instruction_roots, switched_on, whole_number
from exeunt.testing import ScriptedModel, checked_host
from exeunt.wire.options import Tokens, WireOptions
from exeunt.wire.server import WireServer
from exeunt.wire.serving.models import DefaultProvider
from tests.wire.wire_client import Wire


@pytest.mark.parametrize(
    ("level", "lowest"),
    [("none", None), ("error", logging.ERROR), ("warn", logging.WARNING), ("all", logging.INFO)],
)
def test_a_log_level_lets_through_what_it_says(
    level: str, lowest: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(logging, "root", root)
    serving.log_to_stderr(level)
    named = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    assert [each for each in named if root.isEnabledFor(each)] == [
        each for each in named if lowest is not None and each >= lowest
    ]


@pytest.mark.parametrize(
    ("value", "on"), [("1", True), (" Yes ", True), ("on", True), ("", False), ("0", False), ("FALSE", False)]
)
def test_a_variable_turns_something_on_or_off(value: str, on: bool) -> None:
    assert switched_on({"NAME": value}, "NAME") is on
    assert switched_on({}, "NAME") is False


def test_a_variable_that_says_neither_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="it is 'perhaps'"):
        switched_on({"NAME": "perhaps"}, "NAME")


def test_the_folders_of_instructions_come_from_options_or_from_a_variable(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.symlink_to(one)
    named = {ROOTS: f"{one}{os.pathsep}{two}"}
    for anywhere in (True, False):
        assert instruction_roots(named, anywhere=anywhere) == (one, one)
        assert instruction_roots(named, [tmp_path], anywhere=anywhere) == (tmp_path,)
        assert instruction_roots({ROOTS: ""}, anywhere=anywhere) == ()
    assert instruction_roots({}) == ()
    assert instruction_roots({}, anywhere=True) == (Path("/"),)
    with pytest.raises(InvalidConfiguration, match="three' is no folder"):
        instruction_roots({}, [tmp_path / "three"])


async def test_a_server_keeps_no_options_of_sessions_that_have_left_memory(autojump_clock: MockClock) -> None:
    default = DefaultProvider(client=ScriptedModel(["hi", "again"]), model="m")
    served = serving.Served(default=default, options=WireOptions())
    async with checked_host(options=served.host_options) as host, trio.open_nursery() as nursery:
        wire = Wire(
            WireServer(host, options=served.options, tokens=Tokens({}), default=default), host, nursery
        )
        client = await wire.connect()
        await client.create(systemMessage={"mode": "replace", "content": "long " * 1000})
        await client.say()
        await client.event("session.idle")
        actor = host.find("s")
        assert actor is not None
        options = weakref.ref(actor.options)
        del actor
        await client.call("session.detach", sessionId="s")
        gc.collect()
        assert options() is None
        # Who takes it up says anew what it runs with.
        await client.call("session.resume", sessionId="s")
        await client.say()
        await client.event("session.idle", 2)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("value", "number"), [("7", 7), (" 0 ", 0), ("10", 10), ("", None)])
def test_a_variable_says_a_number(value: str, number: int | None) -> None:
    assert whole_number({"NAME": value}, "NAME", least=0, most=10) == number
    assert whole_number({}, "NAME") is None


@pytest.mark.parametrize(
    ("value", "least", "most", "said"),
    [
        ("0", 1, None, "NAME must be a whole number above 0, not '0'"),
        ("-1", 0, None, "NAME must be a whole number, not '-1'"),
        ("11", 0, 10, "NAME must be a whole number from 0 to 10, not '11'"),
        ("1_0", 0, 10, "from 0 to 10, not '1_0'"),
        ("\uff17", 0, 10, "from 0 to 10"),
        pytest.param("1" * 5_000, 0, None, "NAME must be a whole number", id="very long"),
    ],
)
def test_a_variable_that_says_no_such_number_is_named(
    value: str, least: int, most: int | None, said: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(said)):
        whole_number({"NAME": value}, "NAME", least=least, most=most)
