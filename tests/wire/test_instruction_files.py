"""Files with instructions: which are found, what they say, and no way out of the folders that may be read."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt import InstructionsRefused
from exeunt.wire.instructions import documents, files, reading
from exeunt.wire.instructions.documents import Unfit
from exeunt.wire.instructions.reading import Instructions, Reader, gather

BELOW = ".github/instructions"

NO_NODE = "expected the node content, but found '<stream end>'"
"""What the parser says of an open bracket."""


def put(folder: Path, relative: str, content: str | bytes) -> Path:
    """Write one file, and the folders that it needs."""
    path = folder / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder: Path, *more: str, roots: tuple[Path, ...] = ()) -> Instructions:
    """Read one folder, and others, in roots."""
    return gather([str(folder), *more], "/nowhere", roots or (folder,))


def labels(found: Instructions) -> list[str]:
    """The paths of what was read, in their folder."""
    return [source.label for source in found.sources]


# --- Which files -------------------------------------------------------------------------------------------


def test_the_files_of_a_folder_are_read_in_a_fixed_order(tmp_path: Path) -> None:
    for relative in (
        ".github/instructions/b.instructions.md",
        ".github/instructions/a.instructions.md",
        ".github/instructions/deep/er/c.instructions.md",
        "AGENTS.md",
        "CLAUDE.md",
        ".github/copilot-instructions.md",
    ):
        put(tmp_path, relative, f"of {relative}")
    for other in (
        "README.md",
        ".github/instructions/notes.md",
        "instructions/x.instructions.md",
        "x/AGENTS.md",
    ):
        put(tmp_path, other, "of no interest")
    put(tmp_path, ".github/instructions/blank.instructions.md", " \n")
    found = read(tmp_path)
    assert labels(found) == [
        ".github/copilot-instructions.md",
        "AGENTS.md",
        "CLAUDE.md",
        ".github/instructions/a.instructions.md",
        ".github/instructions/b.instructions.md",
        ".github/instructions/deep/er/c.instructions.md",
    ]
    assert found.problems == ()
    first, *_, last = found.text.split("\n\n")
    assert first == (
        f'<instructions file="{tmp_path}/.github/copilot-instructions.md">\n'
        "of .github/copilot-instructions.md\n</instructions>"
    )
    assert "of .github/instructions/deep/er/c.instructions.md" in last


def test_a_folder_that_is_named_twice_is_read_once_and_so_is_a_file(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", "once")
    (tmp_path / "CLAUDE.md").symlink_to(tmp_path / "AGENTS.md")
    again = tmp_path / "again"
    again.symlink_to(tmp_path)
    assert labels(read(tmp_path, str(again), f"{tmp_path}/./")) == ["AGENTS.md"]


def test_a_relative_path_begins_in_the_working_directory(tmp_path: Path) -> None:
    put(tmp_path / "rules", "AGENTS.md", "be kind")
    found = gather(["rules"], str(tmp_path), (tmp_path,))
    assert [source.path for source in found.sources] == ["rules/AGENTS.md"]


# --- No way out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["/etc", "..", "../root2", "../missing", "../root/../root2", "out", "a/../../../etc"]
)
def test_a_folder_outside_of_the_roots_is_refused_whether_it_is_there_or_not(
    name: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    put(tmp_path / "root2", "AGENTS.md", "secret")
    put(root, "AGENTS.md", "mine")
    (root / "out").symlink_to(tmp_path / "root2")
    with pytest.raises(InstructionsRefused, match="lies in no folder that this server reads"):
        gather([name], str(root), (root,))


def test_without_roots_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstructionsRefused):
        gather([str(tmp_path)], "/", ())


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000, "\ud800"])
async def test_what_is_no_path_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InstructionsRefused, match="is no path of a folder"):
        await Reader([tmp_path]).read([name], str(tmp_path))


async def test_a_disk_that_does_not_answer_is_told_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "AGENTS.md", "rules")
    answers = threading.Event()

    def never(*_: object) -> None:
        answers.wait()

    monkeypatch.setattr(reading, "gather", never)
    monkeypatch.setattr(reading, "SECONDS", 0.01)
    found = await Reader([tmp_path]).read([str(tmp_path)], "/")
    answers.set()
    assert (found.text, found.problems) == ("", ("no instructions: the disk did not answer within 0.01 s",))


async def test_too_many_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InstructionsRefused, match="names 33 folders"):
        await Reader([tmp_path]).read(["x"] * 33, str(tmp_path))


def test_links_are_followed_while_they_stay_inside(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", put(tmp_path, "secret.md", "a key")
    put(root, "shared/rules.md", "shared rules")
    (root / "AGENTS.md").symlink_to("shared/rules.md")
    (root / "CLAUDE.md").symlink_to(secret)
    put(tmp_path, "elsewhere/x.instructions.md", "a key")
    (root / ".github").mkdir()
    (root / ".github" / "instructions").symlink_to(tmp_path / "elsewhere")
    found = read(root)
    assert [source.text for source in found.sources] == ["shared rules"]
    assert found.problems == (f"{root}/CLAUDE.md: leads out of the folders that may be read",)


def test_a_folder_that_becomes_a_link_while_it_is_read_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    put(tmp_path, "elsewhere/x.md", "a key")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    # As if the link had been put there after the path was looked at.
    monkeypatch.setattr(os.path, "realpath", os.path.normpath)
    with pytest.raises(files.Unreadable, match="cannot be read"):
        files.read(root / "folder" / "x.md", (root,))
    (root / "x.md").symlink_to(tmp_path / "elsewhere" / "x.md")
    with pytest.raises(files.Unreadable, match="cannot be read"):
        files.read(root / "x.md", (root,))


# --- What cannot be read -----------------------------------------------------------------------------------


def test_what_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", "x" * (files.LARGEST_FILE + 1))
    put(tmp_path, ".github/copilot-instructions.md", b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "CLAUDE.md")
    put(tmp_path, ".github/instructions/a.instructions.md", "---\napplyTo: {a: 1}\n---\ntext")
    put(tmp_path, ".github/instructions/b.instructions.md", "---\n[\n---\ntext")
    put(tmp_path, ".github/instructions/c.instructions.md", "---\n" + "x" * 5000 + "\n---\ntext")
    put(tmp_path, ".github/instructions/d.instructions.md", "good")
    (tmp_path / ".github/instructions/e.instructions.md").symlink_to("nowhere")
    found = read(tmp_path, str(tmp_path / "missing"))
    assert [source.text for source in found.sources] == ["good"]
    place = f"{tmp_path}/.github/instructions"
    assert [problem.removeprefix(f"{tmp_path}/") for problem in found.problems] == [
        ".github/copilot-instructions.md: is no text in UTF-8",
        "AGENTS.md: has more than 65536 bytes",
        "CLAUDE.md: cannot be read: it is no ordinary file",
        f"{place}/a.instructions.md: its applyTo is no text and no list of texts".removeprefix(
            f"{tmp_path}/"
        ),
        f"{BELOW}/b.instructions.md: what stands between its --- is no YAML: {NO_NODE}",
        ".github/instructions/c.instructions.md: has more than 4096 characters before its second ---",
        ".github/instructions/e.instructions.md: cannot be read: No such file or directory",
        "missing: is no folder",
    ]


def test_files_bytes_entries_and_depth_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_FILES", 3)
    below = tmp_path / ".github/instructions"
    for number in range(5):
        put(below, f"{number}.instructions.md", f"rule {number}")
    found = read(tmp_path)
    assert len(found.sources) == 3
    assert len(found.problems) == 2
    monkeypatch.setattr(reading, "MOST_FILES", 100)
    monkeypatch.setattr(reading, "MOST_BYTES", 13)
    found = read(tmp_path)
    assert len(found.sources) == 2
    monkeypatch.setattr(files, "MOST_ENTRIES", 4)
    monkeypatch.setattr(reading, "MOST_BYTES", 10_000)
    found = read(tmp_path)
    assert found.sources == ()
    assert found.problems == (f"{tmp_path}: .github/instructions has more than 4 entries",)
    monkeypatch.setattr(files, "MOST_ENTRIES", 1_000)
    put(below, "/".join(["d"] * (files.DEEPEST + 1)) + "/x.instructions.md", "too deep")
    put(below, "/".join(["d"] * files.DEEPEST) + "/y.instructions.md", "deep")
    assert [source.text for source in read(tmp_path).sources][-1] == "deep"


def test_a_client_is_told_of_some_problems_and_how_many_more_there_are(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path, f".github/instructions/{number:02}.instructions.md", b"\xff")
    problems = read(tmp_path).problems
    assert len(problems) == reading.MOST_PROBLEMS + 1
    assert problems[-1] == "and 10 more files or folders with instructions were not read"


# --- What a file says --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text", "applies_to", "description"),
    [
        ("plain", "plain", (), ""),
        ("\ufeff---\r\napplyTo: '**/*.py, **/*.pyi'\r\n---\r\ntext\r\n", "text", ("**/*.py", "**/*.pyi"), ""),
        ("---\napplyTo: [a, b]\ndescription: What for\n---\ntext", "text", ("a", "b"), "What for"),
        ("---\nother: 1\n---\ntext", "text", (), ""),
        ("---\njust a line\n---\ntext", "text", (), ""),
        ("---\n\nno second fence", "---\n\nno second fence", (), ""),
    ],
)
def test_what_stands_in_front_says_for_which_files_it_is(
    content: str, text: str, applies_to: tuple[str, ...], description: str
) -> None:
    found = documents.source("x.instructions.md", "p/x.instructions.md", content.encode())
    assert found is not None
    assert (found.text, found.applies_to, found.description) == (text, applies_to, description)
    shown = found.shown()
    assert shown.get("applyTo", []) == list(applies_to)
    assert (shown["type"], shown["id"]) == ("vscode", "p/x.instructions.md")


def test_patterns_and_paths_cannot_break_out_of_their_attribute() -> None:
    found = documents.source("AGENTS.md", 'a"b<c>/AGENTS.md', b"---\napplyTo: '\"><x'\n---\nt")
    assert found is not None
    assert found.told().splitlines()[0] == (
        '<instructions file="a&quot;b&lt;c>/AGENTS.md" applies_to="&quot;>&lt;x">'
    )


@given(
    st.one_of(
        st.binary(max_size=200), st.text(max_size=200).map(lambda text: f"---\n{text}\n---\nx".encode())
    )
)
def test_whatever_is_in_a_file_it_is_read_or_refused(data: bytes) -> None:
    with suppress(Unfit):
        found = documents.source("a", "a", data)
        assert found is None or found.text.strip()
