"""Media as values: what they may be, what they say of themselves, and that no log loses them."""

import math
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from exeunt import InvalidConfiguration, InvalidMedia, Media, MediaLimits
from exeunt.actors.events import MessageAccepted, Origin, ToolExecutionComplete
from exeunt.actors.events.codec import JsonDecoder, SliceDecoder, encode_slice, to_json
from exeunt.actors.media import readable_size, within
from exeunt.actors.outcomes import Outcome
from tests.actors.media_support import NOTES, PAPER, PIXEL, SOUND

MEDIA = st.builds(
    Media,
    st.sampled_from(
        ["image/png", "application/pdf", "text/plain; charset=utf-8", "application/octet-stream"]
    ),
    st.binary(min_size=1, max_size=200),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
LISTS = st.lists(MEDIA, max_size=3).map(tuple)


@pytest.mark.parametrize(
    ("mime_type", "data", "name", "said"),
    [
        ("png", b"x", "", "not 'png'"),
        ("image/", b"x", "", "not 'image/'"),
        (None, b"x", "", "not None"),
        ("image/png\r\nX-Evil: 1", b"x", "", "a MIME type is a text"),
        ("image/png", b"", "", "not none"),
        ("image/png", "aGk=", "", "not str"),
        ("image/png", bytearray(b"x"), "", "not bytearray"),
        ("image/png", b"x", None, "the name of media is a text"),
        ("image/png", b"x", "n" * 4097, "at most 4096 characters"),
        ("image/png", b"x", "\ud83d", "half a surrogate pair"),
    ],
)
def test_media_that_cannot_be_are_refused(mime_type: Any, data: Any, name: Any, said: str) -> None:
    with pytest.raises(InvalidMedia, match=said):
        Media(mime_type, data, name)


@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [
        ("image/png", "image"),
        ("IMAGE/JPEG", "image"),
        ("image/svg+xml", "document"),
        ("application/pdf", "document"),
        ("text/csv; charset=utf-8", "document"),
        ("application/json", "document"),
        ("application/ld+json", "document"),
        ("application/zip", "resource"),
        ("audio/wav", "resource"),
    ],
)
def test_the_kind_follows_from_the_type(mime_type: str, kind: str) -> None:
    assert Media(mime_type, b"x").kind == kind


def test_media_tell_their_text_where_they_have_one() -> None:
    assert NOTES.text == "# Notes"
    assert Media("text/plain", b"\xef\xbb\xbfhi").text == "hi"
    assert Media("text/plain", b"\xff").text is None
    assert PIXEL.text is None


def test_media_are_shown_without_their_data() -> None:
    assert repr(Media("image/png", b"x" * 2048, "a.png")) == "<Media a.png, image/png, 2 KiB>"
    assert str(Media("image/png", b"x")) == "image/png, 1 bytes"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023 * 1024, "1023 KiB"),
        (1024**2 - 1, "1024 KiB"),
        (1024**2, "1 MiB"),
        (10 * 1024**2, "10 MiB"),
        (1024**3, "1 GiB"),
        (5000 * 1024**3, "5000 GiB"),
    ],
)
def test_sizes_are_told_as_people_write_them(size: int, text: str) -> None:
    assert readable_size(size) == text


def test_base64_is_read_also_with_line_breaks_and_nothing_else_is() -> None:
    assert Media.from_base64("image/png", PIXEL.base64, "pixel.png") == PIXEL
    assert Media.from_base64("text/plain", "aGVs\r\nbG8=").data == b"hello"
    for data in ("a", "????", "aGk", None, 5, "\u00e4"):
        with pytest.raises(InvalidMedia, match="no base64"):
            Media.from_base64("text/plain", data)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, 1.5, math.inf, True, "1"])
def test_limits_are_numbers_of_bytes(value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="item is a number of bytes"):
        MediaLimits(item=value)


@given(LISTS, st.integers(0, 300), st.integers(0, 300))
def test_what_is_taken_of_a_result_is_within_the_limits_and_the_rest_is_told(
    media: tuple[Media, ...], item: int, message: int
) -> None:
    kept, told = within(media, MediaLimits(item=item, message=message))
    assert len(kept) + len(told) == len(media)
    assert all(len(one.data) <= item for one in kept)
    assert sum(len(one.data) for one in kept) <= message


@given(LISTS)
def test_events_with_media_come_out_of_a_log_as_they_went_in(media: tuple[Media, ...]) -> None:
    origin = Origin("00000000-0000-4000")
    events = [
        MessageAccepted(origin, 1, 1.0, "m", "enqueue", "look", media=media),
        ToolExecutionComplete(origin, 2, 2.0, "c", "t", Outcome.SUCCESS, "text", None, 0.5, media=media),
    ]
    assert SliceDecoder().decode(encode_slice(events)) == events
    decoder = JsonDecoder()
    # Through the text: JSON has no bytes.
    lines = [msgspec.json.decode(msgspec.json.encode(to_json(event))) for event in events]
    assert [decoder.decode(line) for line in lines] == events


def test_media_of_every_kind_have_a_line_for_a_model_that_is_not_shown_them() -> None:
    _, told = within((PIXEL, PAPER, SOUND), MediaLimits(item=1))
    assert told == (
        "[image left out: pixel.png, image/png, 70 bytes; larger than 1 bytes]",
        "[document left out: paper.pdf, application/pdf, 77 bytes; larger than 1 bytes]",
        "[resource left out: hello.wav, audio/wav, 12 bytes; larger than 1 bytes]",
    )
