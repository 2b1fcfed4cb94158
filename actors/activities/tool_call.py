"""One tool call: what it is while it runs, and the pipeline that it passes through.

find tool -> validate arguments -> pre hook -> approval -> slot -> handler -> post hook -> outcome. All of it is
inside the call's own cancellation; the stage in which it stopped decides the outcome and the text for the model,
which names the true cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import trio
from outcome import Value

from exeunt.actors.activities import approval, handlers
from exeunt.actors.activities.activity import Activity
from exeunt.actors.activities.call_end import INTERRUPTED_TEXT, CallEnd, rolled_back_end
from exeunt.actors.activities.hook_calls import call_hook, common_fields
from exeunt.actors.callers import CALLER, Caller
from exeunt.actors.events import ToolExecutionStart
from exeunt.actors.hook_outputs import (
    POST_TOOL_USE,
    POST_TOOL_USE_FAILURE,
    PRE_TOOL_USE,
    PostToolUseOutput,
)
from exeunt.actors.hooks import NO_HOOKS, PostToolUseFailureInput, PostToolUseInput, PreToolUseInput
from exeunt.actors.media import shown_blocks, within
from exeunt.actors.models import ToolCall
from exeunt.actors.outcomes import Outcome, ToolResult
from exeunt.actors.permissions import approve_all
from exeunt.actors.text import encodable
from exeunt.actors.tools import InvalidArguments, Tool, to_result
from exeunt.actors.tools.citable import sources_within
from exeunt.actors.turn.live import Waiter
from exeunt.actors.turn.requests import OpenRequest
from exeunt.actors.user_input import UserInputResponse

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor
    from exeunt.actors.turn.live import Turn


NOTHING: list[str] = []
"""What a call that never ran before has asked: shared, and always empty."""


class Call(Activity):
    """A tool call of a batch, or of the host."""

    modified_arguments: str | None = None
    """What a hook put in the place of the model's arguments."""
    stage: str = "arguments"
    """`arguments`, `pre_hook`, `approval`, `slot`, `handler` or `post_hook`."""
    started: bool = False
    """Whether it was let go; a sequential call, and what stands behind one, waits."""
    again: bool = False
    """Whether it ran before, in a process that has ended, and may run again."""
    returned: bool = False
    """Whether nothing of it runs any more: it has its outcome, or is held as the owner of a clear."""
    outcome: Outcome | None = None
    """Its recorded outcome; until then it is in flight."""
    held: CallEnd | None = None
    """Its success, kept back until the clear that it owns can be committed."""
    asked_because: str | None = None
    """What the hook said that wants a person to be asked; empty where it said nothing."""
    was_owner: bool = False
    """Whether it ever owned a clear."""
    clear_refused: bool = False
    """Whether it asked for a clear that was refused."""
    result: ToolResult | None = None
    """What the handler gave, once it has."""
    open_request: OpenRequest | None = None
    """The request for approval with which it waits on; the hook before it has seen the call already."""
    requests: dict[str, OpenRequest] | None = None
    """What it has asked people, by id, while somebody waits for the answer."""
    asked_before: list[str] = NOTHING
    """Ids of what it asked the user when it ran before, in an activation that has ended."""
    approval_seconds: float = 0.0
    """What its approval may take."""
    _holds: int = 0
    """Questions to the user that keep the handler's time from running."""
    _time_left: float = 0.0
    left_slot: bool = False
    """Whether its handler, while it waits for another session, has left its slot for tools."""
    parks: int = 0
    """Waits that leave its slots to others: an approval, another session's reply."""
    slot_waiter: Waiter | None = None

    def __init__(
        self, actor: SessionActor, turn: Turn | None, call: ToolCall, index: int, now: float
    ) -> None:
        super().__init__(actor)
        self.turn = turn
        self.call = call
        self.index = index
        self.tool: Tool[..., Any] | None = actor.options.tools.find(call.name)
        self.terminal = self.tool is not None and self.tool.is_terminal
        """Whether its success ends the turn."""
        self.name = call.name if self.tool is None else self.tool.name
        self.tenant = actor.options.tenant
        self.started_at = now
        self.start: ToolExecutionStart | None = None
        """The event that says that it is in flight; logged for good before anything of it runs."""
        self.arguments_json = call.arguments_json
        self.guidance: list[str] = []
        """What hooks want the model to read after the batch."""

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop."""
        return self.cause is not None or self.done

    @property
    def idempotency_key(self) -> str:
        """What every run of it has, and no other call."""
        # Not the call's id: models use the same ones again in the next context.
        assert self.start is not None
        return f"{self.actor.id}/{self.start.id}"

    def granted(self) -> None:
        """A slot for tools became free."""
        if self.slot_waiter is not None:
            self.slot_waiter.resolve(Value(None))  # one each: it can be unwrapped once

    def hold_time(self) -> None:
        """Stop the handler's time: it waits for a person, who has a time of his own."""
        self._holds += 1
        if self._holds == 1 and self.stage == "handler" and self._limit:
            self._time_left = self.actor.host.timers.remaining(self._limit, self)
            self.unlimit()

    def release_time(self) -> None:
        """Let the handler's time go on, once nobody is waited for any more."""
        self._holds -= 1
        if not self._holds and self._time_left:
            self.limit(self._time_left)
            self._time_left = 0.0

    async def ask_user(
        self, question: str, choices: Any, allow_freeform: bool, seconds: float | None
    ) -> UserInputResponse:
        """Ask the user something. See `ToolInvocation.ask_user`."""
        from exeunt.actors.activities.questions import ask_user

        return await ask_user(self, question, choices, allow_freeform, seconds)

    async def run(self) -> CallEnd:
        """Pass through the pipeline."""
        if self.actor.log.outlives_process:
            assert self.start is not None
            await self.until_safe(self.start.seq)
        if self.tool is None:
            text = self.actor.options.tools.unknown_tool_text(self.call.name)
            return CallEnd(Outcome.FAILURE, text, text)
        token = CALLER.set(Caller(self.actor, self))
        tracing = self.actor.host.tracing
        traced = None if tracing is None else tracing.calling_tool(self.actor.id, self.call.id)
        try:
            return await self._pipeline(self.tool)
        except InvalidArguments as error:
            return CallEnd(Outcome.INVALID, str(error), str(error))
        finally:
            CALLER.reset(token)
            if tracing is not None:
                tracing.called(traced)

    async def _pipeline(self, tool: Tool[..., Any]) -> CallEnd:
        options = self.actor.options
        bound = tool.bind(self.arguments_json)
        waits_on = self.open_request is not None
        must_ask = waits_on or not (tool.skip_permission or options.on_permission_request is approve_all)
        forced = False
        if options.hooks.on_pre_tool_use is not None and not waits_on:
            verdict = await self._pre_hook(tool)
            if isinstance(verdict, CallEnd):
                return verdict
            if self.cause is not None:
                await trio.lowlevel.checkpoint()  # the hook swallowed the call's cancellation
            must_ask = must_ask if verdict is None else verdict
            forced = verdict is True
            bound = tool.bind(self.arguments_json)
        if must_ask:
            refusal = await approval.ask(self, tool, forced=forced)
            if refusal is not None:
                return refusal
        self.result = await handlers.run(self, tool, bound)
        if self.cause is not None:
            # The handler swallowed its cancellation: no hook need look at what it says.
            await trio.lowlevel.checkpoint()
        if options.hooks is not NO_HOOKS:
            await self._post_hook(self.result)
        return self._end_of(self.result)

    def lost(self, result: Any) -> CallEnd:
        """The outcome of a call that was cancelled or ran out of time, by where it was."""
        if self.stage == "post_hook" and self.result is not None and not self._rolled_back:
            # The work is done; only a hook that looks at it was cut off.
            return self._end_of(self.result)
        if self._rolled_back and self.result is not None and self.result.result_type == "success":
            return rolled_back_end(self.cause or "interrupted")
        if self.cause == "timeout":
            return self._timeout_end()
        return CallEnd(Outcome.CANCELLED, INTERRUPTED_TEXT, f"cancelled: {self.cause}")

    @property
    def _rolled_back(self) -> bool:
        return self.was_owner and self.cause in ("aborted", "stopped")

    def _timeout_end(self) -> CallEnd:
        waits = self.actor.options.waits
        if self.stage == "approval":
            text = (
                f"Permission denied: nobody answered the request for approval within {self.approval_seconds:g} s."
                if self.requests
                else "Permission denied: the permission handler did not return after another answer had been given."
            )
            return CallEnd(Outcome.DENIED, text, text)
        if self.stage == "pre_hook":
            text = f"Denied by preToolUse hook: the hook did not return within {waits.hook:g} s."
            return CallEnd(Outcome.DENIED, text, text)
        if self.stage == "slot":
            text = f"The tool '{self.name}' timed out after {waits.slot:g} s: it waited for a slot and did not run."
            return CallEnd(Outcome.TIMEOUT, text, text)
        seconds = self.tool.timeout if self.tool is not None else 0.0
        text = f"The tool '{self.name}' timed out after {seconds:g} s."
        return CallEnd(Outcome.TIMEOUT, text, text)

    def _end_of(self, result: ToolResult) -> CallEnd:
        error = None if result.result_type == "success" else result.error or result.text_result_for_llm
        text, media = result.text_result_for_llm, result.media
        if media:
            media, told = within(media, self.actor.options.media_limits)
            text = "\n".join(part for part in (text, *told) if part)
        contents = result.contents
        if contents:
            contents = shown_blocks(contents, self.actor.options.media_limits)
        sources = result.sources
        if sources:
            sources, told = sources_within(sources, self.actor.options.media_limits.message)
            text = "\n".join(part for part in (text, *told) if part)
        return CallEnd(result.outcome, text, error, result.session_log, media, contents, sources)

    async def _pre_hook(self, tool: Tool[..., Any]) -> CallEnd | bool | None:
        """Return the denial, whether to ask for approval, or `None` where the hook leaves that open."""
        hook = self.actor.options.hooks.on_pre_tool_use
        assert hook is not None
        self.stage = "pre_hook"
        fields = common_fields(self)
        arguments = self.call.arguments
        hook_input = PreToolUseInput(
            **fields, tool_name=tool.name, tool_args=arguments, tool_call_id=self.call.id
        )
        answer = await call_hook(self, hook, PRE_TOOL_USE, hook_input, self.call.id)
        if answer.error is not None:
            text = f"Denied by preToolUse hook: {answer.error}"
            return CallEnd(Outcome.DENIED, text, text)
        output = answer.output
        if output.modified_args is not None:
            self._replace_arguments(output.modified_args)
        if output.additional_context:
            self.guidance.append(f"Additional context from preToolUse hook:\n{output.additional_context}")
        decision = output.permission_decision
        if decision == "deny":
            reason = output.permission_decision_reason or "No reason provided"
            text = f"Denied by preToolUse hook: {reason}"
            return CallEnd(Outcome.DENIED, text, text)
        if decision == "ask":
            self.asked_because = encodable(output.permission_decision_reason or "")
        return None if decision is None else decision == "ask"

    def _replace_arguments(self, arguments: Any) -> None:
        try:
            text = encodable(msgspec.json.encode(arguments).decode())
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArguments(f"a preToolUse hook gave arguments that are no JSON: {error}") from error
        self.arguments_json = self.modified_arguments = text

    async def _post_hook(self, result: ToolResult) -> None:
        hooks = self.actor.options.hooks
        self.stage = "post_hook"
        arguments = ToolCall(self.call.id, self.name, self.arguments_json).arguments
        if result.result_type == "success" and hooks.on_post_tool_use is not None:
            hook_input = PostToolUseInput(
                **common_fields(self),
                tool_name=self.name,
                tool_args=arguments,
                tool_result=result,
                tool_call_id=self.call.id,
            )
            answer = await call_hook(self, hooks.on_post_tool_use, POST_TOOL_USE, hook_input, self.call.id)
            self._take_modified(answer.output)
        elif result.result_type == "failure" and hooks.on_post_tool_use_failure is not None:
            failure_input = PostToolUseFailureInput(
                **common_fields(self),
                tool_name=self.name,
                tool_args=arguments,
                error=result.error or result.text_result_for_llm,
                tool_call_id=self.call.id,
            )
            hook = hooks.on_post_tool_use_failure
            failure = await call_hook(self, hook, POST_TOOL_USE_FAILURE, failure_input, self.call.id)
            context = failure.output.additional_context
            if context:
                self.guidance.append(
                    f'Tool "{self.name}" failed. Additional guidance from postToolUseFailure hooks:\n{context}'
                )

    def _take_modified(self, output: PostToolUseOutput) -> None:
        if output.modified_result is not None:
            self.result = to_result(output.modified_result)
        context = output.additional_context
        if context and self.result is not None:
            how = "succeeded" if self.result.result_type == "success" else "failed"
            text = (
                f"{self.result.text_result_for_llm}\n\n"
                f'Tool "{self.name}" {how}. Additional guidance from postToolUse hooks:\n{encodable(context)}'
            )
            self.result = msgspec.structs.replace(self.result, text_result_for_llm=text)
