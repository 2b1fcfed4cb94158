"""Every error that Exeunt raises on purpose: one base, one class per cause.

Each message says what was asked, why it is refused, and what to do instead. A refused call has changed
nothing.
"""

from typing import Any


class ExeuntError(Exception):
    """Base of all errors of Exeunt."""


# --- Bad input ---------------------------------------------------------------------------------------------


class InvalidConfiguration(ExeuntError, ValueError):
    """An option, a tool or a limit has a value that cannot work."""


class InvalidPrompt(ExeuntError, ValueError):
    """A message is not a text that can be sent to a model."""


class InvalidMedia(ExeuntError, ValueError):
    """An attachment is no `Media`, or media cannot be made of what was given."""


class MediaTooLarge(ExeuntError, ValueError):
    """Attachments have more bytes than a message of the session may bring."""


class InvalidToolDefinition(InvalidConfiguration):
    """A tool cannot be made of this function: its name or its annotations do not allow it."""


class InstructionsRefused(InvalidConfiguration):
    """A client names folders with instructions that its server does not read for clients, or that are no paths."""


class PriceUnknown(InvalidConfiguration):
    """A session is to be limited in credits, and its model has no price: nobody could count them."""


class EndpointUnavailable(ExeuntError, OSError):
    """A server of the host cannot listen where it was told to. `__cause__` is the system's reason."""


# --- Sessions ----------------------------------------------------------------------------------------------


