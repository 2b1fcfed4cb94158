"""The foreign code around a session of a `Program`: its model, its tools, its hooks, who approves.

All of it plays steps first (`play`), and then answers as planned. Once the program is over it does what it should.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from exeunt import ModelRequest, RetryPolicy, Tool, ToolInvocation, ToolResult, Waits, approve_all, tool
from exeunt.testing import ScriptedModel, after, fail, hang, raw_call, say, stream_cut, stream_stall
from exeunt.testing.replies import Call, Reply
from tests.properties.programs import Answer, Callback, SessionPlan, Step, Work

TOOL_TIMEOUT = 4.0
WAITS = Waits(
    approval=4.0, user_input=4.0, hook=2.0, slot=4.0, model_first=4.0, model_gap=2.0, model_total=6.0
)
RETRIES = RetryPolicy(attempts=1, jitter=0.0)

APPROVALS: dict[str, Any] = {
    "once": "approve-once",
    "session": "approve-for-session",
    "reject": {"kind": "reject", "feedback": "not now"},
    "nobody": "user-not-available",
    "nonsense": 7,
    "open": "no-result",
    "a text": "red",
}


class Play(Protocol):
    """Plays what a callback does."""

    async def __call__(self, steps: Sequence[Step], /) -> None: ...


class Broken(RuntimeError):
    """What a program breaks on purpose."""


class Cast:
    """Everybody around one session."""

    def __init__(
        self, plan: SessionPlan, works: list[Work], play: Play, asked: Callable[[ModelRequest], None]
    ) -> None:
        """*works* takes what calls are to do; a call's argument is the place in it. *asked* sees each request."""
        self.calm = False
        """Whether the program is over."""
        self.model = ScriptedModel([], default=self._reply)
        self._plan = plan
        self._answers = list(plan.answers)
        self._works = works
        self._play = play
        self._asked = asked

    def options(self) -> dict[str, Any]:
        """Return the keywords of `create_session`."""
        plan = self._plan
        return {
            "model": self.model,
            "tools": [self._tool(name) for name in ("work", "asks", "ends", "alone", "ends_alone", "again")],
            "system_message": "You are terse.",
            "developer_messages": "Be kind.",
            "on_permission_request": approve_all
            if plan.permission is None
            else self._permission(plan.permission),
            "on_user_input_request": self._user,
            "hooks": {name: self._hook(name, callback) for name, callback in plan.hooks},
            "tenant": plan.tenant,
            "streaming": plan.streaming,
            "siblings": plan.siblings,
            "limits": {"steps": plan.steps, "failed_batches": plan.failed_batches},
            "mailbox_size": plan.mailbox,
            "max_consecutive_clears": plan.clears_in_a_row,
            "waits": WAITS,
            "retries": RETRIES,
        }

    async def _reply(self, request: ModelRequest) -> Reply:
        self._asked(request)
        if self.calm or not self._answers:
            return say("fine")
        answer = self._answers.pop(0)
        await self._play(answer.steps)
        return after(answer.delay, self._planned(answer))

    def _planned(self, answer: Answer) -> Reply:
        match answer.fault:
            case "retryable":
                return fail("overloaded", retry=True)
            case "final":
                return fail("bad_request")
            case "hang":
                return hang()
            case "cut":
                return stream_cut(1)
            case "stall":
                return stream_stall(1)
            case "foreign":
                return fail(Broken("a faulty client"))
            case "":
                return [say("let me see"), *map(self.call, answer.works)]

    def call(self, work: Work) -> Call:
        """Return a model's call that does *work*."""
        self._works.append(work)
        return raw_call(work.tool, arguments_of(work, len(self._works) - 1))

    def _tool(self, name: str) -> Tool[..., Any]:
        async def handler(number: int, invocation: ToolInvocation) -> Any:
            work = self._works[number]
            await self._play(work.steps)
            match work.ending:
                case "raises":
                    raise Broken("a faulty handler")
                case "fails":
                    return ToolResult("it did not work", "failure")
                case "rejects":
                    return ToolResult("no", "rejected")
                case "returns" | "invalid":
                    return f"result of {invocation.tool_call_id}"

        return tool(
            name,
            is_terminal=name.startswith("ends"),
            sequential=name.endswith("alone"),
            skip_permission=name != "asks",
            idempotent=name == "again",
            timeout=TOOL_TIMEOUT,
        )(handler)

    def _permission(self, callback: Callback) -> Callable[..., Awaitable[Any]]:
        async def answer(*_: object) -> Any:
            if self.calm:
                return "approve-once"
            await self._play(callback.steps)
            if callback.answer == "raise":
                raise Broken("a faulty permission handler")
            return APPROVALS[callback.answer]

        return answer

    def _user(self, *_: object) -> str:
        return "blue" if self.calm else "no-result"

    def _hook(self, name: str, callback: Callback) -> Callable[..., Awaitable[Any]]:
        async def hook(hook_input: Any, _: object) -> Any:
            if self.calm:
                return None
            await self._play(callback.steps)
            return _hook_output(name, callback.answer, hook_input)

        return hook


def arguments_of(work: Work, number: int) -> str:
    """Return the arguments of a call that does the work with this number."""
    return '{"number": "?"}' if work.ending == "invalid" else f'{{"number": {number}}}'


def _hook_output(name: str, answer: str, hook_input: Any) -> Any:
    match answer:
        case "raise":
            raise Broken("a faulty hook")
        case "nonsense":
            return 7
        case "context":
            return {"additional_context": "a note"}
        case "deny" | "ask" | "allow":
            return {"permission_decision": answer}
        case "block":
            return {"decision": "block", "reason": "not here"}
        case "change" if name == "on_user_prompt_submitted":
            return {"modified_prompt": f"{hook_input.prompt}, please"}
        case "change" if name == "on_pre_tool_use":
            return {"modified_args": {"number": "?"}}
        case "change" if name == "on_post_tool_use":
            return {"modified_result": ToolResult("changed", "failure")}
        case "change" if name == "on_error_occurred":
            return {"error_handling": "retry", "retry_count": 1}
        case _:
            return None
