"""The project's pages, as the tests in this folder read them."""

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL
)


@attrs.frozen
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """Of its first line of text, from 1."""
    info: str
    """What stands behind the fence: `python` is a program, `python fragment` a part of one."""
    text: str

    @property
    def place(self) -> str:
        """Where it stands, for the name of a test."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*infos: str) -> list[Block]:
    """The blocks of all pages with one of these words behind their fence."""
    return [block for page in PAGES for block in blocks_of(page) if block.info in infos]


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of one page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(page, line, found["info"].strip(), found["text"])


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def table_under(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table under the heading *heading*, without its head; backticks are removed."""
    section = re.split(rf"^#+ {re.escape(heading)}$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]
