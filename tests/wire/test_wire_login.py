"""Tokens and tenants."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from exeunt import InvalidConfiguration
from exeunt.host import open_host
from exeunt.testing import ScriptedModel
from exeunt.wire.options import Tokens, WireOptions
from exeunt.wire.server import open_wire_server
from tests.wire.wire_client import WireFailure, open_wire, tool

TWO = {"ada's token": "ada", "bob's token": "bob"}


async def test_without_a_token_nothing_but_connect_is_answered(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), tokens={"secret": ""}) as wire:
        client = wire.raw()
        for method in ("ping", "session.create", "no.such.method"):
            with pytest.raises(WireFailure, match=r"^AUTHENTICATION_REQUIRED$") as refused:
                await client.call(method)
            assert refused.value.code == -32001
        assert wire.server.hub.sessions == {}


@pytest.mark.parametrize("handshake", [{}, {"token": ""}, {"token": "wrong"}, {"token": "secret "}])
async def test_a_wrong_token_is_refused_and_may_be_followed_by_the_right_one(
    handshake: dict[str, str], autojump_clock: MockClock
) -> None:
    async with open_wire(ScriptedModel([]), tokens={"secret": ""}) as wire:
        client = wire.raw()
        with pytest.raises(WireFailure, match=r"^AUTHENTICATION_FAILED$") as refused:
            await client.call("connect", **handshake)
        assert refused.value.code == -32002
        assert (await client.call("connect", token="secret"))["ok"] is True
        assert (await client.call("ping"))["message"] == "pong"


async def test_a_token_where_none_is_configured_is_refused(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([])) as wire:
        client = wire.raw()
        with pytest.raises(WireFailure, match=r"^AUTHENTICATION_NOT_CONFIGURED$") as refused:
            await client.call("connect", token="any")
        assert refused.value.code == -32003
        # Without a configured token other methods work before the handshake.
        assert (await client.call("ping"))["message"] == "pong"


async def test_who_guesses_tokens_is_cut_off(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), tokens={"secret": ""}) as wire:
        client = wire.raw()
        for _ in range(10):
            await client.start("connect", token="guess")
        await client.closed.wait()
        assert wire.server.statistics().closed == {"wrong_tokens": 1}


async def test_who_shows_no_token_in_time_is_cut_off(autojump_clock: MockClock) -> None:
    async with open_wire(
        ScriptedModel([]), tokens={"secret": ""}, options=WireOptions(login_timeout=30)
    ) as wire:
        silent, known = wire.raw(), await wire.connect(token="secret")
        began = trio.current_time()
        await silent.closed.wait()
        assert trio.current_time() - began == pytest.approx(30)
        assert wire.server.statistics().closed == {"no_token": 1}
        assert (await known.call("ping"))["message"] == "pong"


class Comparisons:
    """Stands in for `hmac.compare_digest`; keeps what it compares."""

    def __init__(self) -> None:
        self.made: list[tuple[bytes, bytes]] = []

    def __call__(self, one: bytes, other: bytes) -> bool:
        self.made.append((one, other))
        return one == other


THREE = {"first": "a", "second": "b", "third": "c"}


@pytest.mark.parametrize(
    ("shown", "tenant"),
    [
        ("first", "a"),
        ("second", "b"),
        ("third", "c"),
        ("fourth", None),
        ("", None),
        ("firs", None),
        ("x" * 9999, None),
    ],
)
def test_a_token_is_compared_in_constant_time_with_every_one_that_there_is_wherever_it_matches(
    shown: str, tenant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, comparisons = Tokens(THREE), Comparisons()
    monkeypatch.setattr("hmac.compare_digest", comparisons)
    assert tokens.tenant(shown) == tenant
    known = [one for one, _ in comparisons.made]
    assert len(known) == len(set(known)) == len(THREE)
    # What is compared is of one length, so that the time says nothing of a token's; and never the token itself.
    assert {len(digest) for pair in comparisons.made for digest in pair} == {32}
    assert len({other for _, other in comparisons.made}) == 1


@pytest.mark.parametrize(
    "token", ["пароль", "пароль ", "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\u0301", "\ud800", "\0"]
)
def test_tokens_of_any_letters_are_told_apart_by_their_code_points(token: str) -> None:
    others = {"пароль": "1", "пароль ": "2", "\u00e9": "3", "e\u0301": "4", "\ud800": "5", "\0": "6"}
    assert Tokens(others).tenant(token) == others[token]
    assert Tokens({key: tenant for key, tenant in others.items() if key != token}).tenant(token) is None


@pytest.mark.parametrize("token", ["", None, b"secret", 7])
def test_a_server_takes_no_token_that_is_empty_or_no_text(token: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="a text that is not empty"):
        Tokens({"secret": "", token: "x"})


def test_tokens_tell_tenants_apart() -> None:
    tokens = Tokens(TWO)
    assert tokens.tenant("ada's token") == "ada"
    assert tokens.tenant("bob's token") == "bob"
    assert tokens.tenant("ada's") is None
    assert tokens.tenant("\ud800") is None
    assert not Tokens({})


async def test_a_tenant_sees_sends_to_lists_and_deletes_only_its_own_sessions(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(["for ada"])
    async with open_wire(model, tokens=TWO) as wire:
        ada = await wire.connect(token="ada's token")
        bob = await wire.connect(token="bob's token")
        await ada.create("a", tools=[tool("t")])
        await bob.create("b")
        listed = await bob.call("session.list")
        assert [entry["sessionId"] for entry in listed["sessions"]] == ["b"]
        assert await bob.call("session.getMetadata", sessionId="a") == {}
        assert await bob.call("session.getLastId") == {"sessionId": "b"}
        for method in (
            "session.send",
            "session.sendAndWait",
            "session.abort",
            "session.getMessages",
            "session.queue.clear",
            "session.mode.get",
            "session.eventLog.read",
            "session.suspend",
            "sessions.close",
        ):
            with pytest.raises(WireFailure, match="Session not found for sessionId: a"):
                await bob.call(method, sessionId="a")
        for method in ("session.resume", "sessions.fork"):
            with pytest.raises(WireFailure, match="Session not found: a"):
                await bob.call(method, sessionId="a")
        assert (await bob.call("session.delete", sessionId="a"))["success"] is False
        assert await bob.call("session.destroy", sessionId="a") == {"success": False}
        assert (await bob.call("sessions.bulkDelete", sessionIds=["a"]))["freedBytes"] == {}
        assert (await bob.call("sessions.checkInUse", sessionIds=["a", "b"]))["inUse"] == ["b"]
        with pytest.raises(WireFailure, match="is taken"):
            await bob.create("a")
        await ada.say(session="a")
        await ada.event("session.idle")
        assert bob.events(session="a") == []


async def test_a_stored_session_of_another_tenant_cannot_be_taken_up(autojump_clock: MockClock) -> None:
    async with open_wire(ScriptedModel([]), tokens=TWO) as wire:
        ada = await wire.connect(token="ada's token")
        await ada.create("a")
        await ada.call("session.name.set", sessionId="a", name="Hers")
        await ada.call("session.detach", sessionId="a")
        bob = await wire.connect(token="bob's token")
        with pytest.raises(WireFailure, match="Session not found: a"):
            await bob.call("session.resume", sessionId="a")
        with pytest.raises(WireFailure, match="Session not found for sessionId: a"):
            await bob.call("session.getMessages", sessionId="a")
        assert (await ada.call("session.resume", sessionId="a"))["sessionId"] == "a"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
async def test_a_server_for_other_machines_needs_a_token(address: str) -> None:
    async with open_host() as host:
        with pytest.raises(InvalidConfiguration, match="can be reached from other machines"):
            async with open_wire_server(host, address=address):
                pass
