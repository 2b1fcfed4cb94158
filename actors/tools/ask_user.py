"""The ready-made tool with which a model asks the user."""

from collections.abc import Sequence
from typing import Annotated, Any

from exeunt.actors.errors import UserInputTimeout, UserInputUnavailable
from exeunt.actors.marks import runs_on_trio
from exeunt.actors.outcomes import ToolResult
from exeunt.actors.tools.decorator import tool
from exeunt.actors.tools.definition import Tool
from exeunt.actors.tools.invocation import ToolInvocation

DESCRIPTION = (
    "Ask the user a question and wait for the answer. Use it when you cannot go on without a decision that only the"
    " user can take. Offer choices where there are some."
)


def ask_user_tool(
    *, name: str = "ask_user", description: str = DESCRIPTION, timeout: float | None = None
) -> Tool[..., Any]:
    """Return a tool with which the model asks the user; the session needs an `on_user_input_request`.

    The model reads `User selected: <choice>` or `User responded: <text>`. *timeout* is in seconds, for each answer;
    `None` is the session's `Waits.user_input`. Without an answer the call ends with `timeout`, or with `failure`
    where there is nobody to ask. It is idempotent: after a crash it waits on under the same request.

    Raises `InvalidToolDefinition`.
    """

    @runs_on_trio
    async def ask_user(
        question: Annotated[str, "What to ask, in one or two sentences."],
        choices: Annotated[Sequence[str] | None, "Answers to choose from."] = None,
        allow_freeform: Annotated[bool, "Whether the user may answer something else."] = True,
        *,
        invocation: ToolInvocation,
    ) -> ToolResult:
        try:
            answer = await invocation.ask_user(
                question, choices, allow_freeform=allow_freeform, timeout=timeout
            )
        except UserInputTimeout as error:
            return ToolResult("The user did not answer in time.", "timeout", str(error))
        except UserInputUnavailable as error:
            return ToolResult("The user cannot be asked.", "failure", str(error))
        return ToolResult(answer.text)

    return tool(name, description=description, skip_permission=True, idempotent=True, defer="never")(ask_user)
