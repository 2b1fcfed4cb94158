"""Images and documents in requests, and what a model reads of those that it is not shown."""

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from exeunt import Media, MediaSupport
from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.models import ModelRequest, ToolCall
from exeunt.models.media import fitted, image_type
from exeunt.models.openai.provider import openai_provider
from exeunt.models.openai.requests import RequestEncoder
from tests.actors.media_support import NOTES, PAPER, PIXEL, PNG, SOUND
from tests.models.openai_support import Said
from tests.models.strict_server import refusals

ALL = MediaSupport()
JPEG = b"\xff\xd8\xff\xe0" + b"j" * 40
WEBP = b"RIFF\x24\x00\x00\x00WEBPVP8 " + b"w" * 20
GIF = b"GIF89a" + b"g" * 30


def sent(*messages: Said, support: MediaSupport | None = None, **settings: Any) -> list[dict[str, Any]]:
    encoder = RequestEncoder("m", {}, developer_role="system", stream_usage=True, **settings)
    body = encoder.encode(ModelRequest(messages, media=support), stream=False)
    assert refusals(body) == []
    return list(msgspec.json.decode(body)["messages"])


def user(text: str, *media: Media) -> Said:
    return Said("user", text, media=media)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def image(media: Media) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media.mime_type};base64,{media.base64}"}}


def test_an_image_is_a_part_behind_its_name() -> None:
    assert sent(user("what is this?", PIXEL)) == [
        {"role": "user", "content": [text("what is this?"), text("pixel.png"), image(PIXEL)]}
    ]


def test_an_image_needs_neither_a_name_nor_a_prompt() -> None:
    unnamed = Media("image/png", PNG)
    assert sent(user("", unnamed)) == [{"role": "user", "content": [image(unnamed)]}]


def test_a_pdf_is_a_file() -> None:
    data = f"data:application/pdf;base64,{PAPER.base64}"
    file = {"type": "file", "file": {"filename": "paper.pdf", "file_data": data}}
    assert sent(user("sum it up", PAPER)) == [{"role": "user", "content": [text("sum it up"), file]}]


def test_a_text_is_quoted_in_the_message() -> None:
    content = 'look\n\n<attached_document name="notes.md">\n# Notes\n</attached_document>'
    assert sent(user("look", NOTES)) == [{"role": "user", "content": content}]


def test_a_name_stays_on_its_line_and_in_its_quotes() -> None:
    (message,) = sent(user("", Media("text/plain", b"t", 'a"\n<b>'), Media("audio/wav", b"s", "c\nd")))
    assert message["content"] == (
        '<attached_document name="a\' <b>">\nt\n</attached_document>\n\n'
        "[resource left out: c d, audio/wav, 1 bytes; the model takes images and documents only]"
    )


def test_images_of_results_stand_behind_the_last_result_of_their_batch() -> None:
    unnamed = Media("image/png", PNG)
    messages = [
        Said("user", "go"),
        Said("assistant", "", (ToolCall("c1", "draw", "{}"), ToolCall("c2", "view", "{}"))),
        Said("tool", "drawn", (), "c1", (unnamed,)),
        Said("tool", "seen", (), "c2", (PIXEL,)),
        Said("user", "guidance"),
        Said("assistant", "nice"),
    ]
    shown = [text("From the result of the tool 'draw':"), image(unnamed), text("pixel.png"), image(PIXEL)]
    wire = sent(*messages)
    assert [message["role"] for message in wire] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "user",
        "assistant",
    ]
    assert wire[2:6] == [
        {"role": "tool", "tool_call_id": "c1", "content": "drawn"},
        {"role": "tool", "tool_call_id": "c2", "content": "seen"},
        {"role": "user", "content": shown},
        {"role": "user", "content": "guidance"},
    ]
    assert sent(*messages[:4])[-1] == {"role": "user", "content": shown}


