"""Crashes on purpose."""

from exeunt.actors.session import Session


class InjectedCrash(Exception):
    """A fault that somebody wanted to see."""


def crash_session(session: Session, error: Exception | None = None) -> None:
    """Crash the actor of *session*, as if one of its handlers had raised *error* (default: an `InjectedCrash`).

    What follows is what follows any crash: the turn that runs ends `interrupted` and its waiters get
    `TurnInterrupted`, its open calls are `interrupted`, a staged clear is rolled back, queue and subscribers stay,
    and the actor starts again from its log after a back-off. Beyond its restart intensity the session is `failed`.
    Returns at once; inside a handler of the session, the crash comes when that handler has returned. Does nothing
    to a session that is `closed` or `failed`.
    """
    actor = session._actor  # pyright: ignore[reportPrivateUsage] - the testing kit looks behind the handle
    if actor.status not in ("closed", "failed"):
        actor.crash("injected", InjectedCrash("injected by a test") if error is None else error)
