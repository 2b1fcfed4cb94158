"""What is wrong with the arguments of a host or a session is said by an error of ours, with the argument's name."""

from pathlib import Path
from typing import Any

import pytest
import trio

from exeunt import (
    Hooks,
    InvalidConfiguration,
    JournalError,
    Limits,
    SessionOptions,
    StoreUnavailable,
    open_host,
)
from exeunt.testing import ScriptedModel


def nothing(hook_input: object, invocation: object) -> None:
    """A hook that says nothing."""


HOST: list[tuple[dict[str, Any], str]] = [
    ({"journal": 3}, "journal is a URL or a Journal, not 3"),
    ({"journal": "nowhere"}, "a journal's URL begins with"),
    ({"journal": "sqlite:///"}, "names no file"),
    ({"registry": 3}, "registry is a CollectorRegistry of prometheus_client, not 3"),
    ({"session_options": 3}, "session_options is an async function"),
    ({"options": {"threads": 3}}, "options are HostOptions, not"),
]


@pytest.mark.parametrize(("arguments", "said"), HOST)
async def test_a_wrong_argument_of_a_host_is_named_before_anything_is_opened(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        async with open_host(**arguments):
            pass
    assert said in str(refused.value)


async def test_a_journal_that_cannot_be_opened_is_its_own_error_and_no_group(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        async with open_host(journal=f"sqlite:///{tmp_path}/file/journal.db"):
            pass
    (tmp_path / "letter.db").write_bytes(b"To be, or not to be" * 100)
    with pytest.raises(JournalError, match=r"letter\.db"):
        async with open_host(journal=f"sqlite:///{tmp_path}/letter.db"):
            pass


async def test_a_host_that_is_cancelled_while_its_journal_opens_is_cancelled(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_host(journal=f"sqlite:///{tmp_path}/journal.db"):
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


SESSION: list[tuple[dict[str, Any], str]] = [
    ({"modle": 3}, "a session has no option 'modle'; did you mean model?"),
    ({"surprise": 3}, "a session has no option 'surprise'; there are model, provider, tools"),
    ({"model": 3}, "model must be an object with complete() and stream(), or a name, not 3"),
    ({"tools": 3}, "tools must be a list of tools, or a ToolSet, not 3"),
    ({"tools": "add"}, "tools must be a list of tools, or a ToolSet, not 'add'"),
    ({"system_message": 3}, "system_message must be a text, not 3"),
    ({"developer_messages": 3}, "developer_messages is a text or a list of texts, not 3"),
    ({"developer_messages": [""]}, "developer_messages must be texts that are not empty, not ''"),
    ({"on_permission_request": 3}, "on_permission_request must be callable, not 3"),
    ({"on_user_input_request": 3}, "on_user_input_request must be callable, not 3"),
    ({"on_pre_tool_use": 3}, "on_pre_tool_use must be callable, not 3"),
    ({"hooks": 3}, "hooks is a mapping or Hooks, not 3"),
    ({"hooks": {"on_pre_tooluse": nothing}}, "unknown hooks ['on_pre_tooluse']"),
    (
        {"hooks": Hooks(on_pre_tool_use=nothing), "on_pre_tool_use": nothing},
        "on_pre_tool_use is given twice: beside hooks, and in it",
    ),
    ({"tenant": 3}, "tenant must be a text, not 3"),
    ({"streaming": "yes"}, "streaming must be True or False, not 'yes'"),
    ({"siblings": "some"}, "siblings must be 'wait' or 'cancel', not 'some'"),
    ({"durability": "some"}, "durability must be 'default' or 'strict' or 'relaxed', not 'some'"),
    ({"mailbox_size": "1"}, "mailbox_size must be a whole number of at least 0, not '1'"),
]


@pytest.mark.parametrize(("options", "said"), SESSION)
async def test_a_wrong_option_of_a_session_is_named_and_makes_no_session(
    options: dict[str, Any], said: str
) -> None:
    keywords: dict[str, Any] = {"model": ScriptedModel([]), **options}
    async with open_host() as host:
        with pytest.raises(InvalidConfiguration) as refused:
            await host.create_session(**keywords)
        assert said in str(refused.value)
        assert await host.list_sessions() == []


async def test_options_that_were_made_by_hand_are_checked_too() -> None:
    with pytest.raises(InvalidConfiguration, match="model must be"):
        SessionOptions(model=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="limits must be Limits"):
        SessionOptions(model=ScriptedModel([]), limits={"steps": 3})  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="developer_messages must be a tuple of texts"):
        SessionOptions(model=ScriptedModel([]), developer_messages=["one"])  # type: ignore[arg-type]
    assert SessionOptions(model=ScriptedModel([]), limits=Limits(steps=3)).limits.steps == 3


@pytest.mark.parametrize("session_id", [3, None, ["a"]])
async def test_a_session_is_named_by_a_text(session_id: Any) -> None:
    async with open_host() as host:
        for call in (host.resume_session, host.delete_session, host.fork_session):
            with pytest.raises(InvalidConfiguration, match="a session id is a text, not"):
                await call(session_id)
        with pytest.raises(InvalidConfiguration, match="a session id is a text, not"):
            host.get_session(session_id)


async def test_a_listing_is_of_a_tenant_and_has_a_number_of_rows() -> None:
    async with open_host() as host:
        with pytest.raises(InvalidConfiguration, match="tenant is a text, not 3"):
            await host.list_sessions(tenant=3)  # type: ignore[arg-type]
        for limit in (0, -1, 1.5, True):
            with pytest.raises(InvalidConfiguration, match="limit is"):
                await host.list_sessions(limit=limit)  # type: ignore[arg-type]
