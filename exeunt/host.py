"""`open_host`: the door through which a trio program gets a host with metrics."""

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import trio
from prometheus_client import CollectorRegistry

from exeunt.actors.errors import InvalidConfiguration
from exeunt.actors.options import SessionOptions
from exeunt.actors.session import Session
from exeunt.configuration import SessionKeywords, build_options, check_keywords
from exeunt.groups import is_only_cancelled, lone
from exeunt.metrics import Metrics
from exeunt.stores import journal_from_url
from exeunt.supervisor.children import ChildSpec
from exeunt.supervisor.held import OptionsResolver
from exeunt.supervisor.host import HostCore, logger
from exeunt.supervisor.journal import Journal, MemoryJournal, SessionMetadata
from exeunt.supervisor.journal.durable import DurableJournal
from exeunt.supervisor.options import STUCK_REPORT_EVERY, HostOptions
from exeunt.supervisor.tree import open_supervisor

if TYPE_CHECKING:
    from exeunt.telemetry import Telemetry


class SessionHost(HostCore):
    """The sessions of one process: makes, finds and ends them. Made by `open_host`."""

    metrics: Metrics
    prepare: Callable[[SessionOptions], SessionOptions] | None = None
    """What makes options that this host can run of those that it is given: where it is embedded, handlers may be made
    for another loop or for threads. Called once for each set of options."""

    async def create_session(
        self, *, session_id: str | None = None, **options: Unpack[SessionKeywords]
    ) -> Session:
        """Make a session and return its handle.

        * `model`: an object with `complete` and `stream` (`exeunt.ModelClient`), or a name with
          `provider={"type": "openai", "base_url": ..., "api_key": ...}`.
        * `tools`, `system_message`, `developer_messages`: what the model is given in every context.
        * `on_permission_request`: called before each tool that does not skip permission; without it, such a tool
          is denied. `approve_all` approves every call, `leave_pending` leaves them to `session.answer`.
        * `on_user_input_request`: called when a tool asks the user something; without it, nobody can be asked.
        * `hooks`, or `on_session_start`, `on_user_prompt_submitted`, `on_user_prompt_transformed`, `on_pre_tool_use`,
          `on_post_tool_use`, `on_post_tool_use_failure`, `on_agent_stop`, `on_session_end`, `on_error_occurred`.
        * `tenant`: whose share of the host it uses. `streaming`: whether answers are asked for in pieces.
        * `current_datetime`: whether the message that begins a turn is preceded by the date and the time.
        * `limits={"steps": 200, "failed_batches": 10, "tokens": None, "credits": None}`: the budget of one turn, and
          in credits that of the session. `prices={"gpt-5": {"input": 125, "output": 1000}}`: credits for a million
          tokens (`exeunt.Price`). `on_session_limits_exhausted`: asked for more when they are spent.
        * `auto_model`, `on_auto_mode_switch_request`: the model to go on with at a limit of the provider, and who is
          asked whether to.
        * `waits`, `retries`: time-outs and the retry policy (`exeunt.Waits`, `exeunt.RetryPolicy`).
        * `media_limits={"item": ..., "message": ..., "session": ...}`: bytes of attachments (`exeunt.MediaLimits`).
        * `mailbox_size`, `siblings`, `max_consecutive_clears`: see `exeunt.SessionOptions`.

        Raises `SessionExists`, `InvalidConfiguration`, `SessionClosed`. Cancelled: the session may exist.
        """
        chosen = self._options(options)
        self.metrics.register_tools(chosen.tools.names)
        return await self.open_session(chosen, session_id)

    async def resume_session(
        self, session_id: str, *, continue_pending_work: bool = False, **options: Unpack[SessionKeywords]
    ) -> Session:
        """Take up a stored session, or attach to one that is in memory; return its handle.

        *options* are those of `create_session`, given anew; without any, those that the session last had in this
        process (of the last `HostOptions.remembered_options` that were disconnected), or what `session_options` of
        `open_host` returns. Calls that were open at the end of the log are `interrupted`. With
        *continue_pending_work* the session goes on by itself with the turn that was cut off, the seed of a committed
        clear and the queued messages, and what waits for an approval waits on; else all that waits for a message.

        Raises `SessionNotFound`, `SessionNotConfigured`, `InvalidConfiguration`.
        """
        chosen = self._options(options) if options else None
        if chosen is not None:
            self.metrics.register_tools(chosen.tools.names)
        return await self.reopen_session(session_id, chosen, continue_pending_work=continue_pending_work)

    async def fork_session(
        self,
        session_id: str,
        *,
        at: str | int | None = None,
        new_session_id: str | None = None,
        continue_pending_work: bool = False,
        **options: Unpack[SessionKeywords],
    ) -> Session:
        """Make a session whose log is a copy of another's, up to and with the event *at*; return its handle.

        *at* is an event's id or number; `None` is the last event that is durable now. The other session may be live,
        and does not notice. Events keep their ids. What is open at *at* ends in the copy as when it is resumed: calls
        are `interrupted`, messages that wait go on waiting, or with *continue_pending_work* go on. *options* are those
        of `create_session`; without any, those of the other session.

        Raises `SessionNotFound`, `UnknownEvent`, `InvalidConfiguration` for a number that the log does not have,
        `SessionExists`, `SessionNotConfigured`, `JournalError`. Cancelled: the copy may exist.
        """
        chosen = self._options(options) if options else None
        if chosen is not None:
            self.metrics.register_tools(chosen.tools.names)
        return await self.fork(session_id, chosen, at, new_session_id, continue_pending_work)

    async def _ask_program(self, session_id: str, metadata: SessionMetadata) -> SessionOptions:
        """Ask `session_options` of `open_host`, and let the metrics know the tools."""
        options = self._prepared(await super()._ask_program(session_id, metadata))
        self.metrics.register_tools(options.tools.names)
        return options

    def _options(self, keywords: SessionKeywords) -> SessionOptions:
        check_keywords(keywords)
        return self._prepared(build_options(**keywords))

    def _prepared(self, options: SessionOptions) -> SessionOptions:
        return options if self.prepare is None else self.prepare(options)


