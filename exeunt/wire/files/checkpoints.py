"""`checkpoints/`: one file for each summary that has taken the place of a conversation, and an index of them."""

import re

import attrs

from exeunt.actors.errors import SessionFileNotFound
from exeunt.wire.files.store import FileStore, write_long

FOLDER = "checkpoints"

INDEX = "checkpoints/index.md"

HEADING = "# Checkpoints\n\n"

MOST_CHECKPOINTS = 1_000
"""That a session keeps: the oldest go. A session of months has some hundred."""

LONGEST_TITLE = 120
"""Characters: one line of a listing."""

_LINE = re.compile(r"- \[(\d{1,9})\] (.*) \(`([^`/]+\.md)`\)")

_TITLE = re.compile(r"<checkpoint_title>\s*(.*?)\s*</checkpoint_title>", re.DOTALL)


@attrs.frozen
class Checkpoint:
    """One summary."""

    number: int
    """From 1, in order."""
    title: str
    filename: str

    @property
    def path(self) -> str:
        """Its path in the files of the session."""
        return f"{FOLDER}/{self.filename}"


def title_of(summary: str) -> str:
    """Return the title that a model has given its summary, or one that says nothing."""
    found = _TITLE.search(summary)
    return fit_title(found[1] if found else "")


def fit_title(title: str) -> str:
    """Return *title* as one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    return line[:LONGEST_TITLE] or "Summary"


def _filename(number: int, title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:50].strip("-")
    return f"{number:03d}-{words or 'summary'}.md"


class Checkpoints:
    """Those of one session. All methods raise `SessionFilesUnavailable`; not to be called side by side."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._known: list[Checkpoint] | None = None
        """`None` before the index was read."""

    async def all(self) -> list[Checkpoint]:
        """Return the checkpoints, the oldest first."""
        if self._known is None:
            try:
                index = await self._store.read(INDEX)
            except SessionFileNotFound:
                index = ""
            lines = [match for line in index.splitlines() if (match := _LINE.fullmatch(line))]
            found = {int(m[1]): Checkpoint(int(m[1]), m[2], m[3]) for m in lines}
            self._known = [found[number] for number in sorted(found)]
        return list(self._known)

    async def add(self, title: str, content: str) -> Checkpoint:
        """Write a summary, then the index."""
        known = await self.all()
        number = known[-1].number + 1 if known else 1
        made = Checkpoint(number, fit_title(title), _filename(number, title))
        await write_long(self._store, made.path, content)
        kept = [*known, made]
        await self._keep(kept[-MOST_CHECKPOINTS:], gone=kept[:-MOST_CHECKPOINTS])
        return made

    async def read(self, number: int) -> str | None:
        """Return what a checkpoint holds; `None` for one that is not there."""
        for checkpoint in await self.all():
            if checkpoint.number == number:
                try:
                    return await self._store.read(checkpoint.path)
                except SessionFileNotFound:
                    return None
        return None

    async def remove(self, number: int) -> None:
        """Remove one, where it is there."""
        known = await self.all()
        gone = [one for one in known if one.number == number]
        if gone:
            await self._keep([one for one in known if one.number != number], gone=gone)

    async def keep_newest(self, count: int) -> None:
        """Remove all but the newest *count*."""
        known = await self.all()
        first = max(0, len(known) - count)
        if first:
            await self._keep(known[first:], gone=known[:first])

    async def ensure_index(self) -> None:
        """Write the index, where there is none."""
        if not await self._store.exists(INDEX):
            await self._write_index([])
            self._known = []

    async def _keep(self, kept: list[Checkpoint], gone: list[Checkpoint]) -> None:
        # The index first: a file that it does not name does no harm.
        await self._write_index(kept)
        self._known = kept
        for checkpoint in gone:
            await self._store.rm(checkpoint.path, force=True)

    async def _write_index(self, checkpoints: list[Checkpoint]) -> None:
        lines = [f"- [{one.number}] {one.title} (`{one.filename}`)\n" for one in checkpoints]
        await self._store.write(INDEX, HEADING + ("".join(lines) or "None yet.\n"))
