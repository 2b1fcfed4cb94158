"""The model: it knows the acts, and takes the time that a model takes."""

import math
import random
from collections.abc import Sequence

from exeunt import Message, ModelRequest
from exeunt.demo.acts import BY_PROMPT, LAST_ACT, SEED, SUMMARY_SEED, Act
from exeunt.demo.tally import Timings
from exeunt.testing import Reply, after
from exeunt.testing.replies import Fail

USUAL = 0.45
"""Seconds of half of the answers; the logarithm of the time is normal, so some take several times as long."""
SPREAD = 0.5
LONGEST = 3.0


class Director:
    """Answers each request of the demo. Give it to a `ScriptedModel` as its default reply."""

    def __init__(self, chance: random.Random, timings: Timings) -> None:
        self._chance = chance
        self._timings = timings
        self._failed: set[str] = set()
        """Turns in which the model was overloaded already."""

    def __call__(self, request: ModelRequest, /) -> Reply:
        """Return the reply that the act has at this place."""
        act, place = find_place(request.messages)
        self._timings.requested(request.session_id, seeded=place == 0 and act.prompt in (SEED, SUMMARY_SEED))
        reply = act.replies[min(place, len(act.replies) - 1)]
        if isinstance(reply, Fail) and len(act.replies) > 1:
            if request.turn_id in self._failed:
                reply = act.replies[place + 1]
            self._failed.add(request.turn_id)
        return after(min(LONGEST, self._chance.lognormvariate(math.log(USUAL), SPREAD)), reply)


def find_place(messages: Sequence[Message]) -> tuple[Act, int]:
    """Return the act that is played, and how many answers it has had."""
    answers = 0
    for message in reversed(messages):
        if message.role == "assistant":
            answers += 1
        elif message.role == "user" and message.content in BY_PROMPT:
            return BY_PROMPT[message.content], answers
    return LAST_ACT, answers
