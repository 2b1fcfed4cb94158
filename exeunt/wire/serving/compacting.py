"""Making room in a context: its beginning is summed up by the session's own model, while the session goes on.

The request is the conversation itself with one more message, so that providers find what they have cached. The summary
takes the place of the messages that it is of once the session is idle.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import trio

from exeunt.actors.errors import ExeuntError, SessionBusy
from exeunt.actors.events import (
    Event,
    SessionCompacted,
    SessionFailed,
    SessionIdle,
    SessionLost,
    SessionShutdown,
)
from exeunt.actors.models import Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse
from exeunt.actors.session.putting import put_anywhere
from exeunt.actors.text import encodable, without_datetime
from exeunt.actors.turn import budget
from exeunt.policies.summaries import Said
from exeunt.wire.serving.sizes import estimate

if TYPE_CHECKING:
    from exeunt.actors.turn.actor import SessionActor
    from exeunt.wire.serving.served import Served

logger = logging.getLogger("exeunt.wire")

OPENING = "Please create a detailed summary of the conversation so far. The history is being compacted"
"""How such a request begins in recorded conversations."""

PROMPT = (
    OPENING
    + ": what you write now takes its place, and is all that its assistant will know of it beside the user's own"
    " messages. Answer with these parts, each in its tags, and call no tool:\n"
    "<overview> the task and where it stands </overview>\n"
    "<history> what was asked and done, in order </history>\n"
    "<work_done> what exists now that did not before </work_done>\n"
    "<technical_details> facts, names, numbers and decisions with their reasons, exactly </technical_details>\n"
    "<important_files> files that matter, and why </important_files>\n"
    "<next_steps> what is open </next_steps>\n"
    "<checkpoint_title> a title of at most six words </checkpoint_title>"
)

MESSAGES_BETWEEN = 4
"""By which a context must have grown before it is compacted by itself once more: what cannot be made smaller, or what
no model sums up, is not to be tried with every message."""

LEAST_MESSAGES = 3
"""Of a conversation that is compacted by itself: a shorter one is large because of its last message."""

BY_ITSELF = "threshold"
"""What brings a compaction about that nobody has asked for."""

THRESHOLD = 0.8
"""Share of its room that a context may fill before that, where the client does not say."""

LONGEST_WAIT = 3600.0
"""Seconds until a summary whose session is never idle is given up: as long as a call may wait for a person."""


@attrs.frozen
class Compacted:
    """What became of a compaction."""

    event: SessionCompacted
    summary: str
    removed_tokens: int


class Compaction:
    """One compaction of a session, from the request to the model on."""

    def __init__(self, served: "Served", trigger: str, instructions: str = "") -> None:
        self.served = served
        self.trigger = trigger
        self.instructions = instructions
        self.scope = trio.CancelScope()
        """Cancelled to give it up."""
        actor = served.hub.host.find(served.session_id)
        assert actor is not None
        self._actor: SessionActor = actor
        context = actor.context
        self._messages: Sequence[Message] = tuple(context.request())
        self._count = context.length
        self._generation = context.generation
        self._sizes = estimate(self._messages, actor.options.tools.definitions, cited=served.cites)

    async def run(self) -> Compacted | None:
        """Compact; `None` when it was given up. Raises `ModelError`, `ExeuntError`; clients are told in each case."""
        served, sizes = self.served, self._sizes
        about = {"trigger": self.trigger, "tokenLimit": served.token_limit}
        served.notify(
            "session.compaction_start",
            {
                **about,
                "model": served.model,
                "systemTokens": sizes.system,
                "conversationTokens": sizes.conversation,
                "toolDefinitionsTokens": sizes.tools,
                "currentTokens": sizes.total,
            },
        )
        done: Compacted | None = None
        error = "the compaction was given up"
        status: int | None = None
        try:
            with self.scope:
                done = await self._compact()
        except ExeuntError as failure:
            error, status = str(failure), failure.status if isinstance(failure, ModelError) else None
            raise
        finally:
            if done is None:
                failed: dict[str, Any] = {"success": False, "error": encodable(error), **about}
                served.notify(
                    "session.compaction_complete",
                    failed if status is None else {**failed, "statusCode": status},
                )
        return done

    async def _compact(self) -> Compacted:
        began = self._actor.host.clock.now()
        answer = await summarize(self._actor, self._messages, self.instructions)
        summary = encodable(answer.content)
        content = composed(self._messages, summary)
        removed = max(0, self._sizes.conversation - estimate([Said("user", content)]).conversation)
        usage = answer.usage
        note: dict[str, Any] = {
            "summaryContent": summary,
            "preCompactionTokens": self._sizes.total,
            "preCompactionMessagesLength": self._count,
            "tokensRemoved": removed,
            "tokenLimit": self.served.token_limit,
            "compactionTokensUsed": {
                "model": self.served.model,
                # Where the provider does not count, this is what was sent, estimated.
                "inputTokens": (usage.input_tokens if usage else 0) or self._sizes.total,
                "outputTokens": (usage.output_tokens if usage else 0)
                or estimate([Said("user", summary)]).conversation,
                "duration": int((self._actor.host.clock.now() - began) * 1000),
            },
        }
        if self.instructions:
            note["customInstructions"] = self.instructions
        files = self.served.files
        checkpoint = None if files is None else await files.keep_summary(summary)
        if files is not None and checkpoint is not None:
            note["checkpointNumber"] = checkpoint.number
            note["checkpointPath"] = files.store.place(checkpoint.path)
        try:
            with trio.fail_after(LONGEST_WAIT):
                event = await self._put(content, note)
        except BaseException:
            if files is not None and checkpoint is not None:
                self.served.hub.host.spawn(partial(files.drop_summary, checkpoint))
            raise
        return Compacted(event, summary, removed)

    async def _put(self, content: str, note: dict[str, Any]) -> SessionCompacted:
        """Put the summary into the context as soon as the session is idle."""
        handle = self.served.handle
        while True:
            idle = trio.Event()
            unsubscribe = handle.on(_setting(idle))
            try:
                return await handle.history.compact(
                    content,
                    messages=self._count,
                    generation=self._generation,
                    trigger=self.trigger,
                    note=note,
                )
            except SessionBusy:
                await idle.wait()
            finally:
                unsubscribe()


def _setting(idle: trio.Event) -> Callable[[Event], object]:
    ends = (SessionIdle, SessionShutdown, SessionFailed, SessionLost)
    return lambda event: idle.set() if isinstance(event, ends) else None


async def summarize(
    actor: "SessionActor", messages: Sequence[Message], instructions: str = ""
) -> ModelResponse:
    """Let the session's model sum a conversation up.

    Raises `ModelError`, also for an answer without a text, and `CreditsExhausted`.
    """
    prompt = f"{PROMPT}\n\nThe user asks for this in particular:\n{instructions}" if instructions else PROMPT
    options = actor.options
    request = ModelRequest(
        (*messages, Said("user", prompt)), options.tools.definitions, actor.id, "compaction"
    )
    refused = budget.refusal(actor)
    if refused is not None:
        raise refused
    with trio.move_on_after(options.waits.model_total):
        answer = await options.model.complete(request)
        # Meanwhile the session may have left memory, or have ended: then its log takes nothing more.
        if options.prices and actor.status not in ("closed", "failed"):
            await put_anywhere(actor, budget.charge, options, request, answer)
        if not answer.content.strip():
            raise ModelError(ModelErrorKind.EMPTY_ANSWER, "the model gave no summary")
        return answer
    raise ModelError(
        ModelErrorKind.TIMEOUT, f"the model gave no summary within {options.waits.model_total:g} s"
    )


def composed(messages: Sequence[Message], summary: str) -> str:
    """Return what the model reads in the place of *messages*: the user's own words, and the summary.

    In the words that recorded conversations hold.
    """
    told = [
        "\n".join((without_datetime(message.content), *(f"[attached: {media}]" for media in message.media)))
        for message in messages
        if message.role == "user"
    ]
    quoted = "\n".join(f"<user_message>\n{text}\n</user_message>" for text in told)
    return (
        "Some of the conversation history has been summarized to free up context.\n\n"
        "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
        f"{quoted}\n\n"
        f"Here is a summary of the prior context:\n<summary>\n{summary}\n</summary>"
    )


def threshold(settings: dict[str, Any] | None) -> float | None:
    """Return the share of its room at which a context is compacted by itself; `None` where it is not to be."""
    if not settings or settings.get("enabled") is not True:
        return None
    share = settings.get("backgroundCompactionThreshold")
    return share if isinstance(share, (int, float)) and 0 < share <= 1 else THRESHOLD


def is_due(served: "Served") -> bool:
    """Say whether the context of a session is to be compacted by itself. Costs O(messages), where that may be."""
    share = threshold(served.config.infiniteSessions)
    actor = served.hub.host.find(served.session_id)
    if share is None or actor is None or served.compaction is not None:
        return False
    context = actor.context
    if context.batch is not None or context.length < served.compacts_from:
        return False
    total = estimate(context.request(), actor.options.tools.definitions, cited=served.cites).total
    return total >= share * served.token_limit


async def in_background(served: "Served", compaction: Compaction) -> None:
    """Compact, and leave what fails to the event that tells of it."""
    try:
        await tracked(served, compaction)
    except ExeuntError as error:
        logger.warning("session %s was not compacted: %s", served.session_id, error)


async def tracked(served: "Served", compaction: Compaction) -> Compacted | None:
    """Run a compaction as the session's own. Raises what it raises."""
    served.compaction = compaction
    try:
        return await compaction.run()
    finally:
        served.compaction = None
        actor = served.hub.host.find(served.session_id)
        length = 0 if actor is None else actor.context.length
        served.compacts_from = max(LEAST_MESSAGES, length + MESSAGES_BETWEEN)
