"""Asking people something for a turn, which goes on when there is an answer."""

import inspect
from typing import Any

import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.callers import CALLER, Caller
from exeunt.actors.events import SessionLimitsExhaustedRequested
from exeunt.actors.permissions import leaves_pending
from exeunt.actors.state.session_state import TurnRequested
from exeunt.actors.text import cause_of
from exeunt.actors.turn.live import Turn
from exeunt.actors.turn_requests import (
    AutoModeSwitchRequest,
    SessionLimitsExhaustedRequest,
    TurnRequest,
    TurnRequestHandler,
    to_limit_decision,
    to_switch_response,
)


class TurnQuestion(Activity):
    """Asks the host's handler. Its result is a checked answer, or `Unanswered`.

    Where the handler leaves the question open, it waits for its time to be over, or for somebody to answer from
    elsewhere: then it is left behind.
    """

    def __init__(self, turn: Turn, asked: TurnRequested, seconds: float) -> None:
        super().__init__(turn.actor)
        self.turn = turn
        self.asked = asked
        self.seconds = seconds
        """What it may take in all."""

    async def run(self) -> Any:
        """Ask, and return the answer."""
        if self.actor.log.outlives_process:
            await self.until_safe(self.asked.seq)
        self.limit(self.seconds)
        token = CALLER.set(Caller(self.actor, hook=self))
        try:
            return await self._answer()
        finally:
            CALLER.reset(token)

    async def _answer(self) -> Any:
        handler = self._handler
        if handler is None:
            return Unanswered("nobody can be asked")
        try:
            answer: Any = handler(
                told(self.asked, self.actor.options.model_name), self.actor.invocation(None)
            )
            if inspect.isawaitable(answer):
                answer = await answer
            if not leaves_pending(answer):
                return checked(self.asked, answer)
        except Exception as error:  # noqa: BLE001 - a handler is foreign code
            return Unanswered(f"the handler failed: {cause_of(error)}")
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    @property
    def _handler(self) -> TurnRequestHandler | None:
        options = self.actor.options
        if isinstance(self.asked, SessionLimitsExhaustedRequested):
            return options.on_session_limits_exhausted
        return options.on_auto_mode_switch_request

    def lost(self, result: Any) -> Any:
        """Nobody has answered."""
        return Unanswered("nobody answered within the time")


class Unanswered:
    """In the place of an answer."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


def told(asked: TurnRequested, model: str) -> TurnRequest:
    """Return a request as who answers sees it."""
    if isinstance(asked, SessionLimitsExhaustedRequested):
        return SessionLimitsExhaustedRequest(asked.used_ai_credits, asked.max_ai_credits, asked.request_id)
    return AutoModeSwitchRequest(
        model, asked.auto_model, asked.error_code, asked.retry_after_seconds, asked.request_id
    )


def checked(asked: TurnRequested, answer: Any) -> Any:
    """Return *answer* as one to what was asked. Raises `InvalidAnswer`."""
    if isinstance(asked, SessionLimitsExhaustedRequested):
        return to_limit_decision(answer)
    return to_switch_response(answer)
