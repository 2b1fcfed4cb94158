"""How a turn begins and goes on; `endings` has its end. Handlers of the actor."""

from collections.abc import Callable, Sequence
from typing import Any

import outcome

from exeunt.actors.activities.model_call import ModelCall
from exeunt.actors.activities.prompts import Preparation, PreparedPrompt, PromptHooks
from exeunt.actors.errors import PromptBlocked, TurnAborted
from exeunt.actors.events import (
    AssistantMessage,
    AssistantTurnEnd,
    AssistantTurnStart,
    AssistantUsage,
    MessageAccepted,
    MessageDropped,
    SessionError,
    SessionIdle,
    SessionWarning,
    UserMessage,
)
from exeunt.actors.hooks import NO_HOOKS, Hooks
from exeunt.actors.media import Media
from exeunt.actors.models import ModelError, ModelResponse, Usage
from exeunt.actors.outcomes import TurnEndReason
from exeunt.actors.state.account import NO_ACCOUNT
from exeunt.actors.state.session_state import Pending
from exeunt.actors.text import current_datetime, encodable
from exeunt.actors.turn import batches, budget, endings, media, switching
from exeunt.actors.turn.actor import SessionActor
from exeunt.actors.turn.live import Turn, Waiter

NO_USAGE = Usage()

WITHHELD = "[The first message of this context was withheld.]"
"""What the model reads in the place of a seed that a hook blocked: a context begins with a user message."""


def accept(
    actor: SessionActor,
    message_id: str,
    prompt: str,
    mode: str,
    waiter: Waiter | None,
    first: bool = False,
    note: dict[str, Any] | None = None,
    attachments: tuple[Media, ...] = (),
) -> None:
    """Take a message in: it steers the running turn, or queues, or begins a turn."""
    steers = mode == "immediate" and actor.turn is not None
    actor.emit(MessageAccepted, message_id, mode, prompt, steers, first, note, attachments)
    if waiter is not None:
        actor.expect(message_id, waiter)
    delivery = "queued" if actor.active else "idle"
    actor.active = True
    begin_next(actor, delivery)


def reached(actor: SessionActor, waiter: Waiter) -> None:
    """Everything that was put before has been handled."""
    actor.wake(waiter, outcome.Value(None))


def begin_next(actor: SessionActor, delivery: str = "queued") -> None:
    """Begin what comes next: a call of the host or a turn, whichever came first; else the session is idle."""
    if not actor.free:
        return
    queue, calls = actor.state.queue, actor.host_calls
    if calls and (calls[0].is_begun or not queue or calls[0].order < queue[0].order):
        calls[0].begin(actor)
    elif queue:
        turn = Turn(actor, actor.new_id(), actor.host.clock.now())
        turn.pending = queue[0]
        turn.delivery = delivery
        ask_for_slot(actor, turn)
    elif actor.active:
        actor.active = False
        actor.emit(SessionIdle, actor.last_reason == TurnEndReason.ABORTED)


def go_on_with_queue(actor: SessionActor) -> None:
    """Begin what has waited for somebody to go on with it."""
    # For calls and errands of the host alone no idle is owed.
    actor.active = actor.active or actor.state.waiting > 0
    begin_next(actor)


def begin_seeded(actor: SessionActor, seed: str, before: Turn | None) -> None:
    """Begin the turn of a seed, in the place of the turn that cleared the context."""
    turn = Turn(actor, actor.new_id(), actor.host.clock.now())
    turn.seed = seed
    turn.delivery = "seed"
    actor.active = True
    if before is None:
        ask_for_slot(actor, turn)
        return
    turn.records = before.records
    turn.message_ids = before.message_ids
    turn.stops_blocked = before.stops_blocked
    if before.has_slot:
        before.has_slot = False
        turn.has_slot = actor.host.turn_slots.hand_over(before, turn)
    if before.slot_wanted:
        actor.host.turn_slots.withdraw(before)
        before.slot_wanted = False
    actor.turn = turn
    if turn.has_slot:
        _prepare(actor, turn)
    else:
        ask_for_slot(actor, turn)


def ask_for_slot(actor: SessionActor, turn: Turn) -> None:
    actor.turn = turn
    if actor.host.turn_slots.request(turn):
        turn.has_slot = True
        _prepare(actor, turn)
    else:
        turn.slot_wanted = True


def slot_granted(actor: SessionActor, turn: Turn) -> None:
    """A slot that the turn had to queue for is free."""
    turn.slot_wanted = False
    if actor.turn is not turn:
        actor.host.turn_slots.release(turn)
        return
    turn.has_slot = True
    if turn.resumes_with is not None:
        go_on, turn.resumes_with = turn.resumes_with, None
        go_on(actor, turn)
    elif turn.phase == "waiting":
        _prepare(actor, turn)


