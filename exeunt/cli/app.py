"""The commands and their options. What they do is imported when they run."""

import gc
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from exeunt.cli import GC_THRESHOLDS

MOST_SESSIONS = 100_000
"""More than one process can serve in the time that the demo may take."""

app = typer.Typer(
    name="exeunt",
    help="A session host for agent backends: thousands of supervised sessions in one process.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"exeunt {version('exeunt')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""


app.registered_callback.help = app.info.help if app.registered_callback else None
