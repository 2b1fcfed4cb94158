"""Whole sessions under random programs: whatever happens to them, every promise holds."""

import logging
from collections.abc import Generator

import pytest
from hypothesis import given

from tests.properties.programs import PROGRAMS, Program
from tests.properties.stage import play


@pytest.fixture(autouse=True, scope="module")
def _silence() -> Generator[None]:
    """Crashes are planned here; writing their tracebacks takes longer than everything else."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@given(PROGRAMS)
def test_whatever_happens_every_promise_holds(program: Program) -> None:
    play(program)
