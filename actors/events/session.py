"""Events about the session itself: its life, its errors, its context."""

from typing import Any, ClassVar

from exeunt.actors.events.envelope import EphemeralEvent, Event
from exeunt.actors.models import Role


class SessionStart(Event, frozen=True, gc=False, tag="session.start"):
    """The session began. First event of every log."""

    type: ClassVar[str] = "session.start"
    session_id: str
    tenant: str = ""
    model: str = ""
    """Name of the model, or of the client's class."""


class SessionResume(Event, frozen=True, gc=False, tag="session.resume"):
    """A stored session was taken up again, by another activation."""

    type: ClassVar[str] = "session.resume"
    event_count: int
    """Events in the log before this one."""
    continue_pending_work: bool = False
    was_active: bool = False
    """Whether somebody else had it in memory all the while, and one more has only come to it."""


class SessionRestarted(Event, frozen=True, gc=False, tag="session.restarted"):
    """The actor crashed and was built anew from its log. What was in flight is `interrupted`."""

    type: ClassVar[str] = "session.restarted"
    epoch: int
    """Restarts of this activation, from 1."""
    cause: str


class SessionFailed(Event, frozen=True, gc=False, tag="session.failed"):
    """The actor crashed more often than its restart intensity allows; the session takes no more messages."""

    type: ClassVar[str] = "session.failed"
    cause: str


class SessionLost(EphemeralEvent, frozen=True, gc=False, tag="session.lost"):
    """The log takes nothing more here, so the session has left memory in the middle of whatever it was doing.

    Only those are told who watch it here: the log belongs to somebody else, or cannot be written.
    """

    type: ClassVar[str] = "session.lost"
    cause: str
    """`taken_over` by another host, or deleted there; `journal`, whose log of it is damaged."""
    message: str


class SessionShutdown(Event, frozen=True, gc=False, tag="session.shutdown"):
    """The session left memory in order. Its log stays."""

    type: ClassVar[str] = "session.shutdown"
    reason: str


class SessionError(Event, frozen=True, gc=False, tag="session.error"):
    """A turn could not get an answer from its model, or may not ask it."""

    type: ClassVar[str] = "session.error"
    error_type: str
    """A `ModelErrorKind`, or `quota` where the session's own credits are spent or cannot be counted."""
    message: str
    status_code: int | None = None
    turn_id: str = ""
    error_code: str = ""
    """The provider's own code, where it has said one."""


class ContextCleared(Event, frozen=True, gc=False, tag="session.context_cleared"):
    """The conversation was replaced by a seed: the boundary between two generations.

    It holds the seed, so the context behind it is whole even when nothing else of the new generation was
    written. As a message of a context it is that seed.
    """

    type: ClassVar[str] = "session.context_cleared"
    role: ClassVar[Role] = "user"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: ClassVar[None] = None
    media: ClassVar[tuple[()]] = ()

    messages_cleared: int
    """Messages that left the context, system and developer messages not counted."""
    initial_message: str
    """The seed, verbatim."""
    generation: int
    """Number of the context that begins here."""
    only_clears: bool = False
    """Whether the clearing turn took in no message and called nothing but clears (the loop guard counts these)."""
    trigger: str = ""
    """What brought it about, in the words of who asked for it: `tool`, `handoff_tokens`, `phase:build`."""

    @property
    def content(self) -> str:
        """The seed as the model sees it until the seeded turn's own message takes its place."""
        return self.initial_message


class SessionTruncated(Event, frozen=True, gc=False, tag="session.truncated"):
    """The conversation went back to what it was right after an earlier event: the boundary between two generations.

    The log keeps everything. The event says what is new about the context, so nobody needs to look back in the log:
    mostly that its first messages stay, and only where it goes back behind a clear, the messages themselves.
    """

    type: ClassVar[str] = "session.truncated"

    event_id: str
    """The event after which the conversation was like this."""
    to_seq: int
    """Its number."""
    events_removed: int
    """Events of the log behind that one, whose conversation is gone."""
    generation: int
    """Number of the context that begins here."""
    kept: int
    """Messages of the context before that stay: its first ones."""
    restored: tuple[bytes, ...] = ()
    """Messages that follow them, as slices of a log."""


class SessionCompacted(Event, frozen=True, gc=False, tag="session.compacted"):
    """The beginning of the conversation was replaced by a shorter text: the boundary between two generations.

    The log keeps everything. As a message of a context it is that text.
    """

    type: ClassVar[str] = "session.compacted"
    role: ClassVar[Role] = "user"
    tool_calls: ClassVar[tuple[()]] = ()
    tool_call_id: ClassVar[None] = None
    media: ClassVar[tuple[()]] = ()

    content: str
    """What the model reads in the place of the messages."""
    messages_removed: int
    """Messages at the beginning of the conversation that it stands for, system and developer messages not counted."""
    generation: int
    """Number of the context that begins here."""
    trigger: str = ""
    """What brought it about, in the words of who asked for it."""
    note: dict[str, Any] | None = None
    """What that one wants to be remembered with it: JSON values."""


