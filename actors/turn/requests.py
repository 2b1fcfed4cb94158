"""What a call asks people: approval, or an answer to a question. Handlers of the actor.

A request is in the log from `permission.requested` or `user_input.requested` on, so it can be listed and answered by
whoever knows its id, and it outlives the task that asked. What is alive of it (`OpenRequest`) is that task, which is
told of the answer; the first answer counts.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import outcome

from exeunt.actors.activities.activity import GRACE
from exeunt.actors.errors import InvalidAnswer, NotInToolCall, RequestNotPending, UserInputTimeout
from exeunt.actors.events import (
    PermissionCompleted,
    PermissionRequested,
    UserInputCompleted,
    UserInputRequested,
)
from exeunt.actors.permissions import (
    ApproveForSession,
    PermissionDecision,
    Reject,
    UserNotAvailable,
    decision_from_outside,
)
from exeunt.actors.state.session_state import Asked
from exeunt.actors.text import encodable
from exeunt.actors.turn import parking
from exeunt.actors.turn.live import Waiter
from exeunt.actors.user_input import UserInputRequest, UserInputResponse, to_response

if TYPE_CHECKING:
    import trio

    from exeunt.actors.activities.tool_call import Call
    from exeunt.actors.turn.actor import SessionActor


class OpenRequest(Waiter):
    """A task of a call that waits for an answer; or, while its handler runs, will wait for the first one."""

    __slots__ = ("call", "request_id", "scope", "seconds")

    def __init__(self, call: "Call", seconds: float, request_id: str = "") -> None:
        super().__init__()
        self.call = call
        self.seconds = seconds
        """What it may take in all."""
        self.request_id = request_id
        self.scope: trio.CancelScope | None = None
        """In which the host's handler runs."""

    def resolve(self, result: "outcome.Outcome[Any]") -> None:
        """Hand over the answer; a handler that is still thinking is cancelled, and has the grace to end."""
        super().resolve(result)
        if self.scope is not None:
            self.call.limit(GRACE)
            self.scope.cancel()

    def expire(self) -> None:
        """Its time is over. For the timers."""
        self.call.actor.put(_run_out, self)


def ask_permission(actor: "SessionActor", request: OpenRequest, description: str) -> None:
    """Log that a call waits for approval, and let its slots to others."""
    call = request.call
    if call.done:
        return
    request.request_id = actor.new_id()
    guidance = "\n\n".join(call.guidance) if call.guidance else None
    deadline = actor.host.clock.wall() + request.seconds
    actor.emit(
        PermissionRequested,
        request.request_id,
        call.call.id,
        call.name,
        call.arguments_json,
        description,
        deadline,
        None if guidance is None else encodable(guidance),
        call.asked_because,
    )
    _open(call, request)
    parking.park(actor, call)


def ask_user(actor: "SessionActor", request: OpenRequest, asked: UserInputRequest) -> None:
    """Log a question of a call; or take up the same one, where the call asked it before it was cut off."""
    call = request.call
    if call.done:
        text = "the tool call that asks the user has its outcome already"
        actor.wake(request, outcome.Error(NotInToolCall(text, session_id=actor.id)))
        return
    before = _asked_before(actor, call, asked)
    if before is None:
        request.request_id = actor.new_id()
        actor.emit(
            UserInputRequested,
            request.request_id,
            call.call.id,
            call.name,
            asked.question,
            asked.choices,
            asked.allow_freeform,
            actor.host.clock.wall() + request.seconds,
        )
    else:
        request.request_id = before.request.request_id
        if before.answer is not None:
            actor.wake(request, outcome.Value(_response(before.answer)))
            return
    _open(call, request)
    left = request.seconds if before is None else time_left(actor, request)
    actor.host.timers.start(left, request)
    request.seconds = left


def _asked_before(actor: "SessionActor", call: "Call", asked: UserInputRequest) -> Asked | None:
    """Return what the call asked in these words when it ran before; each time that it did counts once."""
    for request_id in call.asked_before:
        before = (actor.state.requests or {}).get(request_id)
        request = None if before is None else before.request
        if isinstance(request, UserInputRequested) and asked == _question(request):
            call.asked_before.remove(request_id)
            return before
    return None


def _open(call: "Call", request: OpenRequest) -> None:
    if call.requests is None:
        call.requests = {}
    call.requests[request.request_id] = request


def time_left(actor: "SessionActor", request: OpenRequest) -> float:
    """Return the seconds that are left of a request's time; one whose time is over gets a moment to say so."""
    asked = (actor.state.requests or {}).get(request.request_id)
    if asked is None or asked.request.deadline is None:
        return request.seconds
    return max(0.001, asked.request.deadline - actor.host.clock.wall())


# --- Answers -------------------------------------------------------------------------------------------------


