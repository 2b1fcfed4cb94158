"""Sessions that crash, for tests."""

from collections.abc import Callable

from exeunt import (
    HostOptions,
    Session,
    SessionHost,
)
from exeunt.actors.turn.actor import SessionActor
from exeunt.supervisor import Backoff, RestartIntensity

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."


EXACT = HostOptions(backoff=Backoff(first=1.0, factor=2.0, jitter=0.0), intensity=RestartIntensity(3, 60.0))
"""Back-off of 1, 2 and 4 s."""


def crash(host: SessionHost, session: Session, error: Exception | None = None) -> None:
    """Crash the actor of *session* as a fault outside of its handlers does."""
    actor_of(host, session).crash("test", error or RuntimeError("boom"))


def actor_of(host: SessionHost, session: Session) -> SessionActor:
    (actor,) = (a for a in host.actors() if a.id == session.session_id)
    return actor


def fails(times: float) -> Callable[[SessionActor], None]:
    """A handler of an actor that raises the first *times* times."""
    runs: list[int] = []

    def handler(actor: SessionActor) -> None:
        runs.append(len(runs))
        if len(runs) <= times:
            raise RuntimeError(f"crash {len(runs)}")

    return handler