class MediaRemoved(Event, frozen=True, gc=False, tag="session.media_removed"):
    """The oldest media have left the context, because it held too much of them. The log keeps everything.

    Their messages say what was there. The generation stays: every other message is what it was.
    """

    type: ClassVar[str] = "session.media_removed"

    up_to_seq: int
    """Number of the last event whose media are gone from the context, as are those of all before it."""
    removed: int
    """How many pictures, documents and other media these are."""
    bytes_removed: int


class SessionModelChange(Event, frozen=True, gc=False, tag="session.model_change"):
    """The session goes on with another model, from its next request on."""

    type: ClassVar[str] = "session.model_change"
    new_model: str
    previous_model: str = ""
    reasoning_effort: str = ""
    """How much the model is to think; empty: as it does by itself."""
    cause: str = ""
    """Why, where nobody chose it: `rate_limit_auto_switch`."""


class SessionModeChanged(Event, frozen=True, gc=False, tag="session.mode_changed"):
    """Somebody chose another mode. The host keeps it for the clients; nothing of the turns depends on it."""

    type: ClassVar[str] = "session.mode_changed"
    previous_mode: str
    new_mode: str


class SessionTitleChanged(Event, frozen=True, gc=False, tag="session.title_changed"):
    """The session has another name."""

    type: ClassVar[str] = "session.title_changed"
    title: str


class SessionInfo(Event, frozen=True, gc=False, tag="session.info"):
    """Somebody outside noted something in the log."""

    type: ClassVar[str] = "session.info"
    info_type: str
    message: str
    level: str = "info"
    """`info`, `warning` or `error`."""
    url: str | None = None


class SessionHandoff(Event, frozen=True, gc=False, tag="session.handoff"):
    """A step on the way of a handoff: of a context to its successor, or of work to another session."""

    type: ClassVar[str] = "session.handoff"
    action: str
    """`reminded`, `forced` (staged by a policy; the clear's own event says that it happened), `refused`,
    `summary_failed`; between sessions `sent` or `received`."""
    trigger: str
    """What brought it about: `tool`, `messages`, `tokens` or `share`."""
    generation: int
    """Number of the context in which that was."""
    session_id: str | None = None
    """The other session, where there is one."""
    message_id: str | None = None
    """The message that was sent there, or that came from there."""
    detail: str | None = None
    """Why, where it did not come about."""


class SessionIdle(EphemeralEvent, frozen=True, gc=False, tag="session.idle"):
    """Nothing is left to do. Exactly one follows the last turn."""

    type: ClassVar[str] = "session.idle"
    aborted: bool = False
    """Whether the last turn was aborted."""


class ClearRefusedEvent(EphemeralEvent, frozen=True, gc=False, tag="session.clear_refused"):
    """A clear was asked for and refused; nothing changed."""

    type: ClassVar[str] = "session.clear_refused"
    cause: str
    """`no_tool_call`, `empty_prompt`, `remote`, `already_staged` or `loop`."""


class ClearRolledBackEvent(EphemeralEvent, frozen=True, gc=False, tag="session.clear_rolled_back"):
    """A staged clear did not happen, because no call that owns it succeeded."""

    type: ClassVar[str] = "session.clear_rolled_back"
    cause: str
    """The owner's outcome, or `aborted`, `stopped`, `interrupted`."""
    call_id: str


class DeadLetter(EphemeralEvent, frozen=True, gc=False, tag="session.dead_letter"):
    """An entry of the mailbox will never be handled. A message has its `message.dropped` as well."""

    type: ClassVar[str] = "session.dead_letter"
    entry: str
    """What kind of entry it was."""
    cause: str


class HookStart(Event, frozen=True, gc=False, tag="hook.start"):
    """A hook of the host is about to be called."""

    type: ClassVar[str] = "hook.start"
    hook_invocation_id: str
    hook_type: str
    tool_call_id: str | None = None


class HookEnd(Event, frozen=True, gc=False, tag="hook.end"):
    """A hook has returned, raised or run out of time."""

    type: ClassVar[str] = "hook.end"
    hook_invocation_id: str
    hook_type: str
    success: bool
    error: str | None = None
    tool_call_id: str | None = None


class SessionWarning(EphemeralEvent, frozen=True, gc=False, tag="session.warning"):
    """Something that a person should know: a prompt that a hook blocked, for instance."""

    type: ClassVar[str] = "session.warning"
    warning_type: str
    message: str
