"""`exeunt sessions`: what is stored, shown, moved, deleted, checked and repaired."""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from exeunt import (
    InvalidConfiguration,
    JournalError,
    StoreUnavailable,
    ToolInvocation,
    approve_all,
    open_host,
    tool,
)
from exeunt.actors.events import Event, SessionTruncated, TurnEnd
from exeunt.cli.sessions.checking import repair_journal, verify_journal
from exeunt.cli.sessions.looking import delete_sessions, list_sessions, show_session
from exeunt.cli.sessions.place import default_journal, sqlite_path, user_data
from exeunt.cli.sessions.transfer import export_sessions, import_sessions
from exeunt.testing import ScriptedModel, call, say
from tests.actors.media_support import PIXEL
from tests.cli.programs import run


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the context."""
    await invocation.session.history.clear_context(prompt)
    return "cleared"


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    """A journal with two sessions; `hamlet` has a clear and a truncation in its log."""
    path = tmp_path / "log.sqlite3"
    async with open_host(journal=url(path)) as host:
        for name, tenant in (("hamlet", "ada"), ("horatio", "bob")):
            model = ScriptedModel(
                [say("hi"), call("clear_context", prompt="go on"), say("on it"), say("äöü")]
            )
            session = await host.create_session(
                session_id=name, tenant=tenant, model=model, tools=[clear_context], system_message="Be brief.",
                on_permission_request=approve_all,
            )  # fmt: skip
            await session.send_and_wait("hello")
            await session.send_and_wait("start over")
            if name == "hamlet":
                end = next(event for event in await session.get_events() if isinstance(event, TurnEnd))
                await session.history.truncate(end.id)
            await session.send_and_wait("one more, with a \u2028 separator and an \x1b escape")
    return path


async def logs(path: Path) -> Mapping[str, list[Event]]:
    async with open_host(journal=url(path)) as host:
        return {
            item.session_id: list(await host.journal.read(item.session_id))
            for item in await host.list_sessions()
        }


async def ok(*arguments: str, path: Path, stdin: bytes = b"", **variables: str) -> str:
    done = await run("sessions", *arguments, "--journal", url(path), stdin=stdin, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


async def refused(*arguments: str, path: Path, stdin: bytes = b"") -> str:
    """What a command says that cannot be done: one line, no traceback."""
    done = await run("sessions", *arguments, "--journal", url(path), stdin=stdin)
    assert done.returncode == 1
    assert re.fullmatch(r"exeunt: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


# --- List, show, delete --------------------------------------------------------------------------------------


async def test_sessions_are_listed_the_one_used_last_first(journal: Path) -> None:
    text = await ok("list", path=journal)
    assert re.findall(r"^(\w+) +(\w+)", text, re.MULTILINE)[1:] == [("horatio", "bob"), ("hamlet", "ada")]
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    found = json.loads(await ok("list", "--json", path=journal))
    assert [item["session_id"] for item in found] == ["horatio", "hamlet"]
    assert set(found[0]) == {"session_id", "tenant", "start_time", "modified_time", "events"}
    assert "hamlet" not in await ok("list", "--tenant", "bob", path=journal)
    assert "more than 1" in await ok("list", "--limit", "1", path=journal)


async def test_long_names_fit_into_a_table_of_80_columns(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    async with open_host(journal=url(path)) as host:
        await host.create_session(session_id="x" * 128, tenant="y" * 60, model=ScriptedModel([]))
    text = await ok("list", path=path)
    assert max(map(len, text.splitlines())) <= 80


async def test_a_session_is_shown_with_its_conversation_and_its_last_events(journal: Path) -> None:
    text = await ok("show", "hamlet", path=journal)
    assert re.search(r"^generation +2 *$", text, re.MULTILINE)
    assert re.findall(r"^(system|user|assistant)  ", text, re.MULTILINE) == [
        "system",
        *["user", "assistant"] * 2,
    ]
    assert len(re.findall(r"^\d+ \d\d:\d\d:\d\d ", text, re.MULTILINE)) == 10
    assert "\x1b" not in text
    found = json.loads(await ok("show", "hamlet", "--json", "--events", "1", path=journal))
    assert [message["content"] for message in found["messages"]][:3] == ["Be brief.", "hello", "hi"]
    assert [event["type"] for event in found["last_events"]] == ["session.shutdown"]
    assert (found["waiting"], found["turn_under_way"], found["generation"]) == ([], False, 2)


async def test_pictures_are_named_and_not_printed_and_go_through_an_export_whole(tmp_path: Path) -> None:
    path, other, exported = tmp_path / "a.sqlite3", tmp_path / "b.sqlite3", tmp_path / "a.jsonl"
    async with open_host(journal=url(path)) as host:
        session = await host.create_session(session_id="hamlet", model=ScriptedModel(["alas"]))
        await session.send_and_wait("look", attachments=[PIXEL])
    assert "user       look [pixel.png, image/png, 70 bytes]" in await ok("show", "hamlet", path=path)
    found = json.loads(await ok("show", "hamlet", "--json", path=path))
    assert found["messages"][0]["media"] == ["pixel.png, image/png, 70 bytes"]
    await ok("export", "--all", "-o", str(exported), path=path)
    await ok("import", str(exported), path=other)
    assert (await logs(other))["hamlet"] == (await logs(path))["hamlet"]


async def test_deleted_sessions_are_gone_and_others_stay(journal: Path) -> None:
    assert "no session has the id 'nobody'" in await refused("delete", "hamlet", "nobody", path=journal)
    assert len(await logs(journal)) == 2
    assert await ok("delete", "hamlet", path=journal) == "deleted hamlet\n"
    assert list(await logs(journal)) == ["horatio"]


# --- Export and import ---------------------------------------------------------------------------------------


async def test_what_was_exported_and_imported_is_the_same(journal: Path, tmp_path: Path) -> None:
    exported, other = tmp_path / "all.jsonl", tmp_path / "other.sqlite3"
    before = await logs(journal)
    assert any(isinstance(event, SessionTruncated) for event in before["hamlet"])
    assert "2 sessions" in await ok("export", "--all", "-o", str(exported), path=journal)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    header = json.loads(exported.read_text(encoding="utf-8").splitlines()[0])
    assert (header["exeunt"], header["format"]) == ("sessions", 1)
    assert "imported hamlet" in await ok("import", str(exported), path=other)
    assert await logs(other) == before
    async with open_host(journal=url(other)) as host:
        session = await host.resume_session("hamlet", model=ScriptedModel([say("yes")]))
        assert (await session.send_and_wait("still there?")).content == "yes"


async def test_one_session_passes_through_a_pipe(journal: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite3"
    text = await ok("export", "horatio", path=journal)
    await ok("import", "-", path=other, stdin=text.encode())
    assert await logs(other) == {"horatio": (await logs(journal))["horatio"]}


async def test_fields_that_a_later_version_adds_are_ignored(journal: Path, tmp_path: Path) -> None:
    lines = (await ok("export", "horatio", path=journal)).splitlines()
    later = [
        json.dumps({**json.loads(line), "colour": ["red"]}).replace('"seq"', '"hue": 7, "seq"')
        for line in lines
    ]
    other = tmp_path / "other.sqlite3"
    await ok("import", "-", path=other, stdin="\n\n".join(later).encode())
    assert await logs(other) == {"horatio": (await logs(journal))["horatio"]}


BAD_LINES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "no JSON": (lambda lines: [*lines[:3], "{"], "line 4 is no JSON"),
    "no object": (lambda lines: [*lines[:3], "[1]"], "line 4 is no JSON object"),
    "no header": (lambda lines: lines[1:], "begins with a header"),
    "empty": (lambda lines: [], "line 1 is no JSON"),
    "a future format": (lambda lines: ['{"exeunt": "sessions", "format": 2}', *lines[1:]], "format 2"),
    "a gap": (lambda lines: [*lines[:3], *lines[4:]], "line 4"),
    "an event twice": (lambda lines: [*lines[:3], lines[2], *lines[3:]], "line 4"),
    "an unknown event": (lambda lines: [*lines[:2], lines[2].replace('"system.message"', '"x"')], "line 3"),
    "a field is missing": (lambda lines: [*lines[:2], lines[2].replace('"content"', '"c"')], "line 3"),
    "no event": (lambda lines: [*lines[:2], lines[2].replace('"event"', '"e"')], "line 3: it holds no event"),
    "no session": (lambda lines: [*lines[:2], lines[2].replace('"session_id"', '"s"')], "line 3"),
    "another id": (lambda lines: [*lines[:2], lines[2].replace("-8000-", "-9000-")], "line 3"),
    "another parent": (lambda lines: [*lines[:2], re.sub('"parent_id": "[^"]+', '"parent_id": "x', lines[2])],
                       "line 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_LINES)
async def test_a_bad_file_is_refused_with_its_line_and_changes_nothing(
    case: str, journal: Path, tmp_path: Path
) -> None:
    change, named = BAD_LINES[case]
    source, other = tmp_path / "horatio.jsonl", tmp_path / "other.sqlite3"
    await export_sessions(url(journal), ["horatio"], False, source)
    source.write_text("\n".join(change(source.read_text().splitlines())))
    with pytest.raises(InvalidConfiguration, match=named):
        await import_sessions(url(other), source)
    assert await logs(other) == {}


async def test_a_bad_file_is_refused_in_one_line(journal: Path) -> None:
    assert "line 1" in await refused("import", "-", path=journal, stdin=b"nonsense")


async def test_a_session_that_is_there_is_not_imported_again(journal: Path) -> None:
    before = await logs(journal)
    text = await ok("export", "horatio", path=journal)
    assert "exists already" in await refused("import", "-", path=journal, stdin=text.encode())
    assert await logs(journal) == before


async def test_an_export_never_overwrites(journal: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    assert str(there) in await refused("export", "--all", "-o", str(there), path=journal)
    assert there.read_text() == "mine"
    done = await run("sessions", "export", "--journal", url(journal))
    assert done.returncode == 2
    assert "--all" in done.stderr
    assert "cannot be read" in await refused("import", str(tmp_path / "nowhere"), path=journal)


# --- Verify and repair ---------------------------------------------------------------------------------------


def damage(path: Path) -> None:
    """Let a bit fall over in the last slice of one session."""
    with closing(sqlite3.connect(path)) as connection:
        first, data = connection.execute(
            "SELECT first_seq, data FROM slices WHERE session_id = 'hamlet' ORDER BY first_seq DESC"
        ).fetchone()
        torn = bytes([*data[:-1], data[-1] ^ 1])
        connection.execute(
            "UPDATE slices SET data = ? WHERE session_id = 'hamlet' AND first_seq = ?", (torn, first)
        )
        connection.commit()


async def test_a_whole_journal_is_verified(journal: Path) -> None:
    before = await logs(journal)
    text = await ok("verify", path=journal)
    assert "All is whole." in text
    assert f"2 sessions, {sum(map(len, before.values()))} events" in text
    assert json.loads(await ok("verify", "--json", path=journal))["damaged"] == []


async def test_a_damaged_session_is_named_and_repair_keeps_the_rest(journal: Path, tmp_path: Path) -> None:
    before, into = await logs(journal), tmp_path / "repaired.sqlite3"
    damage(journal)
    done = await run("sessions", "verify", "--journal", url(journal))
    assert done.returncode == 1
    assert "damaged: hamlet" in done.stdout
    assert "horatio" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()[1:]) <= 80
    found = json.loads((await run("sessions", "verify", "--json", "--journal", url(journal))).stdout)
    [session] = found["damaged"]
    assert session["whole"] + session["lost"] == len(before["hamlet"])
    assert "checksum" in await refused("show", "hamlet", path=journal)
    text = await ok("repair", "--into", str(into), path=journal)
    assert f"{session['whole']} events kept" in text
    after = await logs(into)
    assert after["horatio"] == before["horatio"]
    assert after["hamlet"] == before["hamlet"][: session["whole"]]
    assert str(into) in await refused("repair", "--into", str(into), path=journal)


# --- Which journal -------------------------------------------------------------------------------------------


async def test_a_journal_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.sqlite3"
    place = url(path)
    assert str(path) in await refused("list", path=path)
    for command in (
        partial(show_session, place, "x", 1, False),
        partial(delete_sessions, place, ["x"]),
        partial(export_sessions, place, [], True, None),
        partial(verify_journal, place, False),
        partial(repair_journal, place, tmp_path / "into"),
    ):
        with pytest.raises(JournalError, match="there is no journal"):
            await command()
    assert entries(tmp_path) == []


@pytest.mark.parametrize("wrong", ["memory:", "ftp://x", "sqlite:", "nonsense"])
async def test_a_url_that_names_no_stored_journal_is_refused(wrong: str) -> None:
    for command in (partial(list_sessions, wrong, None, 1, False), partial(verify_journal, wrong, False)):
        with pytest.raises(InvalidConfiguration):
            await command()


async def test_without_a_url_it_is_the_users_own_journal(journal: Path, tmp_path: Path) -> None:
    text = await ok("export", "--all", path=journal)
    for command in (("import", "-"), ("list",)):
        done = await run("sessions", *command, stdin=text.encode(), XDG_DATA_HOME=str(tmp_path / "data"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "hamlet" in done.stdout
    kept = tmp_path / "data" / "exeunt" / "sessions.sqlite3"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_folder_is_the_one_that_the_system_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    local = tmp_path / ".local" / "share" / "exeunt"
    assert user_data({}, "linux") == local
    assert user_data({"XDG_DATA_HOME": "relative"}, "linux") == local
    assert user_data({"XDG_DATA_HOME": "/data"}, "linux") == Path("/data/exeunt")
    assert user_data({}, "darwin") == tmp_path / "Library" / "Application Support" / "exeunt"
    assert user_data({"LOCALAPPDATA": "/local"}, "win32") == Path("/local/exeunt")
    assert user_data({}, "win32") == tmp_path / "AppData" / "Local" / "exeunt"


def test_the_url_of_the_users_journal_holds_any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/a b/100%/#1?")
    monkeypatch.setattr("sys.platform", "linux")
    assert sqlite_path(default_journal()) == Path("/a b/100%/#1?/exeunt/sessions.sqlite3")


NO_JOURNALS = [
    ("one", b"x", "there is no journal in PATH: a file of 1 bytes is no database; nothing was changed"),
    (
        "short",
        b"x" * 99,
        "there is no journal in PATH: a file of 99 bytes is no database; nothing was changed",
    ),
    ("empty", b"", "there is no journal in PATH: the file is empty"),
    ("text", b"a text\n" * 100, "sqlite:PATH cannot be opened: file is not a database"),
    ("folder", None, "there is no journal PATH: that is a folder, or no file at all"),
]


@pytest.mark.parametrize(("name", "content", "said"), NO_JOURNALS, ids=[case[0] for case in NO_JOURNALS])
async def test_what_is_no_journal_is_named_and_left_as_it_is(
    name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    for command in (["list"], ["show", "x"], ["export", "--all"], ["delete", "x"]):
        done = await run("sessions", *command, "--journal", url(path))
        assert (done.returncode, done.stdout) == (1, ""), command
        assert done.stderr == f"exeunt: {said.replace('PATH', str(path))}\n"
    done = await run("sessions", "verify", "--journal", url(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert entries(tmp_path) == [path]
    assert content is None or path.read_bytes() == content


async def test_a_journal_that_may_not_be_read_is_named(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path, mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)  # whoever runs tests as root may read everything
    for look in (list_sessions(url(journal), None, 10, False), verify_journal(url(journal), False)):
        with pytest.raises(
            StoreUnavailable, match=rf"the journal {journal} cannot be read: you may not read it"
        ):
            await look


async def test_a_host_writes_over_no_file_that_is_too_short_to_be_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"x")
    with pytest.raises(JournalError, match="a file of 1 bytes is no database; nothing was changed"):
        async with open_host(journal=url(path)):
            raise AssertionError
    assert path.read_bytes() == b"x"
