"""All the instructions of a session, read in a thread of their own."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import attrs
import trio

from exeunt.actors.text import encodable
from exeunt.wire.instructions import documents, files
from exeunt.wire.instructions.documents import Source, Unfit
from exeunt.wire.instructions.files import Unreadable
from exeunt.wire.instructions.places import Place, check_named, places

MOST_FILES = 100
"""With a text, of one session."""

MOST_BYTES = 256 * 1024
"""Of all of them: some 64,000 tokens, which is half the room of most models."""

MOST_PROBLEMS = 20
"""That a client is told of, one each: who has more has one reason for them."""

AT_ONCE = 4
"""Threads that read: a disk that hangs holds these, and no tool."""

SECONDS = 30.0
"""For all of them: a client waits. Local disks take a moment; one that takes longer hangs."""


@attrs.frozen
class Instructions:
    """What was read."""

    sources: tuple[Source, ...] = ()
    """In the order in which the model reads them."""
    problems: tuple[str, ...] = ()
    """What was not read, and why."""

    @property
    def text(self) -> str:
        """What the model is told; empty where there is nothing."""
        return "\n\n".join(source.told() for source in self.sources)


class Reader:
    """Reads for the clients of one server."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """*roots* are the folders in which clients may name some; without any, every one that they name is refused."""
        self.roots = tuple(Path(os.path.realpath(root)) for root in roots)
        self._threads = trio.CapacityLimiter(AT_ONCE)

    async def read(self, named: Sequence[str], working_directory: str) -> Instructions:
        """Return the instructions in some folders; what cannot be read is among the problems.

        A relative path begins in *working_directory*. Raises `InstructionsRefused`; then nothing was read. Cancelled,
        or too slow: the thread goes on, and nobody waits for it.
        """
        check_named(named)
        with trio.move_on_after(SECONDS):
            return await trio.to_thread.run_sync(
                partial(gather, tuple(named), working_directory, self.roots),
                limiter=self._threads,
                abandon_on_cancel=True,
            )
        # Whether the folders may be named, only the disk knows; nothing of them reaches the model.
        return Instructions((), (f"no instructions: the disk did not answer within {SECONDS:g} s",))


def gather(named: Sequence[str], working_directory: str, roots: Sequence[Path]) -> Instructions:
    """Do what `Reader.read` says; blocks."""
    sources: list[Source] = []
    problems: list[str] = []
    seen: set[Path] = set()
    left = MOST_BYTES
    for place, label in _files(places(named, working_directory, roots), problems):
        path = encodable(str(Path(place.named, label)))
        try:
            real, data = files.read(place.path / label, roots)
            if real in seen:
                continue
            seen.add(real)
            found = documents.source(encodable(label), path, data)
            if found is None:
                continue
            if len(sources) >= MOST_FILES or len(data) > left:
                raise Unfit(
                    f"there are more than {MOST_FILES} files with instructions, or {MOST_BYTES} bytes"
                )
        except (Unreadable, Unfit) as error:
            problems.append(f"{path}: {encodable(str(error))}")
        else:
            left -= len(data)
            sources.append(found)
    more = len(problems) - MOST_PROBLEMS
    if more > 0:
        problems[MOST_PROBLEMS:] = [f"and {more} more files or folders with instructions were not read"]
    return Instructions(tuple(sources), tuple(problems))


def _files(found: Sequence[Place], problems: list[str]) -> Iterator[tuple[Place, str]]:
    for place in found:
        try:
            for label in files.candidates(place.path):
                yield place, label
        except (Unreadable, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            problems.append(f"{encodable(place.named)}: {said}")