@asynccontextmanager
async def open_host(
    *,
    journal: Journal | str | None = None,
    registry: CollectorRegistry | None = None,
    session_options: OptionsResolver | None = None,
    options: HostOptions | None = None,
    telemetry: "Telemetry | None" = None,
) -> AsyncGenerator[SessionHost]:
    """Open a host for the body of the `async with`.

    *journal* keeps the logs: a URL such as `sqlite:///sessions.sqlite3`, or an object (default: in memory, until the
    host ends). *registry* gets the metrics (default: one
    of its own, `host.metrics.registry`). *session_options*, an async function of (session id, metadata), gives the
    options of a stored session that is woken without them. *options* bounds the host. *telemetry* makes traces of what
    happens in it (`exeunt.telemetry.Telemetry`).

    At the end, also by an error or a cancellation, every session is stopped in order: its turn is aborted, its
    handlers have a second to clean up. Python cannot leave a task that shields itself from cancellation: the host
    waits for it, and names tool and session in the log every 5 s. Errors of the body are raised as they are.

    Raises `InvalidConfiguration`, and `JournalError` (`StoreUnavailable`, `StoreDamaged`) for a journal that cannot be
    opened; one that is unavailable is waited for as long as `HostOptions.journal_wait` says. Cancelled meanwhile: there
    is no host.
    """
    keeper = _checked_journal(journal)
    _check_arguments(registry, session_options, options, telemetry)
    wait = 0.0 if options is None else options.journal_wait
    failure: BaseException | None = None
    timers, naming = _Outlasting(), _Outlasting()
    try:
        async with trio.open_nursery() as watch, _open_journal(keeper, wait) as (kept, writing):
            try:
                async with trio.open_nursery() as nursery, open_supervisor(name="host") as services:
                    host: SessionHost | None = None
                    try:
                        chosen = options or HostOptions()
                        made = SessionHost(nursery, services, kept, chosen, session_options)
                        made.metrics = Metrics(registry)
                        host = made
                        host.metrics.attach(host.statistics)
                        host.observe(host.metrics.observe)
                        if telemetry is not None:
                            telemetry.attach(host)
                        if isinstance(kept, DurableJournal):
                            kept.on_commit = host.metrics.observe_commit
                        await services.start_child(ChildSpec("timers", timers.run, args=(host.timers.run,)))
                        if host.passivation is not None:
                            await services.start_child(ChildSpec("passivation", host.passivation.run))
                        yield host
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001, ASYNC103 - raised again below
                        failure = error
                    try:
                        if host is not None:
                            with trio.CancelScope(shield=True):
                                await host.close()
                    finally:
                        # Also when Ctrl-C has ended the wait: what outlasts the end would outlast it for ever.
                        if host is not None:
                            watch.start_soon(naming.run, partial(_name_stuck, host))
                        timers.end()
                        nursery.cancel_scope.cancel()
                if host is not None:
                    host.metrics.detach()
                    if telemetry is not None and host.tracing is telemetry:
                        telemetry.detach()
            finally:
                writing.end()
                naming.end()
                watch.cancel_scope.cancel()
    except BaseException as ending:  # noqa: ASYNC103 - a cancellation has ended the body too, and that is raised
        if failure is None:
            # Of the host itself, which has nurseries: their groups are no business of who opened it.
            failure = lone(ending)
        elif not is_only_cancelled(ending):
            raise
        # Else what is around the host was cancelled while the body failed: the failure counts.
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # it holds this frame, and must not be held by it