@pytest.mark.parametrize(
    ("media", "support", "line"),
    [
        (
            PIXEL,
            MediaSupport(images=False),
            "image left out: pixel.png, image/png, 70 bytes; the model takes no images",
        ),
        (
            PIXEL,
            MediaSupport(image_types=frozenset({"image/jpeg"})),
            "image left out: pixel.png, image/png, 70 bytes; the model takes no image/png",
        ),
        (
            PIXEL,
            MediaSupport(largest_image=69),
            "image left out: pixel.png, image/png, 70 bytes; the model takes images of at most 69 bytes",
        ),
        (
            Media("image/png", PNG[:8]),
            ALL,
            "image left out: image/png, 8 bytes; it is not a whole PNG, JPEG, GIF or WebP image",
        ),
        (
            Media("image/tiff", b"II*\x00" + b"t" * 40),
            ALL,
            "image left out: image/tiff, 44 bytes; it is not a whole PNG, JPEG, GIF or WebP image",
        ),
        (
            PAPER,
            MediaSupport(documents=False),
            "document left out: paper.pdf, application/pdf, 77 bytes; the model takes no documents",
        ),
        (Media("application/pdf", b"no"), ALL, "document left out: application/pdf, 2 bytes; it is no PDF"),
        (Media("text/plain", b"\xff"), ALL, "document left out: text/plain, 1 bytes; it is no text in UTF-8"),
        (
            SOUND,
            ALL,
            "resource left out: hello.wav, audio/wav, 12 bytes; the model takes images and documents only",
        ),
    ],
)
def test_what_a_model_is_not_shown_it_is_told(media: Media, support: MediaSupport, line: str) -> None:
    assert sent(user("look", media), support=support) == [{"role": "user", "content": f"look\n\n[{line}]"}]


def test_what_the_request_says_wins_over_what_the_model_was_made_with() -> None:
    blind = MediaSupport(images=False)
    assert isinstance(sent(user("look", PIXEL), media=blind)[0]["content"], str)
    assert image(PIXEL) in sent(user("look", PIXEL), media=blind, support=ALL)[0]["content"]


def test_of_more_images_than_a_model_takes_the_newest_are_shown() -> None:
    first, second = sent(user("one", PIXEL, PIXEL), user("two", PIXEL), support=MediaSupport(most_images=2))
    line = "[image left out: pixel.png, image/png, 70 bytes; the model takes no more images in one request]"
    assert first["content"] == [text(f"one\n\n{line}"), text("pixel.png"), image(PIXEL)]
    assert second["content"] == [text("two"), text("pixel.png"), image(PIXEL)]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (b"BM" + b"b" * 50, None),
    ],
)
def test_an_image_is_sent_under_its_true_type(data: bytes, kind: str | None) -> None:
    assert image_type(data) == kind
    (message,) = fitted([user("", Media("image/x-odd", data))], ALL)
    assert [media.mime_type for media in message.media] == ([] if kind is None else [kind])


def test_parameters_of_a_type_are_not_sent() -> None:
    (message,) = sent(user("", Media('application/pdf; a="b"', PAPER.data, "p")))
    assert message["content"][0]["file"]["file_data"].startswith("data:application/pdf;base64,")


def test_messages_without_media_are_the_very_same() -> None:
    messages = [Said("user", "a"), Said("assistant", "b")]
    assert fitted(messages, ALL) is messages


def test_a_door_may_keep_texts_for_a_place_of_its_own() -> None:
    (message,) = fitted([user("look", NOTES, SOUND)], ALL, native_texts=True)
    assert message.media == (NOTES,)
    assert message.content.startswith("look\n\n[resource left out: hello.wav")


def test_a_prompt_that_cannot_be_encoded_is_repaired_beside_an_image() -> None:
    (message,) = sent(user("half \ud83d", PIXEL))
    assert message["content"][0] == text("half \ufffd")


@given(
    st.lists(st.sampled_from([PIXEL, PAPER, NOTES, SOUND, Media("image/png", b"?")]), max_size=4),
    st.builds(MediaSupport, images=st.booleans(), documents=st.booleans(), most_images=st.integers(0, 2)),
)
def test_no_message_with_media_makes_a_request_that_is_refused(
    media: list[Media], support: MediaSupport
) -> None:
    calls = (ToolCall("c1", "draw", "{}"), ToolCall("c2", "draw", "{}"))
    sent(
        user("one", *media),
        Said("assistant", "", calls),
        Said("tool", "", (), "c1", tuple(media)),
        Said("tool", "", (), "c2", tuple(media)),
        support=support,
    )


def test_a_provider_says_what_its_model_takes() -> None:
    model = openai_provider("m", {"type": "openai", "base_url": "http://x/v1", "media": {"images": False}})
    assert model is not openai_provider("m", {"type": "openai", "base_url": "http://x/v1"})
    for media, said in (
        ({"image": False}, "provider has media with image: use images"),
        ({"images": "no"}, "provider has media that cannot be"),
        ("none", "provider has media of type str"),
    ):
        with pytest.raises(InvalidConfiguration, match=said):
            openai_provider("m", {"type": "openai", "media": media})
    with pytest.raises(InvalidConfiguration, match="a MediaSupport"):
        sent(media={"images": False})
