"""Asking the user something for a tool call."""

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import trio

from exeunt.actors.activities.approval import first_answer
from exeunt.actors.activities.handlers import leave_slots_while
from exeunt.actors.errors import InvalidConfiguration, NotInToolCall, UserInputUnavailable
from exeunt.actors.permissions import leaves_pending
from exeunt.actors.text import cause_of
from exeunt.actors.turn import requests
from exeunt.actors.turn.requests import OpenRequest
from exeunt.actors.user_input import (
    UserInputHandler,
    UserInputRequest,
    UserInputResponse,
    checked_question,
    to_response,
)

if TYPE_CHECKING:
    from exeunt.actors.activities.tool_call import Call


async def ask_user(
    call: "Call", question: str, choices: Any, allow_freeform: bool, seconds: float | None
) -> UserInputResponse:
    """Ask, and wait for the first answer, the handler's or one from elsewhere. See `ToolInvocation.ask_user`."""
    actor = call.actor
    asked = checked_question(question, choices, allow_freeform)
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf")
    ):
        raise InvalidConfiguration(f"timeout must be a positive number of seconds, not {seconds!r}")
    if call.done or call.returned:
        raise NotInToolCall("the tool call that asks the user has its outcome already", session_id=actor.id)
    handler = actor.options.on_user_input_request
    if handler is None:
        raise UserInputUnavailable(
            f"session {actor.id} has no on_user_input_request, so nobody can be asked; leave_pending as that handler"
            " leaves questions to session.answer()",
            session_id=actor.id,
        )
    await trio.lowlevel.checkpoint_if_cancelled()
    request = OpenRequest(call, float(seconds or actor.options.waits.user_input))
    return await leave_slots_while(call, partial(_answered, request, asked, handler))


async def _answered(
    request: OpenRequest, asked: UserInputRequest, handler: UserInputHandler
) -> UserInputResponse:
    call = request.call
    actor = call.actor
    call.hold_time()
    actor.put(requests.ask_user, request, asked)
    try:
        response = await _response(request, asked, handler)
        actor.put(requests.respond, request, response)
        return response
    except UserInputUnavailable:
        actor.put(requests.withdraw, request, "unavailable")
        raise
    finally:
        actor.host.timers.stop(request.seconds, request)
        # Only where nobody has answered: its task was cancelled.
        actor.put(requests.withdraw, request, "cancelled")
        call.release_time()


async def _response(
    request: OpenRequest, asked: UserInputRequest, handler: UserInputHandler
) -> UserInputResponse:
    call = request.call
    if not request.resolved:
        try:
            told = UserInputRequest(
                asked.question, asked.choices, asked.allow_freeform, request.request_id, call.call.id
            )
            answer: Any = handler(told, call.actor.invocation(call.call.id))
            if inspect.isawaitable(answer):
                answer = await first_answer(answer, request)
            if not request.resolved and not leaves_pending(answer):
                return to_response(answer, asked)
        except Exception as error:
            if not request.resolved:
                raise UserInputUnavailable(
                    f"the handler for user input failed: {cause_of(error)}", session_id=call.actor.id
                ) from error
    return cast("UserInputResponse", await request.wait())
