"""The ready-made tool with which a model clears its own context."""

from collections.abc import Callable
from typing import Annotated, Any

from exeunt.actors.marks import runs_on_trio
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.tools import Tool, ToolInvocation, tool
from exeunt.policies.seeds import LONGEST_SEED, SeedFrame, SeedTooLong, State

DESCRIPTION = (
    "Clear the conversation and go on in a fresh context that holds nothing but your prompt. Use it when what has been"
    " said is no longer needed. Write down everything that you need to go on: the task, decisions, results, next steps."
)


def clear_context_tool(
    *,
    name: str = "clear_context",
    description: str = DESCRIPTION,
    longest_seed: int = LONGEST_SEED,
    template: str = "{prompt}",
    state: State | None = None,
    is_terminal: bool = True,
    trigger: str | Callable[[ToolInvocation], str] = "tool",
) -> Tool[..., Any]:
    """Return a tool that replaces the context by the model's prompt.

    *template* is a frame around the prompt, with the field `{prompt}`; its other fields are filled in by *state*, a
    function of the invocation, which may be async. What the prompt itself holds is never taken for a field. A prompt of
    more than *longest_seed* characters, or a blank one, is a failure that the model reads. *trigger* is said in
    `session.context_cleared`. The clear is a transaction with the call: see `History.clear_context`.

    Raises `InvalidConfiguration`, `InvalidToolDefinition`.
    """
    frame = SeedFrame(template, longest_seed, state)

    @runs_on_trio
    async def clear_context(
        prompt: Annotated[str, "The first message of the fresh context."], invocation: ToolInvocation
    ) -> ToolResult:
        if not prompt.strip():
            return ToolResult("The prompt is blank: the fresh context would hold nothing.", "failure")
        try:
            seed = await frame.seed(prompt, invocation)
        except SeedTooLong as error:
            return ToolResult(str(error), "failure", str(error))
        said = trigger if isinstance(trigger, str) else trigger(invocation)
        result = await invocation.session.history.clear_context(seed, trigger=said)
        return ToolResult(f"Cleared {result.messages_cleared} messages.")

    return tool(name, description=description, is_terminal=is_terminal, skip_permission=True, defer="never")(
        clear_context
    )
