"""What the pages show runs as it stands, and the programs in examples/ do what they say."""

import ast
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, Block, blocks

PROGRAMS = blocks("python")
FRAGMENTS = blocks("python fragment")
KNOWN = {"", "console", "json", "python", "python fragment", "sh", "text", "toml", "yaml"}

EXAMPLES = {
    "approvals.py": ["Sent to ada@example.org.", "rejected: delete_everything"],
    "handoff.py": [
        "phase:change: 5 messages were put away",
        "  forced: past the mark of messages",
        "handoff_messages: 6 messages were put away",
        "review: Done: 3 files changed, and they fit together.",
    ],
    "reviewer.py": [
        "60 s: Squash the commits of change 7?",
        "60 s: yes: 200",
        "60 s: once more: 409",
        "120 s: approved: 200",
        "Change 7 is merged, its commits squashed.",
    ],
    "metrics.py": ['exeunt_turn_terminations_total{reason="completed"} 3.0'],
}


@pytest.fixture
def module(request: pytest.FixtureRequest) -> Iterator[types.ModuleType]:
    """A module of its own for a program: classes and annotations look for their names in it."""
    made = types.ModuleType("documented_program")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.place)
def test_a_program_of_a_page_runs(block: Block, module: types.ModuleType) -> None:
    exec(compile(_placed(block), str(block.page), "exec"), vars(module))


@pytest.mark.parametrize("block", FRAGMENTS, ids=lambda block: block.place)
def test_a_fragment_of_a_page_is_python(block: Block) -> None:
    compile(_placed(block), str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_there_are_programs_and_each_block_says_what_it_is() -> None:
    assert len(PROGRAMS) > 10
    every = blocks(*KNOWN)
    strange = {f"{page}: {info}" for page, info in _infos() if info not in KNOWN}
    assert strange == set()
    assert every


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_does_what_it_says(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.splitlines()
    assert [line for line in EXAMPLES[name] if line not in printed] == []


def test_each_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


def _placed(block: Block) -> str:
    """The block's text on the lines on which it stands in its page, so that a traceback names them."""
    return "\n" * (block.line - 1) + block.text


def _infos() -> Iterator[tuple[Path, str]]:
    from tests.docs.documents import PAGES, blocks_of

    for page in PAGES:
        for block in blocks_of(page):
            yield page.relative_to(ROOT), block.info
