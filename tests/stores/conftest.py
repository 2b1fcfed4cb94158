from collections.abc import Iterator

import pytest

from tests.stores.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this process. Tests that stop it start it again."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The URL of a database without tables."""
    return postgres.empty_schema()
