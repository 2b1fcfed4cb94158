"""Files that a reader can hold in the head, and that mean the same on every machine."""

import re

from tests.project.source_tree import CODE, ROOT, files, python_files, where

LONGEST_FILE = 500
"""Lines. Beyond it nobody reads a file to its end; the aim is 150."""

TEXT = {"", ".cfg", ".ini", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"}

# An absolute path below somebody's home or checkout, but not the path of a URL.
MACHINE_PATH = re.compile(r"(?<![\w.:/*])/(?:home|root|Users|work|workspaces?)/\w")


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    too_long = [
        where(path, lines, "lines")
        for path in python_files(*CODE)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    ]
    assert too_long == []


def test_no_file_names_a_path_of_one_machine() -> None:
    # In a worktree of its own, `.git` is a file that says where the rest of it is.
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    paths = [*top, *files(*CODE, "docs", "newsfragments", ".ci")]
    found = [
        where(path, number, line.strip())
        for path in paths
        if path.suffix in TEXT and not path.name.startswith(".coverage")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_search_for_machine_paths_finds_them_and_spares_urls() -> None:
    assert MACHINE_PATH.search("open('/{}/ada/log')".format("home"))
    assert not MACHINE_PATH.search("https://example.org/home/ada")


def test_what_git_ignores_at_the_top_can_be_removed_by_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    removed = re.sub(r"\$\(VENV\)", ".venv", " ".join(re.findall(r"rm -rf (.*)", makefile))).split()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    anywhere = {"__pycache__/", "node_modules/"}
    assert [name for name in ignored if name not in anywhere and name.rstrip("/") not in removed] == []
