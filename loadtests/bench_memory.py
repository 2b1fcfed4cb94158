"""Memory of an idle live session: in all, and beyond its history (its events and its list of messages).

Each figure is taken in a process of its own. "resident" is the growth of what the process holds, "allocated" what
Python has given out by its own account. History alone is the same events and lists without any session.
"""

import gc
import subprocess
import sys
import tracemalloc

import msgspec
import trio

from exeunt import Session, SessionHost, approve_all, open_host
from exeunt.actors.turn.actor import SessionActor
from loadtests.crowd import ZeroCostModel, add
from loadtests.frame import THRESHOLDS, Size, Table, main, resident_bytes
from loadtests.history_copy import History, HistoryCopies

WARM = 200
"""Sessions made first: pools, caches and parked workers belong to the host, not to its sessions."""

MESSAGES = ("Add 1 and 2, please: session %d", "And once more, session %d")
"""Of a few words each; every session has texts of its own."""

LARGEST = 8
"""Lines of code that are shown as the makers of what a session holds."""

TRACED_SHARE = 5
"""Only one session of so many is traced: it takes long, and does not depend on the number."""


class Bytes(msgspec.Struct):
    """What one session, or one history, takes."""

    resident: float
    allocated: float = 0.0
    lines: list[tuple[float, str]] = []
    """The largest parts, and the lines of code that allocate them."""


async def grow(host: SessionHost, count: int, exchanges: int) -> list[Session]:
    """Make *count* sessions with ids of their own and hold *exchanges* in each, then leave them alone."""
    model = ZeroCostModel()
    sessions: list[Session] = []
    for number in range(count):
        session = await host.create_session(
            model=model, tools=[add], on_permission_request=approve_all, system_message="You are terse."
        )
        for text in MESSAGES[:exchanges]:
            await session.send_and_wait(text % number)
        sessions.append(session)
    return sessions


def history_of(actor: SessionActor) -> History:
    """Return what the log and the context of a session hold."""
    return list(actor.log.read_now() or ()), [*actor.context.shared]


async def measure(what: str, count: int, exchanges: int, traced: bool) -> Bytes:
    """Return what each of *count* sessions, or the history of each, adds to this process."""
    gc.set_threshold(*THRESHOLDS)
    async with open_host() as host:
        # Referred to until the end: that is what is measured.
        warm = await grow(host, WARM, exchanges)
        first, second = host.actors()[-2:]
        copies = HistoryCopies(history_of(first), history_of(second))
        warm_copies = [copies.make() for _ in range(WARM)]
        gc.collect()
        before = resident_bytes()
        if traced:
            tracemalloc.start()
        kept = (
            await grow(host, count, exchanges) if what == "session" else [copies.make() for _ in range(count)]
        )
        gc.collect()
        found = Bytes((resident_bytes() - before) / count)
        if traced:
            found.allocated = tracemalloc.get_traced_memory()[0] / count
            found.lines = _largest(count)
        assert len(kept) == count
        assert len(warm) == len(warm_copies)
        return found


def _largest(count: int) -> list[tuple[float, str]]:
    found = tracemalloc.take_snapshot().statistics("lineno")[:LARGEST]
    places = ((statistic.size / count, statistic.traceback[0]) for statistic in found)
    return [(size, f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno}") for size, frame in places]


def _in_a_process(what: str, count: int, exchanges: int, *, traced: bool = False) -> Bytes:
    command = [sys.executable, "-m", "loadtests.bench_memory", "measure", what, str(count), str(exchanges)]
    command.extend(["traced"] if traced else [])
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Bytes)


def run(size: Size) -> None:
    """Measure and print."""
    count = size.pick(full=10_000, quick=2_000, tiny=50)
    table = Table(
        f"bytes of an idle session, {count:,} sessions, one tool call in each exchange",
        "in all",
        "history",
        "beyond it",
    )
    lines: list[tuple[float, str]] = []
    for exchanges in (0, 2):
        session, history = (_in_a_process(what, count, exchanges) for what in ("session", "history"))
        table.row(
            f"{exchanges} exchanges, resident",
            session.resident,
            history.resident,
            session.resident - history.resident,
        )
        few = count // TRACED_SHARE
        session, history = (
            _in_a_process(what, few, exchanges, traced=True) for what in ("session", "history")
        )
        table.row(
            f"{exchanges} exchanges, allocated",
            session.allocated,
            history.allocated,
            session.allocated - history.allocated,
        )
        lines = session.lines
    table.note("the largest parts of the last, by the line that allocates them:")
    for part, line in lines:
        table.row(f"    {line}", part)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        what, count, exchanges = sys.argv[2:5]
        measured = trio.run(measure, what, int(count), int(exchanges), "traced" in sys.argv)
        print(msgspec.json.encode(measured).decode())
    else:
        main(run, __doc__)