class SessionError(ExeuntError):
    """Base of the errors of one session."""

    def __init__(self, message: str, *, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id


class SessionNotFound(SessionError):
    """No session has this id."""


class SessionExists(SessionError):
    """A session with this id exists already: resume it, or delete it first."""


class SessionClosed(SessionError):
    """The session was disconnected, deleted, or its host has ended."""


class SessionPassive(SessionError):
    """The session has left memory while it was idle, and what was asked for is only there. A message brings it back."""


class SessionFailed(SessionError):
    """The session crashed more often than its restart intensity allows. Others are not affected."""


class SessionNotConfigured(SessionError):
    """A stored session was woken and nobody gave it its model, tools and handlers.

    A message that was sent to it is accepted, and waits until somebody does.
    """


class TransportLost(SessionError):
    """The way to a session of another process is lost, silent, or carried what is no frame.

    Whether that process has done what it was last asked is unknown.
    """


class SessionBusy(SessionError):
    """The session has a turn or a call of the host at work; this can be done only while it has none."""


class UnknownEvent(SessionError, ValueError):
    """The session's log has no such event."""


class EventInsideTurn(SessionError, ValueError):
    """The event lies inside of a turn, where the context is no conversation that a model could go on with."""


# --- Clients -----------------------------------------------------------------------------------------------


class ClientGone(ExeuntError, ConnectionError):
    """A client was asked something, and has disconnected, or did not answer in time."""


class ClientRefused(ExeuntError):
    """A client answered a request with an error."""


# --- Files of sessions -------------------------------------------------------------------------------------


class SessionFilesError(ExeuntError):
    """Base of the errors of a session's files."""


class NoSessionFiles(SessionFilesError):
    """The session has no files: neither does its client serve them, nor has the server a folder for them."""


class InvalidFilePath(SessionFilesError, ValueError):
    """A path is none within the files of its session."""


class SessionFileNotFound(SessionFilesError, LookupError):
    """The session has no such file or folder."""


class SessionFileTooLarge(SessionFilesError):
    """A file is larger than what is read or written at once."""


class SessionFilesUnavailable(SessionFilesError):
    """Who keeps the files failed, refused, answered with nonsense, or did not answer in time."""


class TranscriptUnusable(SessionFilesError):
    """A session is not known here, and cannot be made again of what its files say."""


# --- Sending and waiting -----------------------------------------------------------------------------------


class MailboxFull(SessionError):
    """The session holds as many accepted messages as it may. Nothing was queued; send again later."""


class Overloaded(SessionError):
    """The host, or the tenant's share of it, has no room for another message. Nothing was queued."""


class WouldDeadlock(SessionError):
    """The caller is part of what it wants to wait for, directly or through other sessions."""


class NotInWorkerThread(SessionError, RuntimeError):
    """`invocation.run` is for synchronous handlers: it works only in the worker thread that Exeunt runs them in."""


class ReplyTimeout(SessionError, TimeoutError):
    """No reply within the time-out. The turn goes on."""

    def __init__(
        self,
        message: str,
        *,
        session_id: str | None = None,
        phase: str,
        in_flight: tuple[str, ...],
        queued: int,
    ) -> None:
        super().__init__(message, session_id=session_id)
        self.phase = phase
        """What the session was doing: `idle`, `waiting`, `prompt_hooks`, `model`, `tools`, or `question` where the turn
        asks people before it goes on."""
        self.in_flight = in_flight
        """Names of the tools whose calls had no outcome yet."""
        self.queued = queued
        """Messages that waited for a turn of their own."""


class TurnError(SessionError):
    """Base of the errors of a turn that ended without a reply."""

    def __init__(self, message: str, *, session_id: str | None = None, turn_id: str | None = None) -> None:
        super().__init__(message, session_id=session_id)
        self.turn_id = turn_id


class TurnAborted(TurnError):
    """The turn was aborted, or the message was dropped by an abort before its turn began."""


class PromptBlocked(SessionError):
    """A hook kept the message out of the context."""


class TurnInterrupted(TurnError):
    """The session's actor was restarted in the middle of the turn."""


class TurnFailed(TurnError):
    """The model could not be reached, or its answer was of no use. `__cause__` is the `ModelError`."""


class CreditsExhausted(TurnError):
    """The session has spent its credits, or they cannot be counted: the model was not asked."""

    def __init__(
        self,
        message: str,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        used: float = 0.0,
        limit: float = 0.0,
    ) -> None:
        super().__init__(message, session_id=session_id, turn_id=turn_id)
        self.used = used
        """Credits that the session has spent."""
        self.limit = limit
        """Credits that it may spend."""


# --- Asking people -----------------------------------------------------------------------------------------


class NotInToolCall(SessionError):
    """A question to the user belongs to a tool call that runs; the caller is none, or its call has its outcome."""


class UserInputUnavailable(SessionError):
    """There is nobody who could answer the question: no handler, or one that failed. `__cause__` is its failure."""


class UserInputTimeout(SessionError, TimeoutError):
    """Nobody answered the question within its time."""


class RequestNotPending(SessionError):
    """No request of this id is open: it was answered, ran out of time, ended with its call, or never was one."""


class InvalidAnswer(ExeuntError, ValueError):
    """What was given is no answer to the request. The request is open still."""


# --- Clearing the context ----------------------------------------------------------------------------------


class ClearRefused(SessionError):
    """Base of the refusals of `clear_context`. Context, log, queue and sequence are as they were."""

    cause: str = "refused"
    """The value of the label `outcome` with which the refusal is counted."""


class RemoteSessionError(ClearRefused):
    """The session's actor lives in another process: there is no conversation here to clear."""

    cause = "remote"


class EmptySeedPrompt(ClearRefused, ValueError):
    """The seed is no text, or blank: a context without a user message cannot be answered."""

    cause = "empty_prompt"


class NoToolCallInFlight(ClearRefused):
    """No tool call of the session is in flight, or the caller's own call has its outcome already."""

    cause = "no_tool_call"


class ClearAlreadyStaged(ClearRefused):
    """Another clear of the same batch is staged: a context has one successor."""

    cause = "already_staged"


class ClearLoop(ClearRefused):
    """The session did nothing but clear its context for too many turns in a row."""

    cause = "loop"


class ClearRolledBack(SessionError):
    """The clear was staged, but the call that owns it did not succeed: the context is as it was."""


# --- The local model -----------------------------------------------------------------------------------------


class LocalModelUnavailable(ExeuntError):
    """The small model on this machine cannot be used: a package, its file, or its server is missing or broken."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log
        """The last words of the model server, where it ran: at most 4 KiB."""


# --- Embedding in other hosts --------------------------------------------------------------------------------


class HostLoopClosed(ExeuntError, RuntimeError):
    """The event loop, or the thread, that the host lived in has ended without closing the host."""


class WrongEventLoop(ExeuntError, RuntimeError):
    """A handle was used in another thread or event loop than the one in which its host was opened."""


class HostForked(ExeuntError, RuntimeError):
    """The host was opened before this process was forked: its loop and its threads are in the parent only."""


class TrioAlreadyRunning(ExeuntError, RuntimeError):
    """A host cannot be embedded here, since trio runs in this thread already, for somebody else."""


class WouldBlockHost(ExeuntError, RuntimeError):
    """A call that blocks its thread was made in the host's own thread, which would have to answer it."""


class HandlerCancelled(ExeuntError):
    """What a handler was doing was cancelled: its coroutine by somebody else than the session, or its call."""


# --- Journal, events, supervision --------------------------------------------------------------------------


class JournalError(ExeuntError):
    """The journal did not take or does not have what was asked."""


class SessionOwnedElsewhere(SessionError):
    """Another host has taken the session over. Here it is stopped; it may be resumed here again."""


class StoreUnavailable(JournalError):
    """The database cannot be used now: locked, full, gone. The same call may succeed later; nothing was written."""


class StoreDamaged(JournalError):
    """What the database holds of a session, or of all, cannot be read."""


class JournalUnavailable(JournalError, Overloaded):
    """The journal cannot take new work now: its database is gone, full, or too slow. Send again later."""

    def __init__(self, message: str, *, session_id: str | None = None) -> None:
        Overloaded.__init__(self, message, session_id=session_id)


class ContextError(ExeuntError):
    """An event does not fit the log that it is to be added to. Says that a journal is damaged."""


class InvariantViolation(ExeuntError, AssertionError):
    """The testing kit found a promise of Exeunt broken."""


class ScriptExhausted(InvariantViolation):
    """A scripted model was asked once more than its script has replies."""


class RestartIntensityExceeded(ExeuntError):
    """A child failed more often than its supervisor tolerates. `__cause__` is the last failure."""

    def __init__(self, message: str, *, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class SupervisorError(ExeuntError):
    """Base of what a supervisor refuses."""


class SupervisorClosed(SupervisorError):
    """The supervisor does not run yet, or it is shutting down: it takes no orders."""


class ChildExists(SupervisorError):
    """The supervisor has a child of this name. Stop it first, or choose another name."""


class ChildNotFound(SupervisorError):
    """The supervisor has no child of this name: it never had, or the child ended for good."""


class ChildStartFailed(SupervisorError):
    """A child ended before it said that it had started. `__cause__` is what it raised, if it raised."""
