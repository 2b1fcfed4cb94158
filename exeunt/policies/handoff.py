"""A context that grows past a mark hands off: first the model is asked to, then the policy does it.

What was said so far stands in the context itself: each reminder has a number, and what came after it is counted. So
nothing is kept beside the log, a restart forgets nothing, and a new generation begins with no reminder. A clear makes
the next generation, so no generation is handed off twice.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import trio

from exeunt.actors.errors import ClearRefused, InvalidConfiguration
from exeunt.actors.hooks import Hook, HookInvocation, PostToolUseInput
from exeunt.actors.marks import runs_on_trio
from exeunt.actors.models import Message, ModelClient
from exeunt.actors.options import Waits
from exeunt.actors.session import Session
from exeunt.actors.text import cause_of, encodable
from exeunt.policies.clear_tool import clear_context_tool
from exeunt.policies.marks import Mark
from exeunt.policies.options import tools_of, with_hooks
from exeunt.policies.seeds import LONGEST_SEED, SeedFrame, State
from exeunt.policies.summaries import Said, Summarizer, SummaryFailed, summary_by
from exeunt.policies.usage import ReportedTokens

REMINDER = (
    "This conversation has become long. Call the tool `{tool}` as soon as you can, with a note of everything that is"
    " needed to go on."
)

_NUMBER = re.compile(r"\[handoff reminder (\d{1,6})\]")


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidConfiguration(f"{name} must be a whole number of at least {least}, not {value!r}")


@attrs.frozen(kw_only=True, eq=False)
class HandoffPolicy:
    """Keeps contexts below a mark. One policy serves any number of sessions.

    Past the mark, the result of every *remind_every*-th tool call, or the next user message, asks the model to hand off
    by the tool `tool_name`. When *force_after* reminders were ignored, the policy hands off itself, right after a tool
    call that succeeded and has no siblings at work: it clears the context with a summary as the seed. A summary that
    fails changes nothing, and is tried again *remind_every* calls later.
    """

    at: Mark
    """`messages(n)`, `tokens(n)` or `share(part, window=n)`."""
    summarize: Summarizer | ModelClient | None = None
    """Makes the seed of a forced handoff; without one the policy only reminds."""
    remind_every: int = 5
    """Tool calls and user messages from one reminder to the next."""
    force_after: int | None = 3
    """Reminders that the model may ignore; `None` never forces."""
    summary_timeout: float = 45.0
    """Seconds; below `Waits.hook`, within which the summary is made."""
    tool_name: str = "clear_context"
    reminder: str = REMINDER
    """What the model reads; `{tool}` is the tool's name."""
    template: str = "{prompt}"
    """The frame around a note, the model's or the summary's. See `clear_context_tool`."""
    state: State | None = None
    longest_seed: int = LONGEST_SEED
    _frame: SeedFrame = attrs.field(init=False, repr=False)
    _usage: ReportedTokens = attrs.field(init=False, repr=False, factory=ReportedTokens)

    def __attrs_post_init__(self) -> None:
        if not isinstance(cast("Any", self.at), Mark):
            raise InvalidConfiguration(
                f"at is messages(n), tokens(n) or share(part, window=n), not {self.at!r:.80}"
            )
        _whole("remind_every", self.remind_every, 1)
        if self.force_after is not None:
            _whole("force_after", self.force_after, 0)
        seconds = cast("Any", self.summary_timeout)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise InvalidConfiguration(
                f"summary_timeout must be a positive number of seconds, not {seconds!r}"
            )
        object.__setattr__(self, "_frame", SeedFrame(self.template, self.longest_seed, self.state))

    def extend(self, **options: Any) -> dict[str, Any]:
        """Return the keywords of `create_session` with the policy's tool and hooks added.

        A tool of the name `tool_name` that is there is used instead of the policy's own. The host's hooks are called
        first. Raises `InvalidConfiguration`.
        """
        self._check_waits(options.get("waits"))
        tools = tools_of(options)
        if all(one.name != self.tool_name for one in tools):
            own = clear_context_tool(
                name=self.tool_name, longest_seed=self.longest_seed, template=self.template, state=self.state
            )
            tools = (*tools, own)
        # After these nothing is to be handed off: the turn ends, or the context is cleared anyway.
        last_words = frozenset({self.tool_name, *(one.name for one in tools if one.is_terminal)})
        hooks: dict[str, Hook] = {
            "on_post_tool_use": partial(self._after_tool, last_words),
            "on_user_prompt_submitted": self._before_prompt,
        }
        return with_hooks({**options, "tools": tools}, hooks)

    def _check_waits(self, waits: Waits | Mapping[str, Any] | None) -> None:
        hook = Waits().hook
        if isinstance(waits, Waits):
            hook = waits.hook
        elif waits is not None:
            hook = waits.get("hook", hook)
        if self.summarize is not None and self.summary_timeout >= hook:
            raise InvalidConfiguration(
                f"summary_timeout is {self.summary_timeout:g} s and must be less than waits.hook, which is {hook:g} s"
            )

    @runs_on_trio
    async def _after_tool(
        self, last_words: frozenset[str], hook_input: PostToolUseInput, invocation: HookInvocation
    ) -> dict[str, Any] | None:
        session = invocation.session
        if hook_input.tool_name in last_words or not self._due(session):
            return None
        number = _reminders(session.history.messages())
        if self.summarize is None or self.force_after is None or number < self.force_after:
            return self._remind(session, number)
        statistics = session.statistics()
        if len(statistics.in_flight) > 1 or statistics.clear_staged:
            # What its siblings find would be in no summary: the last of them hands off, or a later call.
            return None
        if await self._hand_off(hook_input, invocation):
            return None
        return self._remind(session, number)

    @runs_on_trio
    def _before_prompt(self, hook_input: Any, invocation: HookInvocation) -> dict[str, Any] | None:
        session = invocation.session
        if not self._due(session):
            return None
        return self._remind(session, _reminders(session.history.messages()))

    def _due(self, session: Session) -> bool:
        if not self.at.passed(session, self._usage.of(session)):
            return False
        since = _since_reminder(session.history.messages())
        return since is None or since + 1 >= self.remind_every

    def _remind(self, session: Session, number: int) -> dict[str, Any]:
        session.record_handoff("reminded", trigger=self.at.kind)
        text = self.reminder.replace("{tool}", self.tool_name)
        return {"additional_context": f"[handoff reminder {number + 1}] {text}"}

    async def _hand_off(self, hook_input: PostToolUseInput, invocation: HookInvocation) -> bool:
        """Stage the clear; say whether that, or a clear of somebody else, is to be waited for."""
        session = invocation.session
        try:
            note = await self._summary(hook_input, invocation)
            seed = await self._frame.seed(note, invocation)
        except Exception as error:  # noqa: BLE001 - a summary is made by foreign code
            session.record_handoff("summary_failed", trigger=self.at.kind, detail=cause_of(error))
            return False
        try:
            await session.history.clear_context(seed, trigger=f"handoff_{self.at.kind}")
        except ClearRefused as error:
            session.record_handoff("refused", trigger=self.at.kind, detail=error.cause)
            return True
        session.record_handoff("forced", trigger=self.at.kind)
        return True

    async def _summary(self, hook_input: PostToolUseInput, invocation: HookInvocation) -> str:
        summarize = self.summarize
        if isinstance(summarize, ModelClient):
            summarize = summary_by(summarize)
        assert summarize is not None
        result = Said("tool", hook_input.tool_result.text_result_for_llm, (), hook_input.tool_call_id)
        conversation = (*invocation.session.history.messages(), result)
        note: Any = None
        with trio.move_on_after(self.summary_timeout) as scope:
            note = await summarize(conversation, invocation)
        if scope.cancelled_caught:
            raise SummaryFailed(f"no summary within {self.summary_timeout:g} s")
        if not isinstance(note, str) or not note.strip():
            raise SummaryFailed(f"the summary is no text but {note!r:.40}")
        return encodable(note)


def _reminders(messages: Sequence[Message]) -> int:
    """Return the number of the last reminder in this context, 0 where there is none."""
    for message in reversed(messages):
        found = _NUMBER.findall(message.content) if message.role in ("tool", "user") else []
        if found:
            return int(found[-1])
    return 0


def _since_reminder(messages: Sequence[Message]) -> int | None:
    """Return how many results and user messages came after the last reminder; `None` where there is none."""
    count = 0
    for message in reversed(messages):
        if message.role in ("tool", "user"):
            if _NUMBER.search(message.content):
                return count
            count += 1
    return None