@asynccontextmanager
async def _open_journal(
    journal: Journal | None, wait: float
) -> "AsyncGenerator[tuple[Journal, _Outlasting]]":
    """Run a journal that is a service of its own until `end()` is called on what comes with it."""
    writing = _Outlasting()
    if journal is None:
        yield MemoryJournal(), writing
        return
    if not isinstance(journal, DurableJournal):
        yield journal, writing
        return
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(writing.start, partial(journal.run, wait=wait))
            yield journal, writing
        finally:
            writing.end()
            nursery.cancel_scope.cancel()


class _Outlasting:
    """Runs something that the end of the host needs, also when what is around the host was cancelled."""

    def __init__(self) -> None:
        self._scope = trio.CancelScope()
        self._needed = True

    async def run(self, task: Callable[[], Awaitable[None]]) -> None:
        with trio.CancelScope(shield=self._needed) as self._scope:
            await task()

    async def start(  # noqa: ASYNC128 - the task tells
        self,
        task: Any,
        *,
        task_status: "trio.TaskStatus[Any]",
    ) -> None:
        with trio.CancelScope() as self._scope:
            await task(task_status=_Started(task_status, self))

    def started(self) -> None:
        """It runs, and outlasts what comes now; what was cancelled before it ran must end."""
        if trio.current_effective_deadline() > -math.inf:
            self._scope.shield = self._needed

    def end(self) -> None:
        """Let a cancellation reach it."""
        self._needed = self._scope.shield = False


class _Started:
    """Passes on that a task has started, and lets it outlast its surroundings from then on."""

    def __init__(self, status: "trio.TaskStatus[Any]", task: _Outlasting) -> None:
        self._status = status
        self._task = task

    def started(self, value: Any = None) -> None:
        self._status.started(value)
        self._task.started()


OWN_TASK = "exeunt "
"""How the names of the host's own tasks begin: what they wait for is a handler, and named as that."""


async def _name_stuck(host: SessionHost) -> None:
    while True:
        await trio.sleep(STUCK_REPORT_EVERY)
        logger.warning("the host waits for what does not end: %s", "; ".join(_waited_for(host)))


def _waited_for(host: SessionHost) -> list[str]:
    """Name the handlers, and the tasks of the embedder in the host's nursery."""
    tasks = [task.name for task in host.nursery.child_tasks]
    others = sorted(f"{name} in host.nursery" for name in tasks if not name.startswith(OWN_TASK))
    return [*host.stuck(), *others] or tasks


def _checked_journal(journal: Any) -> Journal | None:
    if journal is None:
        return None
    if isinstance(journal, str):
        return journal_from_url(journal)
    if not all(
        callable(getattr(journal, name, None)) for name in ("create", "open", "read", "list", "delete")
    ):
        raise InvalidConfiguration(f"journal is a URL or a Journal, not {journal!r:.80}")
    kept: Journal = journal
    return kept


def _check_arguments(registry: Any, session_options: Any, options: Any, telemetry: Any) -> None:
    if registry is not None and not isinstance(registry, CollectorRegistry):
        raise InvalidConfiguration(
            f"registry is a CollectorRegistry of prometheus_client, not {registry!r:.80}"
        )
    if session_options is not None and not callable(session_options):
        raise InvalidConfiguration(
            f"session_options is an async function of (session id, metadata), not {session_options!r:.80}"
        )
    if options is not None and not isinstance(options, HostOptions):
        raise InvalidConfiguration(f"options are HostOptions, not {options!r:.80}")
    if telemetry is not None and not callable(getattr(telemetry, "attach", None)):
        raise InvalidConfiguration(f"telemetry is a Telemetry of exeunt.telemetry, not {telemetry!r:.80}")
