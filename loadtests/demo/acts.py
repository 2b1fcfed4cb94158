"""The acts: what a guest asks for, and what the model does then.

The model is a pure function of its request: it finds the act by the guest's words, and its place in the act by its
own answers since. So an abort, a crash or a clear at any moment leaves it where it should be.
"""

from enum import StrEnum, auto

import attrs

from exeunt.testing import Reply, call, fail, say


class Way(StrEnum):
    """How a guest goes about an act; `exeunt.demo.guests` has one method for each."""

    ASK = auto()
    ABORT = auto()
    """Ask, and lose patience."""
    STEER = auto()
    """Ask, and add something while the turn runs."""
    QUEUE = auto()
    """Send three messages at once."""
    CLEAR_AS_HOST = auto()
    """The host calls the clear tool between two turns."""
    CLEAR_OUTSIDE = auto()
    """Ask for a clear while no tool runs: refused."""


@attrs.frozen
class Act:
    """One thing that happens in a session."""

    prompt: str
    replies: tuple[Reply, ...]
    """The model's answers, one a request; the last one repeats."""
    weight: int = 1
    """How often it is played, against the others; 0 for what only follows from another act."""
    way: Way = Way.ASK


LOOK_UP = call("look_up", topic="The Winter's Tale")
SEED = "Go on with the second half of the plan: the cast list is settled, look for a hall."
SUMMARY_SEED = "Summary so far: three halls were asked, two answered. Ask the third one."
STEERING = "One more thing: it must have a cloakroom."

ACTS = (
    Act("Who wrote this play?", (say("A man from Stratford, most people say."),), weight=8),
    Act("When does it begin tonight?", (LOOK_UP, say("At half past seven.")), weight=12),
    Act(
        "Compare the three reviews.",
        (
            [
                LOOK_UP,
                call("look_up", topic="second review"),
                call("count_words", text="exit, pursued by a bear"),
            ],
            say("Two of them liked the bear."),
        ),
        weight=6,
    ),
    # Ways for a call to go wrong. The model sees each and goes on.
    Act(
        "Book two seats.",
        (
            call("book_seats", seats=2, attempt=1),
            call("book_seats", seats=2, attempt=2),
            say("Row five, on the aisle."),
        ),
        weight=3,
    ),
    Act("Read the whole archive.", (call("crawl", url="archive"), say("It takes too long.")), weight=2),
    Act("Pay for the seats.", (call("pay", amount=48), say("You must confirm it at the desk.")), weight=2),
    Act("Throw the archive away.", (call("delete_archive"), say("Then I leave it.")), weight=2),
    Act(
        "Book seats for all of us.",
        (call("book_seats", seats="all"), call("book_seats", seats=9, attempt=2), say("Nine seats it is.")),
    ),
    Act("Fly me there.", (call("teleport", to="Verona"), say("I have no such tool."))),
    # Terminal tools: success, and nothing else, ends the turn.
    Act("Hand this over to a person.", (call("hand_over", summary="wants two seats"),), weight=4),
    Act("Look once more, then hand over.", ([LOOK_UP, call("hand_over", summary="done")],), weight=2),
    Act("Hand over, whatever it is.", (call("hand_over", summary=""), say("There is nothing to hand over."))),
    # Clears: committed, with siblings, not terminal, rolled back, refused.
    Act("Start over with the plan.", (call("clear_context", prompt=SEED),), weight=5),
    Act("Look that up and start over.", ([LOOK_UP, call("clear_context", prompt=SEED)],), weight=2),
    Act("This is long: sum it up and go on.", (call("compact", prompt=SUMMARY_SEED),), weight=3),
    Act(
        "Start over, if the disk lets you.",
        (call("clear_and_fail", prompt=SEED), say("It did not.")),
        weight=2,
    ),
    Act("Start over with nothing.", (call("clear_context", prompt=" "), say("With what, then?"))),
    Act(
        "Start over, twice.",
        ([call("clear_context", prompt=SEED), call("clear_context", prompt=SUMMARY_SEED)],),
    ),
    Act("The desk starts over.", (), way=Way.CLEAR_AS_HOST, weight=2),
    Act("A stranger starts over.", (), way=Way.CLEAR_OUTSIDE),
    # Guests who do not wait.
    Act(
        "Tell me all about the theatre.", (LOOK_UP, LOOK_UP, say("Where to begin?")), weight=3, way=Way.ABORT
    ),
    Act("Find a restaurant nearby.", (LOOK_UP, LOOK_UP, say("The Globe, at nine.")), weight=3, way=Way.STEER),
    Act("Is there a lift?", (say("There is."),), weight=2, way=Way.QUEUE),
    # Models that fail.
    Act("What does the programme cost?", (fail("overloaded", "one moment", retry=True), say("Four euros."))),
    Act("Read this to me in one breath.", (fail("bad_request", "the request is too long", status=400),)),
    Act("Look it up until you are sure.", (LOOK_UP,)),
    # What follows from others.
    Act(SEED, (say("The hall at the river is free in May."),), weight=0),
    Act(SUMMARY_SEED, (LOOK_UP, say("The third one is free as well.")), weight=0),
    Act("Thank you, good night.", (say("Good night."),), weight=0),
)
LAST_ACT = ACTS[-1]
BY_PROMPT = {act.prompt: act for act in ACTS}
PLAYED = tuple(act for act in ACTS if act.weight)
