"""The hooks around a turn: after the one before, at the session's start, for each prompt."""

from collections.abc import Sequence
from typing import Any

import attrs

from exeunt.actors.activities.activity import Activity
from exeunt.actors.activities.hook_calls import call_hook, common_fields
from exeunt.actors.callers import CALLER, Caller
from exeunt.actors.hook_outputs import SESSION_END, SESSION_START, USER_PROMPT_SUBMITTED
from exeunt.actors.hooks import SessionEndInput, SessionStartInput, UserPromptSubmittedInput
from exeunt.actors.text import encodable
from exeunt.actors.turn.live import Turn


@attrs.frozen
class PreparedPrompt:
    """What a prompt has become."""

    content: str
    """For the model."""
    original: str | None = None
    """What was sent, where a hook changed it."""
    blocked: str | None = None
    """Why a hook keeps it out."""


@attrs.frozen
class Preparation:
    """What the hooks before a request made of it."""

    prompts: Sequence[PreparedPrompt]
    greeting: str | None = None
    """What the hook of the session's start wants the model to read first."""


class PromptHooks(Activity):
    """Runs prompts through the hooks."""

    def __init__(self, turn: Turn, prompts: Sequence[str], greets_as: str | None, ended: str | None) -> None:
        super().__init__(turn.actor)
        self.turn = turn
        self.prompts = prompts
        self.greets_as = greets_as
        """`new` or `resume` when the hook of the session's start is due."""
        self.ended = ended
        """Why the turn before ended, when its hook is due."""

    async def run(self) -> Preparation:
        """Run the hooks one after the other; one that fails leaves its prompt as it is."""
        token = CALLER.set(Caller(self.actor, hook=self))
        try:
            return await self._run_hooks()
        finally:
            CALLER.reset(token)

    async def _run_hooks(self) -> Preparation:
        hooks = self.actor.options.hooks
        if self.ended is not None and hooks.on_session_end is not None:
            await run_end_hook(self, self.ended, self.turn.records[-1].content or None)
        greeting = None
        if self.greets_as is not None and hooks.on_session_start is not None:
            start_input = SessionStartInput(
                **common_fields(self), source=self.greets_as, initial_prompt=self.prompts[0]
            )
            answer = await call_hook(self, hooks.on_session_start, SESSION_START, start_input)
            greeting = answer.output.additional_context or None
        return Preparation([await self._prepare(prompt) for prompt in self.prompts], greeting)

    def lost(self, result: Any) -> Preparation:
        """Without its hooks no prompt goes to the model: they may be what keeps secrets out."""
        reason = "the hooks of the prompt did not return"
        return Preparation([PreparedPrompt(p, blocked=reason) for p in self.prompts])

    async def _prepare(self, prompt: str) -> PreparedPrompt:
        hook = self.actor.options.hooks.on_user_prompt_submitted
        if hook is None:
            return PreparedPrompt(prompt)
        hook_input = UserPromptSubmittedInput(**common_fields(self), prompt=prompt)
        output = (await call_hook(self, hook, USER_PROMPT_SUBMITTED, hook_input)).output
        if output.decision == "block":
            return PreparedPrompt(prompt, blocked=output.reason or "no reason provided")
        content = output.modified_prompt or prompt
        if output.additional_context:
            content = f"{content}\n\n<system_reminder>\n{output.additional_context}\n</system_reminder>"
        content = encodable(content)
        return PreparedPrompt(content, prompt if content != prompt else None)


class EndHook(Activity):
    """Runs the hook after a turn."""

    def __init__(self, turn: Turn, reason: str, message: str | None, error: str | None) -> None:
        super().__init__(turn.actor)
        self.reason = reason
        self.message = message
        self.error = error

    async def run(self) -> None:
        """Run it; what it returns changes nothing."""
        token = CALLER.set(Caller(self.actor, hook=self))
        try:
            await run_end_hook(self, self.reason, self.message, self.error)
        finally:
            CALLER.reset(token)

    def lost(self, result: Any) -> None:
        """A hook that did not return has nothing to say."""


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
