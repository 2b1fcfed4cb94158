"""A process is killed at every boundary, and at random instants; another one takes the session up.

After each kill: no acknowledged message is missing, none is processed twice, the context is valid, a clear is whole or
absent, no tool ran twice that must not, what ran is in the log. At the end: every message has ended once, in order,
and the session answers.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.durability.boundaries import store_of
from tests.durability.killing import Case, Company, company
from tests.durability.notes import Notes
from tests.durability.scene import SESSION

SAMPLE = {"sqlite-default": 12, "sqlite-strict": 16, "postgres-default": 24}
"""What `make test` plays: one of so many boundaries, for some seconds on each database."""

SAMPLE_OF_PAIRS = 3
SAMPLE_OF_INSTANTS = 3

INSTANTS = 300
"""Random instants of a soak, on each database."""

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def players() -> Iterator[Company]:
    with company() as players:
        yield players


class Matrix:
    """Cases on one database, and how many there were."""

    def __init__(self, players: Company, folder: Path, url: str | None, durability: str) -> None:
        self._players = players
        self._folder = folder
        self._url = url
        self._durability = durability
        self.cases = self.kills = self.processes = self.boundaries = 0
        self.seconds = 0.0
        """How long it takes without a kill."""

    def measure(self) -> None:
        """Play without a kill, to see how many boundaries there are and how long it takes."""
        case = self._case()
        assert case.perform()
        self.seconds = case.seconds
        (self.boundaries,) = (line["boundaries"] for line in Notes(case.folder).read("ended"))
        self._finish(case)

    def at_boundaries(self, *numbers: int) -> None:
        """Kill one process after the other at these boundaries, then let the last one finish."""
        case = self._case()
        for number in numbers:
            case.perform(fatal=number)
        self._finish(case)

    def at_instants(self, *seconds: float) -> None:
        """Kill one process after the other after so many seconds, then let the last one finish."""
        case = self._case()
        for number in seconds:
            case.perform(kill_after=number)
        self._finish(case)

    def _case(self) -> Case:
        folder = self._folder / f"case-{self.cases}"
        folder.mkdir()
        if self._url is None:
            return Case(self._players, folder, str(folder / "journal.db"), self._durability)
        store = store_of(self._url)
        store.open()
        store.delete(SESSION)
        store.close()
        return Case(self._players, folder, self._url, self._durability)

    def _finish(self, case: Case) -> None:
        case.finish()
        self.cases += 1
        self.kills += case.kills
        self.processes += case.attempts
        shutil.rmtree(case.folder)

    def report(self, record: Record) -> None:
        """Say how many there were."""
        text = f"{self.cases} cases, {self.processes} processes, {self.kills} killed, {self.boundaries} boundaries"
        record("matrix", text)
        print(text)


def database(request: pytest.FixtureRequest, kind: str) -> str | None:
    """An empty PostgreSQL database for all cases, or none: each has a SQLite file of its own."""
    return request.getfixturevalue("postgres_url") if kind == "postgres" else None


@pytest.mark.parametrize("kind", SAMPLE)
def test_a_killed_session_goes_on(
    players: Company, tmp_path: Path, kind: str, request: pytest.FixtureRequest, record_property: Record
) -> None:
    """The sample: boundaries and instants spread over the whole, some of them one after the other."""
    store, durability = kind.split("-")
    matrix = Matrix(players, tmp_path, database(request, store), durability)
    matrix.measure()
    chance = random.Random(kind)
    for begin in range(1, matrix.boundaries, SAMPLE[kind]):
        matrix.at_boundaries(begin + chance.randrange(SAMPLE[kind]))
    for _ in range(SAMPLE_OF_PAIRS):
        matrix.at_boundaries(*chance.sample(range(1, matrix.boundaries), 2))
    for _ in range(SAMPLE_OF_INSTANTS):
        matrix.at_instants(chance.uniform(0.0, matrix.seconds))
    matrix.report(record_property)
    assert matrix.kills > matrix.cases // 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("durability", ["default", "strict"])
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_killed_at_every_boundary(
    players: Company,
    tmp_path: Path,
    store: str,
    durability: str,
    request: pytest.FixtureRequest,
    record_property: Record,
) -> None:
    matrix = Matrix(players, tmp_path, database(request, store), durability)
    matrix.measure()
    chance = random.Random()
    for number in range(1, matrix.boundaries + 1):
        matrix.at_boundaries(number)
        # Again while it goes on with what the first one left.
        matrix.at_boundaries(number, chance.randrange(1, 40), chance.randrange(1, 40))
    matrix.report(record_property)
    assert matrix.kills >= matrix.boundaries


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_killed_at_random_instants(
    players: Company, tmp_path: Path, store: str, request: pytest.FixtureRequest, record_property: Record
) -> None:
    matrix = Matrix(players, tmp_path, database(request, store), "default")
    matrix.measure()
    chance = random.Random()
    while matrix.kills < INSTANTS:
        # One after the other, while they go on with what those before have left.
        matrix.at_instants(*(chance.uniform(0.0, matrix.seconds) for _ in range(chance.choice((1, 1, 2, 3)))))
        assert matrix.cases < 2 * INSTANTS
    matrix.report(record_property)
