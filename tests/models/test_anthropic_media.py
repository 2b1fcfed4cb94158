"""Pictures, documents and sources in requests to the Messages API."""

from exeunt.actors.citations import CitableSource
from exeunt.actors.media import Media
from exeunt.actors.models import MediaSupport
from tests.models.anthropic_support import EPHEMERAL, Result, called, sent
from tests.models.openai_support import Said

PDF = Media("application/pdf", b"%PDF-1.4 some pages", "report.pdf")
PNG = Media("image/png", b"\x89PNG\r\n\x1a\n" + bytes(40), "dot.png")
CSV = Media("text/csv", b"a,b\n1,2\n", "table.csv")


def test_pictures_and_documents_are_blocks_behind_the_text() -> None:
    body = sent(Said("user", "Look.", media=(PNG, PDF, CSV)))
    blocks = body["messages"][0]["content"]
    assert [each["type"] for each in blocks] == ["text", "text", "image", "document"]
    assert "a,b" in blocks[0]["text"]
    assert blocks[1]["text"] == "dot.png"
    assert blocks[2]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG.base64}
    assert blocks[3] == {
        "type": "document",
        "title": "report.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF.base64},
    }


def test_documents_that_may_be_cited_say_so_and_texts_are_among_them() -> None:
    body = sent(Said("user", "Look.", media=(PDF, CSV)), citations=True)
    _, pdf, table = body["messages"][0]["content"]
    assert pdf["citations"] == table["citations"] == {"enabled": True}
    assert table["source"] == {"type": "text", "media_type": "text/plain", "data": "a,b\n1,2\n"}


def test_the_media_of_a_result_are_inside_of_it() -> None:
    body = sent(
        Said("user", "x"),
        called("c"),
        Said("tool", "here", tool_call_id="c", media=(PNG,)),
        prompt_cache=True,
    )
    (result,) = body["messages"][2]["content"]
    assert [each["type"] for each in result["content"]] == ["text", "text", "image"]
    assert result["cache_control"] == EPHEMERAL


def test_a_failed_call_with_media_is_told_by_its_text_alone() -> None:
    failed = Result("tool", "no", tool_call_id="c", media=(PNG,), success=False)
    (result,) = sent(Said("user", "x"), called("c"), failed)["messages"][2]["content"]
    assert "is_error" not in result


def test_a_blank_text_to_be_cited_is_replaced() -> None:
    body = sent(Said("user", "x", media=(Media("text/plain", b" \n"),)), citations=True)
    assert body["messages"][0]["content"][1]["source"]["data"] == "(empty)"


def test_what_a_model_does_not_take_is_told_as_text() -> None:
    body = sent(Said("user", "Look.", media=(PNG,)), media=MediaSupport(images=False))
    (block,) = body["messages"][0]["content"]
    assert "dot.png" in block["text"]


class Found(Said, frozen=True):
    """A result with what may be cited of it."""

    sources: tuple[CitableSource, ...] = ()


PAGE = CitableSource("p1", "Grass is green.", "Colours", "https://x/colours")
FILE = CitableSource("f1", "Sky is \ud83d blue.", path="notes/sky.md")


def test_what_a_tool_found_can_be_cited_where_citations_are_wanted() -> None:
    result = Found("tool", "two pages", tool_call_id="c", sources=(PAGE, FILE), media=(PDF,))
    (block,) = sent(Said("user", "x"), called("c"), result, citations=True)["messages"][2]["content"]
    words, pdf, page, file = block["content"]
    assert words == {"type": "text", "text": "two pages"}
    assert pdf["citations"] == {"enabled": True}
    assert page == {
        "type": "search_result",
        "source": "https://x/colours",
        "title": "Colours",
        "content": [{"type": "text", "text": "Grass is green."}],
        "citations": {"enabled": True},
    }
    assert (file["source"], file["title"]) == ("notes/sky.md", "notes/sky.md")
    assert file["content"][0]["text"] == "Sky is \ufffd blue."


def test_what_a_tool_found_is_left_out_where_nobody_wants_citations() -> None:
    result = Found("tool", "two pages", tool_call_id="c", sources=(PAGE,))
    (block,) = sent(Said("user", "x"), called("c"), result)["messages"][2]["content"]
    assert block["content"] == "two pages"