def go_on(actor: SessionActor, turn: Turn, step: Callable[[SessionActor, Turn], None] | None = None) -> None:
    """Make the next request, or do *step*, once the turn has a slot again."""
    if turn.has_slot:
        (step or start_step)(actor, turn)
        return
    turn.resumes_with = step or start_step
    if not turn.slot_wanted:
        turn.slot_wanted = not actor.host.turn_slots.requeue_front(turn)
        if not turn.slot_wanted:
            slot_granted(actor, turn)


# --- Into the context ----------------------------------------------------------------------------------------


def _prepare(actor: SessionActor, turn: Turn) -> None:
    """Bring the turn's first message through the hooks and into the context."""
    prompt = turn.seed if turn.pending is None else turn.pending.prompt
    assert prompt is not None
    preface = current_datetime(actor.host.clock.wall()) if actor.options.current_datetime else ""
    hooks = actor.options.hooks
    if hooks is not NO_HOOKS:
        # A seed is all that its first request holds, so the greeting waits for a message.
        greets = turn.pending is not None and not actor.greeted and hooks.on_session_start is not None
        # Of a turn that goes on in this one, the hooks at its end are called here.
        ended = "complete" if turn.records and (hooks.on_session_end or hooks.on_agent_stop) else None
        if greets or ended is not None or _sees_prompts(hooks):
            greets_as = ("resume" if actor.resumed else "new") if greets else None
            actor.greeted = actor.greeted or greets
            _run_hooks(actor, turn, PromptHooks(turn, [prompt], greets_as, ended, preface))
            return
    if preface:
        _enter_first(actor, turn, preface + prompt, prompt)
    else:
        _enter_first(actor, turn, prompt, None)
    start_step(actor, turn)


def _sees_prompts(hooks: Hooks) -> bool:
    return hooks.on_user_prompt_submitted is not None or hooks.on_user_prompt_transformed is not None


def _run_hooks(actor: SessionActor, turn: Turn, activity: PromptHooks) -> None:
    turn.phase = "prompt_hooks"
    turn.activity = activity
    actor.start(activity)


def _enter_first(actor: SessionActor, turn: Turn, content: str, original: str | None) -> None:
    pending, turn.pending, turn.seed = turn.pending, None, None
    message_id = None if pending is None else pending.message_id
    actor.emit(UserMessage, content, turn.turn_id, message_id, turn.delivery, original)
    if pending is not None:
        _took(turn, pending)


def _steer(actor: SessionActor, turn: Turn, item: Pending, prompt: PreparedPrompt) -> None:
    actor.emit(UserMessage, prompt.content, turn.turn_id, item.message_id, "steering", prompt.original)
    _took(turn, item)


def _took(turn: Turn, item: Pending) -> None:
    turn.message_ids.append(item.message_id)
    turn.took_message = True


def prompts_prepared(actor: SessionActor, activity: PromptHooks, result: Preparation) -> None:
    """The hooks have seen the prompts."""
    if activity.done:
        return
    activity.finish()
    turn = activity.turn
    turn.activity = None
    if turn.cause is not None:
        endings.end_turn(actor, turn, TurnEndReason.ABORTED)
        return
    if result.blocked_stop is not None:
        # It follows the seed, which is what the agent does next in any case.
        actor.emit(MessageAccepted, actor.new_id(), "enqueue", result.blocked_stop, False, True)
    if result.greeting is not None:
        actor.emit(UserMessage, encodable(result.greeting), turn.turn_id, None, "hook")
    prompts = result.prompts
    if turn.pending is not None or turn.seed is not None:
        first, prompts = prompts[0], prompts[1:]
        if first.blocked is not None:
            _block_first(actor, turn, first.blocked)
            return
        _enter_first(actor, turn, first.content, first.original)
    _steer_all(actor, turn, prompts)
    start_step(actor, turn)


def _steer_all(actor: SessionActor, turn: Turn, prompts: Sequence[PreparedPrompt]) -> None:
    items = list(actor.state.steering or ())
    for item, prompt in zip(items, prompts, strict=False):
        if prompt.blocked is None:
            _steer(actor, turn, item, prompt)
        else:
            _drop_blocked(actor, item.message_id, prompt.blocked)


def _block_first(actor: SessionActor, turn: Turn, reason: str) -> None:
    if turn.pending is not None:
        message_id, turn.pending = turn.pending.message_id, None
        _drop_blocked(actor, message_id, reason)
    else:
        actor.emit(SessionWarning, "policy_blocked", reason)
        # The boundary of the clear holds the seed, so it is in the context until a message takes its place.
        _enter_first(actor, turn, WITHHELD, turn.seed)
        for message_id in turn.message_ids:
            waiter = actor.waiters.pop(message_id, None)
            if waiter is not None:
                text = f"a hook kept the seed of the clear out of the context: {reason}"
                actor.wake(waiter, outcome.Error(PromptBlocked(text, session_id=actor.id)))
    endings.end_turn(actor, turn, TurnEndReason.ABORTED)


