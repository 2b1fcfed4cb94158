"""One request to the model, with its retries."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from typing import Any

import trio

from exeunt.actors.activities.activity import Activity
from exeunt.actors.activities.hook_calls import call_hook, common_fields
from exeunt.actors.events import (
    AssistantMessageDelta,
    AssistantReasoningDelta,
    AssistantTurnRetry,
    ModelCallFailure,
)
from exeunt.actors.hook_outputs import ERROR_OCCURRED
from exeunt.actors.hooks import ErrorOccurredInput
from exeunt.actors.limit_status import with_status
from exeunt.actors.models import (
    Message,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
)
from exeunt.actors.options import RetryPolicy
from exeunt.actors.ports import Tracing
from exeunt.actors.state.account import NO_ACCOUNT
from exeunt.actors.text import cause_of, encodable
from exeunt.actors.turn import rate_limits
from exeunt.actors.turn.live import Turn

MOST_HOOK_RETRIES = 5
"""A hook may ask for this many more attempts at once, and only once in a step: it must not loop."""

_jitter = random.Random()


class ModelCall(Activity):
    """A request of a turn. Its result is a `ModelResponse`, or the `ModelError` that ended it."""

    attempt: int = 0
    _last: int = 0
    """The last attempt that a hook allows, where it was asked and wants more of them."""
    _asked_hook: bool = False
    began: float = 0.0
    """When the last attempt was made."""
    message_id: str | None = None
    """Id under which the pieces of the last attempt are shown."""

    def __init__(self, turn: Turn) -> None:
        actor = turn.actor
        super().__init__(actor)
        self.turn = turn
        self.seq = actor.state.seq
        """Number of the last event that the request follows from."""
        messages: Sequence[Message] = actor.state.context.request()
        if actor.state.account is not NO_ACCOUNT:
            messages = with_status(messages, actor.state.account)
        self.options = options = actor.options
        """Of the whole call: others that come meanwhile hold from the next one on."""
        self.request = ModelRequest(messages, options.tools.definitions, actor.id, turn.turn_id)

    def run(self) -> Coroutine[Any, Any, ModelResponse | ModelError]:
        """Call the model until it answers, fails for good, or the policy is spent."""
        tracing = self.actor.host.tracing
        # No more frames than are needed: each costs at every step of the task.
        return self._run() if tracing is None else self._run_traced(tracing)

    async def _run_traced(self, tracing: Tracing) -> ModelResponse | ModelError:
        traced = tracing.calling_model(self.actor.id, self.turn.turn_id)
        try:
            return await self._run()
        finally:
            tracing.called(traced)

    async def _run(self) -> ModelResponse | ModelError:
        if self.actor.log.outlives_process:
            after_a_clear = self.turn.delivery == "seed" and self.turn.steps == 1
            await self.until_safe(self.seq if after_a_clear else 0)
        actor = self.actor
        options = self.options
        while True:  # noqa: ASYNC913 - between two attempts it waits
            self.attempt += 1
            self.began = actor.host.clock.now()
            try:
                if options.streaming:
                    return await self._streamed()
                self.limit(options.waits.model_total)
                answer = await options.model.complete(self.request)
                if isinstance(answer, ModelResponse):
                    return answer
                kind = type(answer).__name__
                error = ModelError(
                    ModelErrorKind.UNKNOWN, f"the model client returned {kind}, no ModelResponse"
                )
            except ModelError as caught:
                error = caught
            except Exception as caught:  # noqa: BLE001 - a model client is foreign code
                error = ModelError(ModelErrorKind.UNKNOWN, cause_of(caught))
                error.__cause__ = caught
            try:
                self.record_failure(error)
                if self.cause is not None or not await self._goes_on_after(error):
                    return error
            finally:
                del error  # it holds this frame, and must not be held by it

    async def _goes_on_after(self, error: ModelError) -> bool:
        """Wait for the time of another attempt, if there is to be one."""
        policy = self.options.retries
        last = self._last or policy.attempts + 1
        if not error.retry or self.attempt >= last or self._is_lasting(error):
            if self._asked_hook:
                return False
            self._asked_hook = True
            more = await self._ask_hook(error)
            if not more:
                return False
            self._last = self.attempt + more
        await self._back_off(policy, error)
        return True

    def _is_lasting(self, error: ModelError) -> bool:
        return rate_limits.is_lasting(self.options, self.actor.state, error)

    def lost(self, result: Any) -> ModelResponse | ModelError:
        """An attempt that ran out of time, or was cancelled."""
        if self.cause == "timeout":
            return ModelError(ModelErrorKind.TIMEOUT, self._timeout_text())
        return ModelError(ModelErrorKind.UNKNOWN, f"the model call was cancelled: {self.cause}")

    def record_failure(self, error: ModelError) -> None:
        """Say that an attempt failed."""
        actor = self.actor
        seconds = actor.host.clock.now() - self.began
        actor.record(
            ModelCallFailure,
            self.options.model_name,
            self.options.provider_name,
            str(error.kind),
            encodable(str(error)),
            error.status,
            seconds,
            self.attempt,
        )

    async def _streamed(self) -> ModelResponse:
        actor = self.actor
        waits = self.options.waits
        self.message_id = actor.new_id()
        self.limit(waits.model_first)
        ends = actor.host.clock.now() + waits.model_stream
        stream: Any = self.options.model.stream(self.request)
        async with aclosing(stream):
            piece: ModelDelta | ModelResponse
            async for piece in stream:
                if isinstance(piece, ModelResponse):
                    return piece
                self.limit(min(waits.model_gap, max(ends - actor.host.clock.now(), 0.0)))
                if self.done:
                    continue
                if piece.reasoning:
                    actor.record(AssistantReasoningDelta, self.message_id, piece.reasoning)
                if piece.text:
                    actor.record(AssistantMessageDelta, self.message_id, piece.text)
        raise ModelError(
            ModelErrorKind.TRUNCATED_STREAM, "the stream ended without a whole answer", retry=True
        )

    async def _back_off(self, policy: RetryPolicy, error: ModelError) -> None:
        delay = min(policy.longest_delay, policy.first_delay * policy.factor ** (self.attempt - 1))
        if error.retry_after is not None:
            delay = max(error.retry_after, 0.0)
        delay *= 1 + policy.jitter * _jitter.random()
        self.actor.record(AssistantTurnRetry, self.turn.turn_id, str(error.kind), self.attempt + 1, delay)
        self.limit(delay + 1.0)
        await trio.sleep(delay)

    async def _ask_hook(self, error: ModelError) -> int:
        hook = self.options.hooks.on_error_occurred
        if hook is None:
            return 0
        hook_input = ErrorOccurredInput(
            **common_fields(self), error=str(error), error_context="model_call", recoverable=error.retry
        )
        output = (await call_hook(self, hook, ERROR_OCCURRED, hook_input)).output
        if output.error_handling != "retry":
            return 0
        count = 1 if output.retry_count is None else output.retry_count
        return min(max(count, 0), MOST_HOOK_RETRIES)

    def _timeout_text(self) -> str:
        waits = self.options.waits
        if self.options.streaming:
            return (
                f"the model took too long (limits: {waits.model_first:g} s for the first piece, "
                f"{waits.model_gap:g} s between pieces, {waits.model_stream:g} s in all)"
            )
        return f"the model did not answer within {waits.model_total:g} s"