def listed(actor: "SessionActor") -> Iterator[tuple[Asked, "Call"]]:
    """Yield what is open, oldest first, with the call that asks. A call that is being cancelled asks nothing."""
    batch = actor.batch
    if actor.state.requests is None or batch is None or actor.status != "live":
        return
    calls = {call.call.id: call for call in batch.calls}
    for asked in actor.state.requests.values():
        call = calls.get(asked.request.tool_call_id)
        if asked.answer is None and call is not None and not call.cancelled:
            yield asked, call


def answer(actor: "SessionActor", request_id: str, given: Any, waiter: Waiter) -> None:
    """Take an answer from outside; *waiter* gets the number of its event, or why it is refused."""
    for asked, call in listed(actor):
        if asked.request.request_id == request_id:
            try:
                _take(actor, call, asked.request, given)
            except InvalidAnswer as error:
                actor.wake(waiter, outcome.Error(error))
            else:
                actor.wake(waiter, outcome.Value(actor.state.seq))
            return
    text = (
        f"session {actor.id} has no open request {request_id!r:.80}: it was answered, ran out of time, ended with its"
        " call, or never was one"
    )
    actor.wake(waiter, outcome.Error(RequestNotPending(text, session_id=actor.id)))


def _take(
    actor: "SessionActor", call: "Call", request: PermissionRequested | UserInputRequested, given: Any
) -> None:
    if isinstance(request, PermissionRequested):
        decision = decision_from_outside(given)
        live = _close(call, request.request_id)
        _decided(actor, call, request.request_id, decision)
        if live is not None:
            actor.wake(live, outcome.Value(decision))
    else:
        response = to_response(given, _question(request))
        live = _close(call, request.request_id)
        _answered(actor, request.request_id, call, response)
        if live is not None:
            actor.wake(live, outcome.Value(response))


def decide(actor: "SessionActor", request: OpenRequest, decision: PermissionDecision) -> None:
    """Take the answer of the permission handler, unless another came first or the call has its outcome."""
    call = request.call
    if not call.done and _close(call, request.request_id) is not None:
        _decided(actor, call, request.request_id, decision)


def respond(actor: "SessionActor", request: OpenRequest, response: UserInputResponse) -> None:
    """Take the answer of the handler for user input, unless another came first."""
    call = request.call
    if not call.done and _close(call, request.request_id) is not None:
        _answered(actor, request.request_id, call, response)


def withdraw(actor: "SessionActor", request: OpenRequest, kind: str) -> None:
    """End a question without an answer: nobody can be asked, or nobody asks any more."""
    call = request.call
    if not call.done and _close(call, request.request_id) is not None:
        actor.emit(UserInputCompleted, request.request_id, call.call.id, kind)


def _run_out(actor: "SessionActor", request: OpenRequest) -> None:
    call = request.call
    if call.done or _close(call, request.request_id) is None:
        return
    actor.emit(UserInputCompleted, request.request_id, call.call.id, "timeout")
    text = "nobody answered the question within its time"
    actor.wake(request, outcome.Error(UserInputTimeout(text, session_id=actor.id)))


def _close(call: "Call", request_id: str) -> OpenRequest | None:
    """Forget, and return, who waits for the answer."""
    return None if call.requests is None else call.requests.pop(request_id, None)


def _decided(actor: "SessionActor", call: "Call", request_id: str, decision: PermissionDecision) -> None:
    feedback = None
    if isinstance(decision, Reject):
        kind = "rejected"
        feedback = encodable(str(decision.feedback)) if decision.feedback else None
    elif isinstance(decision, UserNotAvailable):
        kind = "unavailable"
    elif isinstance(decision, ApproveForSession):
        kind = "approved-for-session"
        if actor.approved_tools is None:
            actor.approved_tools = set()
        actor.approved_tools.add(call.name)
    else:
        kind = "approved"
    actor.emit(PermissionCompleted, request_id, call.call.id, kind, feedback)
    parking.unpark(actor, call)


def _answered(actor: "SessionActor", request_id: str, call: "Call", response: UserInputResponse) -> None:
    actor.emit(
        UserInputCompleted, request_id, call.call.id, "answered", response.answer, response.was_freeform
    )


def _question(request: UserInputRequested) -> UserInputRequest:
    return UserInputRequest(
        request.question, request.choices, request.allow_freeform, request.request_id, request.tool_call_id
    )


def _response(answer: UserInputCompleted) -> UserInputResponse:
    return UserInputResponse(answer.answer or "", answer.was_freeform)


# --- The end -------------------------------------------------------------------------------------------------


def end_all(actor: "SessionActor", call_id: str, kind: str) -> None:
    """End what a call has asked and nobody answered: the call gets its outcome. *kind* is said of an approval."""
    for asked in list((actor.state.requests or {}).values()):
        request = asked.request
        if request.tool_call_id == call_id and asked.answer is None:
            if isinstance(request, PermissionRequested):
                actor.emit(PermissionCompleted, request.request_id, call_id, kind)
            else:
                actor.emit(UserInputCompleted, request.request_id, call_id, "cancelled")
