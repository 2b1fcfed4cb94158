"""Citations of answers, and what of a tool's result can be cited: in the log, and on the way into it."""

from typing import Any

import attrs
import msgspec
import pytest

from exeunt import CitableSource, Citations, CitationSource, CitationSpan, MediaLimits, ToolResult
from exeunt.actors.citations import CitationLocation, CitationReference
from exeunt.actors.models import ModelRequest, ModelResponse
from exeunt.actors.tools.citable import sources_from
from exeunt.actors.tools.results import to_result
from exeunt.testing import ScriptedModel, call, checked_host, crash_session, say
from tests.actors.session_support import logged, open_session, plain_tool

PAGE = CitableSource("p", "Grass is green.", "Colours", "https://x")

CITED = Citations(
    (CitationSource("p", "client", "Colours"),),
    (CitationSpan(0, 5, (CitationReference("p", "Grass", CitationLocation("char", 0, 5), {"n": 1}),)),),
)


def finding(*sources: CitableSource) -> Any:
    """A handler that has found something."""

    async def find() -> ToolResult:
        return ToolResult("found", sources=sources)

    return find


class Citing(ScriptedModel):
    """A model of which one answer cites."""

    async def complete(self, request: ModelRequest, /) -> ModelResponse:
        """Answer from the script, with citations."""
        answer = await super().complete(request)
        return msgspec.structs.replace(answer, citations=CITED) if answer.content == "Green." else answer


async def test_citations_and_sources_are_in_the_log_and_outlive_the_actor() -> None:
    model = Citing([call("find"), say("Green."), say("yes")])
    async with checked_host() as host:
        session = await open_session(host, model, plain_tool("find", finding(PAGE)))
        await session.send_and_wait("what is green?")
        crash_session(session)
        await session.send_and_wait("sure?")
        messages = await logged(session, "assistant.message")
        (done,) = await logged(session, "tool.execution_complete")
    assert [message.citations for message in messages] == [None, CITED, None]
    assert done.sources == (PAGE,)
    # Each request has them with the result, for doors to models that can cite.
    results = [message for message in model.requests[-1].messages if message.role == "tool"]
    assert [getattr(message, "sources", None) for message in results] == [(PAGE,)]


async def test_sources_that_are_too_much_are_told_to_the_model() -> None:
    large = CitableSource("large", "x" * 100)
    model = ScriptedModel([call("find"), say("ok")])
    async with checked_host() as host:
        limits = MediaLimits(message=50)
        session = await open_session(
            host, model, plain_tool("find", finding(large, PAGE)), media_limits=limits
        )
        await session.send_and_wait("find")
        (done,) = await logged(session, "tool.execution_complete")
    assert done.sources == (PAGE,)
    assert done.content == "found\n[source left out: large; the result holds too much]"


@attrs.frozen
class Page:
    """A source as a client's own object."""

    id: str = "o"
    content: str = "Sky is blue."
    title: Any = 7


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, ()),
        ("text", ()),
        (7, ()),
        ({"id": "a", "content": "b"}, ()),
        (
            [PAGE, {"id": "a", "content": "b", "url": "u"}, Page()],
            (PAGE, CitableSource("a", "b", url="u"), CitableSource("o", "Sky is blue.")),
        ),
        ([{"id": "", "content": "b"}, {"id": "a", "content": " "}, {"id": 1, "content": "b"}, 7, None], ()),
        ([{"id": "a", "content": "\ud83d"}], (CitableSource("a", "\ufffd"),)),
    ],
)
def test_what_is_no_source_is_left_out(given: Any, found: tuple[CitableSource, ...]) -> None:
    assert sources_from(given) == found


@pytest.mark.parametrize("name", ["citableSources", "citable_sources"])
def test_a_result_object_of_the_protocol_may_bring_sources(name: str) -> None:
    result = to_result({"textResultForLlm": "one", name: [{"id": "a", "content": "b"}]})
    assert result == ToolResult("one", sources=(CitableSource("a", "b"),))