def _drop_blocked(actor: SessionActor, message_id: str, reason: str) -> None:
    actor.emit(SessionWarning, "policy_blocked", reason)
    text = f"a hook kept the message out of the context: {reason}"
    drop(actor, message_id, "blocked", PromptBlocked(text, session_id=actor.id))


def drop(actor: SessionActor, message_id: str, cause: str, error: Exception) -> None:
    """End an accepted message that will never be answered; who waits for it gets *error*."""
    actor.emit(MessageDropped, message_id, cause)
    actor.reply(message_id, outcome.Error(error))


def withdraw(actor: SessionActor, message_id: str, done: list[bool]) -> None:
    """Drop a message that waits, because somebody has thought better of it; *done* takes whether it still waited."""
    turn = actor.turn
    taken = None if turn is None or turn.pending is None else turn.pending.message_id
    waits = message_id != taken and any(item.message_id == message_id for item in actor.state.pending())
    done.append(waits)
    if waits:
        text = "the message was withdrawn before its turn began"
        drop(actor, message_id, "withdrawn", TurnAborted(text, session_id=actor.id))


# --- Steps ---------------------------------------------------------------------------------------------------


def start_step(actor: SessionActor, turn: Turn) -> None:
    """Take in what steers the turn, and make a request, unless the session's credits are spent."""
    if actor.state.account is not NO_ACCOUNT and budget.stops(actor, turn):
        return
    steering = actor.state.steering
    if steering:
        if _sees_prompts(actor.options.hooks):
            _run_hooks(actor, turn, PromptHooks(turn, [item.prompt for item in steering], None, None))
            return
        _steer_all(actor, turn, [PreparedPrompt(item.prompt) for item in steering])
    if actor.state.media_came:
        media.make_room(actor)
    actor.emit(AssistantTurnStart, turn.turn_id, turn.steps)
    turn.steps += 1
    call_model(actor, turn)


def call_model(actor: SessionActor, turn: Turn) -> None:
    """Make the request of the step that is open."""
    turn.phase = "model"
    turn.activity = ModelCall(turn)
    actor.start(turn.activity)


def model_answered(actor: SessionActor, activity: ModelCall, result: ModelResponse | ModelError) -> None:
    """The model has answered, or will not."""
    if activity.done:
        return
    activity.finish()
    turn = activity.turn
    turn.activity = None
    if turn.cause is not None:
        end_step(actor, turn)
        endings.end_turn(actor, turn, TurnEndReason.ABORTED)
    elif isinstance(result, ModelError):
        if activity.cause == "timeout":
            activity.record_failure(result)
        if actor.options.auto_model is None or not switching.offered(actor, turn, result):
            fail(actor, turn, result)
    else:
        _take_answer(actor, turn, activity, result)


def fail(actor: SessionActor, turn: Turn, error: ModelError) -> None:
    """End the turn for want of an answer."""
    end_step(actor, turn)
    code = encodable(error.code)
    actor.emit(SessionError, str(error.kind), encodable(str(error)), error.status, turn.turn_id, code)
    endings.end_turn(actor, turn, TurnEndReason.ERROR, error)


def _take_answer(actor: SessionActor, turn: Turn, activity: ModelCall, answer: ModelResponse) -> None:
    usage = answer.usage or NO_USAGE
    turn.tokens += usage.input_tokens + usage.output_tokens
    options = activity.options
    seconds = actor.host.clock.now() - activity.began
    actor.emit(
        AssistantUsage,
        options.model_name,
        options.provider_name,
        usage.input_tokens,
        usage.output_tokens,
        seconds,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )
    if options.prices:
        budget.charge(actor, options, activity.request, answer)
    content = encodable(answer.content)
    if content:
        turn.answer = content
    if answer.tool_calls:
        batches.open_batch(actor, turn, activity.message_id, content, answer)
        return
    reasoning = encodable(answer.reasoning) if answer.reasoning else ""
    actor.emit(
        AssistantMessage,
        content,
        turn.turn_id,
        activity.message_id,
        (),
        reasoning,
        answer.reasoning_blocks,
        answer.citations,
    )
    end_step(actor, turn)
    endings.end_turn(actor, turn, TurnEndReason.COMPLETED)


def end_step(actor: SessionActor, turn: Turn) -> None:
    """Close the step of the last request."""
    actor.emit(AssistantTurnEnd, turn.turn_id, turn.steps - 1)


Turn.slot_granted = slot_granted
ModelCall.settle = model_answered
PromptHooks.settle = prompts_prepared
