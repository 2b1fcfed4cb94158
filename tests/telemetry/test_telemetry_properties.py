"""Traces of random histories: of crashes, aborts, clears, lost writes and hosts that end in the middle."""

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings

from exeunt import SessionHost
from exeunt.telemetry import Telemetry
from exeunt.testing import run_virtual
from tests.properties.programs import PROGRAMS, Program
from tests.properties.stage import Stage
from tests.telemetry.traced import Traces, linked, span_id


@pytest.fixture(autouse=True, scope="module")
def _silence() -> Generator[None]:
    logging.disable(logging.CRITICAL)  # crashes are planned here
    yield
    logging.disable(logging.NOTSET)


class TracedStage(Stage):
    """A run of a program whose hosts are traced."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.traces = Traces()
        self.telemetries: list[Telemetry] = []

    @asynccontextmanager
    async def open_host(self, *, settled: bool = True, **keywords: Any) -> AsyncGenerator[SessionHost]:
        telemetry = self.traces.telemetry(capture_content=True)
        self.telemetries.append(telemetry)
        async with super().open_host(settled=settled, telemetry=telemetry, **keywords) as host:
            host.observe(self.traces.count)
            yield host

    def check(self) -> None:
        """See that every span has its place, and that every turn and call has a span."""
        traces = self.traces
        traces.check()
        known = {span_id(span) for span in traces.spans}
        assert all(other in known for turn in traces.turns for other, _ in linked(turn))
        assert traces.told_ends() == traces.ends
        for telemetry in self.telemetries:
            assert telemetry.statistics().open_sessions == 0


@given(PROGRAMS)
@settings(max_examples=60)
def test_whatever_happens_every_span_has_its_place_and_its_end(program: Program) -> None:
    stage = TracedStage(program)
    run_virtual(stage.play)
    stage.check()


@given(PROGRAMS)
@settings(max_examples=40)
def test_what_one_host_leaves_and_another_takes_up_are_whole_traces_too(program: Program) -> None:
    stage = TracedStage(program)
    run_virtual(stage.play_in_two_hosts)
    stage.check()
