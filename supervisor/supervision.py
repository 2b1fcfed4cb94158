"""The supervision of session actors: restarts within an intensity, each session for itself.

An idle session has no task that a nursery could watch, so its actor reports its crashes here. The bookkeeping is
that of every other child of a supervisor.
"""

import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from exeunt.supervisor.restarts import Backoff, RestartIntensity, RestartLog

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor

logger = logging.getLogger("exeunt.supervisor")


class SessionSupervision:
    """Decides what becomes of an actor that crashed. Implements `exeunt.actors.ports.Supervision`."""

    def __init__(
        self,
        intensity: RestartIntensity,
        backoff: Backoff,
        now: Callable[[], float],
        ended: "Callable[[SessionActor], None]",
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._intensity = intensity
        self._backoff = backoff
        self._now = now
        self._ended = ended
        self._chance = chance

    def crashed(self, actor: "SessionActor", cause: Exception) -> float | None:
        """Return the seconds before the restart, or `None` when the intensity is exceeded."""
        if actor.restarts is None:
            actor.restarts = RestartLog(self._intensity)
        restarts: RestartLog = actor.restarts
        if not restarts.record(self._now()):
            logger.error("session %s is given up after %d restarts", actor.id, restarts.recent - 1)
            return None
        return self._backoff.delay(restarts.recent, self._chance)

    def ended(self, actor: "SessionActor") -> None:
        """Take note that a session left memory."""
        self._ended(actor)
