"""Hooks that a client runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs
import msgspec

from exeunt.actors.errors import ClientRefused
from exeunt.actors.hooks import HookInput, HookInvocation, Hooks
from exeunt.actors.outcomes import ToolResult
from exeunt.wire.events.media import binary_result
from exeunt.wire.names import camel, snake

if TYPE_CHECKING:
    from exeunt.wire.serving.hub import Hub

KINDS = (
    "sessionStart",
    "userPromptSubmitted",
    "userPromptTransformed",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "agentStop",
    "sessionEnd",
    "errorOccurred",
)

TRANSCRIPT_WITHIN = 2.0
"""Seconds that a hook which is told where the transcript is waits for that to be written."""


def hooks_of(hub: "Hub") -> Hooks:
    """Return hooks that ask the client of whichever session calls them."""

    def hook(kind: str) -> Any:
        async def invoke(hook_input: HookInput, invocation: HookInvocation) -> Mapping[str, Any] | None:
            served = hub.served(invocation.session_id)
            given = _input(hook_input, served.working_directory)
            if kind == "agentStop" and served.files is not None:
                # What the hook is about to judge is to be there when it looks.
                await served.files.flushed(TRANSCRIPT_WITHIN)
                given["transcriptPath"] = served.files.transcript.place
            params = {"sessionId": invocation.session_id, "hookType": kind, "input": given}
            with served.asking.serving_hook(invocation.tool_call_id) as client:
                answer = await client.peer.ask("hooks.invoke", params)
            output = _output(answer)
            if output is not None and kind == "postToolUseFailure":
                # The protocol's type has a changed result too, which no runtime makes anything of.
                return {name: value for name, value in output.items() if name != "modified_result"}
            return output

        return invoke

    return Hooks(**{f"on_{snake(kind)}": hook(kind) for kind in KINDS})


def _input(hook_input: HookInput, working_directory: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in attrs.fields(type(hook_input)):
        value = getattr(hook_input, field.name)
        if isinstance(value, ToolResult):
            value = _result(value)
        if value is not None:
            fields[camel(field.name)] = value
    fields["timestamp"] = int(hook_input.timestamp.timestamp() * 1000)
    fields.pop("workingDirectory", None)
    fields["cwd"] = working_directory
    if "stopHookActive" in fields:
        # The one name that the protocol has in another case.
        fields["stop_hook_active"] = fields.pop("stopHookActive")
    return fields


def _result(result: ToolResult) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "textResultForLlm": result.text_result_for_llm,
        "resultType": result.result_type,
        "toolTelemetry": result.tool_telemetry or {},
    }
    if result.error is not None:
        shown["error"] = result.error
    if result.media:
        # Whole: a hook that gives the result back with another text would lose what it is not told.
        shown["binaryResultsForLlm"] = [binary_result(media) for media in result.media]
    return shown


def _output(answer: Any) -> Mapping[str, Any] | None:
    """The output of a hook, with the names that the session knows. Raises `ClientRefused` for what is none."""
    if not isinstance(answer, Mapping):
        return None
    output: Any = cast("Mapping[str, Any]", answer).get("output")
    if output is None:
        return None
    if not isinstance(output, Mapping):
        raise ClientRefused(f"the hook's output is no object but {msgspec.json.encode(output)[:80]!r}")
    return {snake(str(name)): value for name, value in cast("Mapping[str, Any]", output).items()}
