"""Server-sent events: what the standard says, wherever packets cut the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.models import ModelError, ModelErrorKind
from exeunt.models.http import SSEEvent, SSEReader


def events(data: bytes) -> list[tuple[str, str]]:
    return [(event.event, event.data) for event in SSEReader().feed(data)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_kind_of_line_end_ends_a_line(end: bytes) -> None:
    lines = [b"event: one", b"data: 1", b"", b"data: 2", b"", b""]
    assert events(end.join(lines)) == [("one", "1"), ("message", "2")]


def test_the_data_lines_of_one_event_are_joined_by_lf() -> None:
    assert events(b"data: a\ndata:b\ndata:  c\ndata\n\n") == [("message", "a\nb\n c\n")]


def test_comments_retry_and_unknown_fields_are_no_events() -> None:
    assert events(b": ping\n\nretry: 3000\n\nwhatever: 1\n[DONE]\n\nevent: lost\n\ndata: x\n\n") == [
        ("message", "x")
    ]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    bom = b"\xef\xbb\xbf"
    assert events(bom + b"data: x\n\n" + bom + b"data: y\n\ndata: " + bom + b"\n\n") == [
        ("message", "x"),
        ("message", "\ufeff"),
    ]


def test_invalid_utf8_is_replaced() -> None:
    assert events(b"data: caf\xe9 ok\n\n") == [("message", "caf\ufffd ok")]


def test_an_unterminated_block_is_dropped() -> None:
    assert events(b"data: whole\n\ndata: half\n") == [("message", "whole")]


def test_the_last_id_stays_until_another_one_comes() -> None:
    read = SSEReader().feed(b"id: 7\ndata: a\n\ndata: b\n\nid: x\0y\ndata: c\n\nid\ndata: d\n\n")
    assert [event.id for event in read] == ["7", "7", "7", ""]


@pytest.mark.parametrize(
    "long", [b"x" * 101, b"data: " + b"x" * 101 + b"\n", b"data: " * 1 + b"y\n" + b"data:\n" * 101]
)
def test_a_line_or_an_event_that_is_too_long_is_an_error(long: bytes) -> None:
    reader = SSEReader(max_event_bytes=100)
    with pytest.raises(ModelError) as caught:
        reader.feed(long)
    assert caught.value.kind is ModelErrorKind.MALFORMED_RESPONSE


def test_many_events_in_one_packet_are_not_too_long() -> None:
    reader = SSEReader(max_event_bytes=100)
    assert len(reader.feed(b"data: x\n\n" * 1000)) == 1000


def test_a_stream_cut_at_any_place_and_byte_by_byte_gives_the_same_events() -> None:
    stream = (
        b"\xef\xbb\xbfdata: a\r\ndata: \xe6\x9d\xb1\r\n\r\nevent: e\rid: 1\rdata: b\r\r\n: c\n\r\n"
        b"data: \xf0\x9f\x98\x80\xff\n\ndata:\r\n\r\nretry: 1\n\n"
    )
    whole = SSEReader().feed(stream)
    assert [event.data for event in whole] == ["a\n\u6771", "b", "\U0001f600\ufffd", ""]
    for cut in range(len(stream)):
        reader = SSEReader()
        assert reader.feed(stream[:cut]) + reader.feed(stream[cut:]) == whole
    reader = SSEReader()
    assert [event for byte in stream for event in reader.feed(bytes([byte]))] == whole


PIECES = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data:",
        b"data: ",
        b"event: e",
        b"id: 1",
        b":",
        b"x",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xa9",
    ]
)


@given(st.lists(PIECES, max_size=40), st.data())
def test_where_packets_cut_the_bytes_makes_no_difference(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    reader = SSEReader()
    read: list[SSEEvent] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        read += reader.feed(stream[start:end])
    assert read == SSEReader().feed(stream)


@given(st.lists(PIECES, max_size=40))
def test_events_are_those_of_a_plain_reading_of_the_standard(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    assert [(event.event, event.data, event.id) for event in SSEReader().feed(stream)] == plain(stream)


def plain(stream: bytes) -> list[tuple[str, str, str]]:
    """The standard's own steps, for a stream that is all there."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    found: list[tuple[str, str, str]] = []
    data = name = last_id = ""
    for line in lines:
        if line == "":
            if data:
                found.append((name or "message", data.removesuffix("\n"), last_id))
            data = name = ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
    return found
