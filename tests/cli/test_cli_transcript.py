"""What a person reads of the events of a session."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeunt import TurnEndReason
from exeunt.actors import events
from exeunt.actors.session import StreamLagged
from exeunt.cli.chat.transcript import Transcript, one_line, printable

ORIGIN = events.Origin.fresh()


def delta(message_id: str, text: str) -> events.Event:
    return events.AssistantMessageDelta(ORIGIN, 1, 0.0, 1, message_id, text)


def message(message_id: str, text: str) -> events.Event:
    return events.AssistantMessage(ORIGIN, 1, 0.0, text, "turn", message_id)


def turn_end(reason: str) -> events.Event:
    return events.TurnEnd(ORIGIN, 1, 0.0, "turn", TurnEndReason(reason), 0, 1, 0.1)


def accepted(message_id: str, prompt: str, mode: str) -> events.Event:
    return events.MessageAccepted(ORIGIN, 1, 0.0, message_id, mode, prompt)


def dropped(message_id: str) -> events.Event:
    return events.MessageDropped(ORIGIN, 1, 0.0, message_id, "aborted")


def entered(message_id: str, prompt: str) -> events.Event:
    return events.UserMessage(ORIGIN, 1, 0.0, prompt, "turn", message_id)


def shown(happened: Iterable[events.Event], *, live: bool = True) -> str:
    transcript = Transcript(live)
    return "".join(text for event in happened for _, text in transcript.take(event))


def test_pieces_are_shown_as_they_come_and_the_whole_only_ends_the_line() -> None:
    assert (
        shown([delta("m", "Hel"), delta("m", "lo"), message("m", "Hello"), turn_end("completed")])
        == "Hello\n"
    )


def test_without_pieces_the_whole_is_shown() -> None:
    assert shown([message("m", "Hello"), turn_end("completed")]) == "Hello\n"


def test_the_rest_that_no_piece_held_is_shown() -> None:
    assert shown([delta("m", "Hel"), message("m", "Hello")]) == "Hello\n"


def test_an_attempt_that_broke_off_is_told_from_the_next_one() -> None:
    text = shown([delta("m", "Hel"), delta("n", "Good"), message("n", "Good day")])
    assert text == "Hel\nthe answer broke off; this is another\nGood day\n"


def test_an_answer_whose_pieces_were_missed_is_shown_in_full() -> None:
    lagged: Any = StreamLagged(ORIGIN, 1, 0.0, 1, 1, 5)
    text = shown([delta("m", "Hel"), lagged, delta("m", " day"), message("m", "Hello, good day")])
    assert text.startswith("Hel\n5 events were not shown")
    assert text.endswith("the answer in full:\nHello, good day\n")


def test_where_nobody_watches_only_whole_answers_are_shown() -> None:
    happened = [delta("m", "Hel"), delta("n", "Good"), message("n", "Good day"), turn_end("completed")]
    assert shown(happened, live=False) == "Good day\n"


def test_an_empty_answer_shows_nothing() -> None:
    assert shown([message("m", ""), turn_end("completed")]) == ""


@pytest.mark.parametrize("reason", ["aborted", "interrupted", "limit"])
def test_a_turn_that_did_not_end_well_says_so_on_a_line_of_its_own(reason: str) -> None:
    transcript = Transcript(True)
    list(transcript.take(delta("m", "Hel")))
    pieces = list(transcript.take(turn_end(reason)))
    assert pieces[0] == ("answer", "\n")
    assert reason in pieces[1][1]
    assert transcript.failed


@given(st.text(), st.lists(st.integers(0, 40)))
def test_however_an_answer_is_cut_it_is_shown_once(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut <= len(text))})
    pieces = [delta("m", text[start:end]) for start, end in itertools.pairwise(places)]
    whole = shown([*pieces, message("m", text), turn_end("completed")])
    assert whole == shown([message("m", text), turn_end("completed")])
    assert whole in (printable(text), printable(text) + "\n")


@given(st.text(), st.integers(3, 80))
def test_a_line_is_one_line_of_at_most_its_length(text: str, longest: int) -> None:
    line = one_line(text, longest)
    assert len(line) <= longest
    assert len(line.splitlines()) <= 1
    assert printable(line) == line


def test_a_line_that_was_typed_during_an_answer_and_not_taken_in_is_named() -> None:
    steering = accepted("s", "and\nthe\x1b bear?", "immediate")
    assert shown([delta("m", "Hel"), steering, dropped("s"), turn_end("aborted")]) == (
        "Hel\nnot taken in, aborted: and the bear?\naborted\n"
    )
    # What was taken in is no more to be dropped; of a message that began a turn the end of the turn tells.
    assert shown([steering, entered("s", "and the bear?"), dropped("s")]) == ""
    assert shown([accepted("q", "hello", "enqueue"), dropped("q")]) == ""
