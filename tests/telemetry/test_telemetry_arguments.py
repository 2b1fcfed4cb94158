"""What telemetry is made of and given to: wrong arguments change nothing."""

from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from trio.testing import MockClock

from exeunt import InvalidConfiguration, open_host
from exeunt.telemetry import Telemetry
from exeunt.testing import ScriptedModel, checked_host
from tests.actors.session_support import open_session
from tests.telemetry.traced import Traces


@pytest.mark.parametrize(
    "wrong",
    [
        {"tracer_provider": "a provider"},
        {"source_name": ""},
        {"source_name": None},
        {"agent_name": 5},
        {"content_limit": 0},
        {"content_limit": True},
        {"content_limit": "long"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        Telemetry(**wrong)


async def test_a_host_takes_nothing_else_for_telemetry() -> None:
    wrong: Any = "telemetry"
    with pytest.raises(InvalidConfiguration, match="telemetry is a Telemetry"):
        async with open_host(telemetry=wrong):
            pass


async def test_telemetry_has_one_host_and_a_host_one_telemetry(autojump_clock: MockClock) -> None:
    traces = Traces()
    telemetry = traces.telemetry()
    async with checked_host(telemetry=telemetry) as host:
        with pytest.raises(InvalidConfiguration, match="another host"):
            async with open_host(telemetry=telemetry):
                pass
        with pytest.raises(InvalidConfiguration, match="traced already"):
            traces.telemetry().attach(host)
        # The host that was refused has taken nothing away from the one that has it.
        await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")
    assert len(traces.turns) == 1


async def test_telemetry_may_go_to_another_host_when_its_own_has_ended(autojump_clock: MockClock) -> None:
    traces = Traces()
    telemetry = traces.telemetry()
    for _ in range(2):
        async with checked_host(telemetry=telemetry) as host:
            await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")
    assert len(traces.turns) == 2


class Faulty(SpanProcessor):
    """A processor of the program that fails in each way."""

    def __init__(self, *, starts: bool) -> None:
        self._starts = starts

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if self._starts:
            raise RuntimeError("no span may begin")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("no span may end")


@pytest.mark.parametrize("starts", [True, False])
async def test_a_processor_that_fails_hurts_no_session(starts: bool, autojump_clock: MockClock) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Faulty(starts=starts))
    telemetry = Telemetry(provider)
    async with checked_host(telemetry=telemetry) as host:
        session = await open_session(host, ScriptedModel(["hi", "there"]))
        assert (await session.send_and_wait("go")).content == "hi"
        assert (await session.send_and_wait("go")).content == "there"
        assert telemetry.statistics().open_sessions == 0


async def test_without_a_provider_the_programs_own_is_used(autojump_clock: MockClock) -> None:
    # None is set here: then spans are nothing, and sessions as ever.
    async with checked_host(telemetry=Telemetry(capture_content=True)) as host:
        reply = await (await open_session(host, ScriptedModel(["hi"]))).send_and_wait("go")
    assert reply.content == "hi"
