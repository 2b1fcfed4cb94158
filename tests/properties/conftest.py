"""Crashes are planned here; writing their tracebacks takes longer than everything else."""

import logging
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _silence() -> Generator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
