"""The chat as a whole: lines in, a session, text out."""

import signal
import sys
from contextlib import nullcontext
from typing import Any

import attrs
import trio

from exeunt import EventStream, ExeuntError, Outcome, Session, ToolInvocation, approve_all, open_host, tool
from exeunt.actors.events import Event, SessionIdle
from exeunt.cli import INTERRUPTED
from exeunt.cli.chat.choice import ModelChoice, open_model
from exeunt.cli.chat.commands import HELP, context_text, events_text
from exeunt.cli.chat.farewell import own_program, resume_command
from exeunt.cli.chat.lines import PROMPT, Lines, PipedLines, TerminalLines, terminal_kept, unfinished_line
from exeunt.cli.chat.screen import Screen
from exeunt.cli.chat.transcript import Transcript
from exeunt.cli.sessions.place import default_journal

EVENT_BUFFER = 10_000
"""Events that may wait for the terminal: about a minute of a fast answer."""


@tool(is_terminal=True, defer="never")
async def clear_context(prompt: str, invocation: ToolInvocation) -> str:
    """Clear the conversation and start a fresh context window with this prompt."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


async def run_chat(
    choice: ModelChoice, system_message: str | None, journal: str | None = None, resume: str | None = None
) -> int:
    """Talk until the lines end, `/quit`, or Ctrl-C twice. Return the exit status of the process.

    0: it came to its end. 1: without a terminal, a message got no answer. 130: left by Ctrl-C.
    The session is kept in *journal*, or in the user's; *resume* names one of it to go on with.
    Raises `LocalModelUnavailable`, `InvalidConfiguration`, `SessionNotFound`, `JournalError`.
    """
    kept = default_journal() if journal is None else journal
    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(interactive=interactive)
    lines: Lines = (
        TerminalLines() if interactive else PipedLines(0 if sys.stdin is None else sys.stdin.fileno())
    )
    with terminal_kept() if interactive else nullcontext():
        async with open_model(choice) as model, open_host(journal=kept) as host:
            options: dict[str, Any] = {
                "model": model.name,
                "provider": model.provider,
                "tools": [clear_context],
                "system_message": system_message,
                "streaming": True,
                "on_permission_request": approve_all,
            }
            if resume is None:
                session = await host.create_session(**options)
            else:
                session = await host.resume_session(resume, **options)
            if interactive:
                await screen.show(
                    ("title", model.name), ("note", f" {model.where}. /help lists the commands.\n")
                )
                if resume is not None:
                    text = context_text(session.history.messages(), screen.width)
                    await screen.line(text)
            async with session.events(buffer=EVENT_BUFFER) as stream:
                status = await Conversation(session, stream, lines, screen).run()
            if interactive and kept != "memory:":
                command = resume_command(
                    choice,
                    session.session_id,
                    system_message=system_message,
                    journal=journal,
                    program=own_program(),
                )
                await screen.line(f"Kept. To go on:\n{command}")
            return status


@attrs.define(eq=False)
class Conversation:
    """One person, one session."""

    _session: Session
    _stream: EventStream
    _lines: Lines
    _screen: Screen
    _transcript: Transcript = attrs.field(init=False)
    _busy: bool = attrs.field(default=False, init=False)
    """Whether an answer is under way, or about to be."""
    _interrupted: bool = attrs.field(default=False, init=False)
    """Whether Ctrl-C was pressed since the last line."""
    _status: int | None = attrs.field(default=None, init=False)
    """The exit status, once it is decided."""

    def __attrs_post_init__(self) -> None:
        self._transcript = Transcript(live=self._lines.interactive)

    async def run(self) -> int:
        """Take lines until there are no more."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._take_interrupts, nursery.cancel_scope)
            await self._take_lines()
            nursery.cancel_scope.cancel()
        if self._status is not None:
            return self._status
        return int(self._transcript.failed and not self._lines.interactive)

    async def _take_lines(self) -> None:
        while self._status is None:
            try:
                line = await self._lines.next()
            except ExeuntError as error:
                await self._complain(error)
                return
            self._interrupted = False
            if line is None or line.rstrip() == "/quit":
                if line is None and self._lines.interactive:
                    await self._screen.line("")
                return
            if line.strip():
                self._busy = True
                try:
                    await self._obey(line)
                except ExeuntError as error:
                    await self._complain(error)
                finally:
                    self._busy = False

    async def _obey(self, line: str) -> None:
        command, _, argument = line.rstrip().partition(" ")
        argument = argument.strip()
        match command:
            case "/clear":
                await self._clear(argument)
            case "/abort":
                await self._screen.line("nothing is under way")
            case "/context":
                await self._screen.line(
                    context_text(self._session.history.messages(), self._screen.width), "answer"
                )
            case "/events":
                await self._screen.line(
                    await events_text(self._session, argument, self._screen.width), "answer"
                )
            case "/help":
                await self._screen.line(HELP, "answer")
            case _ if line.startswith("/"):
                await self._complain(f"unknown command {command}; /help lists all")
            case _:
                await self._session.send(line.strip())
                await self._show_until()

    async def _clear(self, prompt: str) -> None:
        if not prompt:
            await self._complain("/clear needs the first message of the new context")
            return
        done = await self._session.call_tool(clear_context.name, {"prompt": prompt})
        # A turn follows, and an idle after it, only where the context was cleared.
        await self._show_until(None if done.outcome is Outcome.SUCCESS else self._session.statistics().events)
        if done.outcome is not Outcome.SUCCESS:
            await self._complain(f"not cleared: {done.content}")

    async def _show_until(self, last_seq: int | None = None) -> None:
        """Show events up to number *last_seq*, or until the session is idle; take what is typed meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._steer)
            async for event in self._stream:
                await self._screen.show(*self._transcript.take(event))
                if self._is_last(event, last_seq):
                    break
            else:
                # The session has left memory: it crashed too often, and the log of the process says how.
                self._status = 1
            nursery.cancel_scope.cancel()

    def _is_last(self, event: Event, last_seq: int | None) -> bool:
        if last_seq is not None:
            return event.seq >= last_seq
        # A line that came too late to steer has begun a turn of its own.
        return isinstance(event, SessionIdle) and self._session.statistics().phase == "idle"

    async def _steer(self) -> None:
        async for line in self._lines.meanwhile():
            text = line.strip()
            if text == "/abort":
                await self._session.abort()
            elif text.startswith("/"):
                await self._screen.show(*self._transcript.note("during an answer there is only /abort"))
            elif text:
                try:
                    await self._session.send(text, mode="immediate")
                except ExeuntError as error:
                    await self._complain(error)

    async def _take_interrupts(
        self, everything: trio.CancelScope, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._interrupted or not self._lines.interactive:
                    break
                self._interrupted = True
                if self._busy:
                    await self._session.abort()
                else:
                    # The prompt and what is typed so far stand where the editor believes them.
                    text = f"\nCtrl-C again leaves.\n{PROMPT}{unfinished_line()}"
                    await self._screen.show(("note", text))
        self._status = INTERRUPTED
        if self._lines.interactive:
            await self._screen.line("")
        everything.cancel()

    async def _complain(self, what: ExeuntError | str) -> None:
        self._transcript.failed = True
        await self._screen.show(*self._transcript.note(str(what), "error"))
