"""How large messages are, where nobody has counted."""

from typing import Any

import pytest

from exeunt import CitableSource, ToolResult, tool
from exeunt.actors.events import ToolExecutionComplete, UsageCheckpoint
from exeunt.actors.sizes import characters_of, guessed_tokens
from exeunt.testing import ScriptedModel, call, checked_host
from tests.actors.turn_support import logged, open_session

SOURCES = (
    CitableSource("1", "c" * 4000, title="t" * 40, url="u" * 400),
    CitableSource("2", "d" * 4000, path="p" * 40),
)


@tool(skip_permission=True)
async def look() -> ToolResult:
    """Look."""
    return ToolResult("found", sources=SOURCES)


async def test_what_can_be_cited_counts_where_the_model_is_to_cite(autojump_clock: object) -> None:
    async with checked_host() as host:
        session = await open_session(host, ScriptedModel([call("look"), "done"]), look)
        await session.send_and_wait("go")
        # pyright does not see a class variable as an attribute that a protocol may ask for.
        result: Any = (await logged(session, ToolExecutionComplete))[0]
        assert characters_of(result) == len("found")
        assert characters_of(result, cited=True) == len("found") + 4440 + 4040
        assert guessed_tokens([result], cited=True) == 8485 // 4


class Citing(ScriptedModel):
    """A model that is shown what of results can be cited."""

    reads_sources = True


@pytest.mark.parametrize(("kind", "more"), [(ScriptedModel, 0), (Citing, 8480 // 4)])
async def test_calls_that_nobody_counted_are_guessed_with_what_was_shown(
    kind: type[ScriptedModel], more: int, autojump_clock: object
) -> None:
    prices: dict[str, Any] = {"*": {"input": 1.0}}
    async with checked_host() as host:
        session = await open_session(host, kind([call("look"), "done"]), look, prices=prices)
        await session.send_and_wait("go")
        first, second = await logged(session, UsageCheckpoint)
    assert first.estimated
    assert more <= second.input_tokens - first.input_tokens < more + 50
