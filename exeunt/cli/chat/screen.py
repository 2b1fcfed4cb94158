"""Where the answers go."""

import trio
from rich.console import Console
from rich.text import Text

from exeunt.cli.chat.transcript import Piece

STYLES = {"answer": "", "thought": "dim italic", "note": "dim", "error": "red", "title": "bold"}


class Screen:
    """Writes to the standard output in a thread: a terminal that somebody has stopped must not stop the session."""

    def __init__(self, *, interactive: bool) -> None:
        self._console = Console(highlight=False)
        self._errors = self._console if interactive else Console(highlight=False, stderr=True)
        self._interactive = interactive

    @property
    def width(self) -> int:
        """Columns."""
        return self._console.width

    async def show(self, *pieces: Piece) -> None:
        """Write the pieces. Where nobody watches, notes and thoughts are left out and errors go to stderr."""
        for style, text in pieces:
            if self._interactive or style in ("answer", "error"):
                console = self._errors if style == "error" else self._console
                await trio.to_thread.run_sync(
                    self._write, console, text, STYLES[style], abandon_on_cancel=True
                )

    async def line(self, text: str, style: str = "note") -> None:
        """Write *text* as lines of their own, whatever it is."""
        await trio.to_thread.run_sync(
            self._write, self._console, f"{text}\n", STYLES[style], abandon_on_cancel=True
        )

    @staticmethod
    def _write(console: Console, text: str, style: str) -> None:
        if style:
            console.print(Text(text, style), end="", soft_wrap=True)
        else:
            # As it is: the console would make spaces of tabs, which are code in some languages.
            console.file.write(text)
            console.file.flush()
