"""The hooks around a turn: at the end of the one before, at the session's start, for each prompt."""

from collections.abc import Sequence
from typing import Any

import attrs

from exeunt.actors.activities.activity import Activity
from exeunt.actors.activities.hook_calls import call_hook, common_fields
from exeunt.actors.callers import CALLER, Caller
from exeunt.actors.hook_outputs import (
    AGENT_STOP,
    SESSION_END,
    SESSION_START,
    USER_PROMPT_SUBMITTED,
    USER_PROMPT_TRANSFORMED,
)
from exeunt.actors.hooks import (
    AgentStopInput,
    SessionEndInput,
    SessionStartInput,
    UserPromptSubmittedInput,
    UserPromptTransformedInput,
)
from exeunt.actors.text import encodable
from exeunt.actors.turn.live import Turn


@attrs.frozen
class PreparedPrompt:
    """What a prompt has become."""

    content: str
    """For the model."""
    original: str | None = None
    """Without what hooks have added to it, where they have."""
    blocked: str | None = None
    """Why a hook keeps it out."""


@attrs.frozen
class Preparation:
    """What the hooks before a request made of it."""

    prompts: Sequence[PreparedPrompt]
    greeting: str | None = None
    """What the hook of the session's start wants the model to read first."""
    blocked_stop: str | None = None
    """What a hook wants done before the work ends that the clear of the turn before has ended."""


class PromptHooks(Activity):
    """Runs prompts through the hooks."""

    def __init__(
        self,
        turn: Turn,
        prompts: Sequence[str],
        greets_as: str | None,
        ended: str | None,
        preface: str = "",
    ) -> None:
        super().__init__(turn.actor)
        self.turn = turn
        self.prompts = prompts
        self.greets_as = greets_as
        """`new` or `resume` when the hook of the session's start is due."""
        self.ended = ended
        """Why the turn before ended, when its hook is due."""
        self.preface = preface
        """What the model reads before each prompt, and the hook of the transformed one sees."""

    async def run(self) -> Preparation:
        """Run the hooks one after the other; one that fails leaves its prompt as it is."""
        token = CALLER.set(Caller(self.actor, hook=self))
        try:
            return await self._run_hooks()
        finally:
            CALLER.reset(token)

    async def _run_hooks(self) -> Preparation:
        hooks = self.actor.options.hooks
        blocked_stop = None
        if self.ended is not None:
            if self.turn.seed is not None:
                blocked_stop = await run_stop_hook(self, active=self.turn.stops_blocked > 0)
            await run_end_hook(self, self.ended, self.turn.records[-1].content or None)
        greeting = None
        if self.greets_as is not None and hooks.on_session_start is not None:
            start_input = SessionStartInput(
                **common_fields(self), source=self.greets_as, initial_prompt=self.prompts[0]
            )
            answer = await call_hook(self, hooks.on_session_start, SESSION_START, start_input)
            greeting = answer.output.additional_context or None
        prompts = [await self._prepare(prompt) for prompt in self.prompts]
        return Preparation(prompts, greeting, blocked_stop)

    def lost(self, result: Any) -> Preparation:
        """Without its hooks no prompt goes to the model: they may be what keeps secrets out."""
        reason = "the hooks of the prompt did not return"
        return Preparation([PreparedPrompt(p, blocked=reason) for p in self.prompts])

    async def _prepare(self, prompt: str) -> PreparedPrompt:
        hooks = self.actor.options.hooks
        reminder = ""
        if hooks.on_user_prompt_submitted is not None:
            hook_input = UserPromptSubmittedInput(**common_fields(self), prompt=prompt)
            hook = hooks.on_user_prompt_submitted
            output = (await call_hook(self, hook, USER_PROMPT_SUBMITTED, hook_input)).output
            if output.decision == "block":
                return PreparedPrompt(prompt, blocked=output.reason or "no reason provided")
            prompt = encodable(output.modified_prompt or prompt)
            if output.additional_context:
                reminder = f"\n\n<system_reminder>\n{output.additional_context}\n</system_reminder>"
        content = f"{self.preface}{prompt}{reminder}"
        if hooks.on_user_prompt_transformed is not None:
            shown = UserPromptTransformedInput(
                **common_fields(self), prompt=prompt, transformed_prompt=content
            )
            transform = hooks.on_user_prompt_transformed
            changed = (await call_hook(self, transform, USER_PROMPT_TRANSFORMED, shown)).output
            content = changed.modified_transformed_prompt or content
        content = encodable(content)
        return PreparedPrompt(content, prompt if content != prompt else None)


class EndHook(Activity):
    """Runs the hooks after a turn."""

    def __init__(
        self, turn: Turn, reason: str, message: str | None, error: str | None, *, stops: bool
    ) -> None:
        super().__init__(turn.actor)
        self.turn = turn
        self.reason = reason
        self.message = message
        self.error = error
        self.stops = stops
        """Whether the agent stops by itself, so that a hook may keep it from that; who waits for the reply waits for
        this too."""
        self.aborted = False
        """Whether somebody wants nothing more to be done."""

    async def run(self) -> str | None:
        """Run them; return what is to be done instead of ending, where a hook wants that."""
        token = CALLER.set(Caller(self.actor, hook=self))
        try:
            if self.stops:
                instead = await run_stop_hook(self, active=self.turn.stops_blocked > 0)
                if instead is not None:
                    # The turn goes on in another, which calls the other hook.
                    return instead
            await run_end_hook(self, self.reason, self.message, self.error)
            return None
        finally:
            CALLER.reset(token)

    def lost(self, result: Any) -> None:
        """A hook that did not return has nothing to say."""


async def run_stop_hook(activity: Activity, *, active: bool) -> str | None:
    """Call the hook at the end of the agent's work; return what it wants done instead, if anything."""
    hook = activity.actor.options.hooks.on_agent_stop
    if hook is None:
        return None
    hook_input = AgentStopInput(**common_fields(activity), stop_hook_active=active)
    output = (await call_hook(activity, hook, AGENT_STOP, hook_input)).output
    if output.decision != "block":
        return None
    return encodable(output.reason or "") or None


async def run_end_hook(
    activity: Activity, reason: str, message: str | None = None, error: str | None = None
) -> None:
    """Call the hook for the end of a turn."""
    hook = activity.actor.options.hooks.on_session_end
    if hook is not None:
        hook_input = SessionEndInput(
            **common_fields(activity), reason=reason, final_message=message, error=error
        )
        await call_hook(activity, hook, SESSION_END, hook_input)
