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
KNOWN = {"", "console", "ini", "json", "python", "python fragment", "sh", "text", "toml", "yaml"}

EXAMPLES = {
    "approvals.py": ["Sent to ada@example.org.", "rejected: delete_everything"],
    "batch_job.py": ["complaint: 3330", "10000 sessions, 100 model calls tried again"],
    "chat_bot.py": [
        "#general bot: There are 3 messages about cats.",
        "#random bot: Stopped, with 1 tool at work.",
    ],
    "fastapi_load.py": ["50 users have a session each, at once"],
    "flask_view.py": [
        "ada 200 {'answer': 'Two lamps are yours.'}",
        "2 reserved for one of them. There are only 1.",
        "1 lamp is left.",
    ],
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
    "tracing.py": [
        "  invoke_agent clerk (terminal_tool)",
        "    - session.context_cleared",
        "      SELECT orders",
        "    -> context_cleared",
    ],
    "support_agent.py": ["You get 30 euros back."],
    "test_support_agent.py": ["5 passed"],
}
"""Programs, and some of the lines that they print."""

RUN = {
    "fastapi_load.py": ["examples/fastapi_load.py", "--users", "50", "--think", "0"],
    "test_support_agent.py": [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "examples/test_support_agent.py",
    ],
}
"""How they are run, where it is not by their name alone."""

RUN_BY_ANOTHER = {"fastapi_service.py"}


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
        [sys.executable, "-W", "error", *RUN.get(name, [f"examples/{name}"])],
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
    assert [line for line in EXAMPLES[name] if line not in printed and not _begins(printed, line)] == []


def test_each_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES) | RUN_BY_ANOTHER


def _begins(printed: list[str], line: str) -> bool:
    """Whether a line of these words stands there with a time behind it, as pytest's last one."""
    return any(one.startswith(f"{line} in ") for one in printed)


def _placed(block: Block) -> str:
    """The block's text on the lines on which it stands in its page, so that a traceback names them."""
    return "\n" * (block.line - 1) + block.text


def _infos() -> Iterator[tuple[Path, str]]:
    from tests.docs.documents import PAGES, blocks_of

    for page in PAGES:
        for block in blocks_of(page):
            yield page.relative_to(ROOT), block.info
