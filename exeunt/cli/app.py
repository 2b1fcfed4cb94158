"""The commands and their options. What they do is imported when they run."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from exeunt.cli import sessions_app
from exeunt.cli.given import default
from exeunt.cli.running import WRONG_USAGE, run
from exeunt.cli.serve_command import serve

MOST_SESSIONS = 100_000
"""More than the memory of most machines holds together with their events, which the report is made of."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(sessions_app.app, name="sessions")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"exeunt {version('exeunt')}")
        raise typer.Exit


@app.callback()
def exeunt(
    _: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """A session host for agent backends: thousands of supervised sessions in one process."""


@app.command()
def demo(
    sessions: Annotated[
        int, typer.Option("--sessions", "-n", min=1, max=MOST_SESSIONS, metavar="N", help="Sessions at once.")
    ] = 2_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Another number, another evening.")] = 1,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="N", help=f"Port for the metrics. {default('9464, or a free one')}"
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"Where the logs go. {default('SQLite, a temporary file')}"),
    ] = None,
    leave: Annotated[bool, typer.Option("--exit", metavar="", help="Leave after the report.")] = False,
) -> None:
    """See a host at work; needs no model, no key and no network.

    Thousands of sessions at once talk with a scripted model.
    Tools succeed, fail, time out and are denied; contexts are cleared;
    turns are steered and aborted; two actors crash. In a second act a
    process with sessions of its own is killed, and another takes them up.

    After half a minute a report says how it ended and whether each promise
    was kept (status 1 if not). On a terminal, the metrics can then be scraped
    until Ctrl-C.
    """
    from rich.console import Console

    from exeunt.demo import DemoOptions, run_demo

    chosen = DemoOptions(sessions=sessions, seed=seed, port=port, journal=journal, leave=leave)
    run(run_demo, chosen, Console())


_MODEL = "Which model"
_KEPT = "Which session"


@app.command()
def chat(
    local: Annotated[
        bool,
        typer.Option("--local", metavar="", help="A small model on this machine.", rich_help_panel=_MODEL),
    ] = False,
    gguf: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The model in this GGUF file.", rich_help_panel=_MODEL)
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help=f"What the API speaks: openai or anthropic. {default('openai')}",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    wire_api: Annotated[
        str | None,
        typer.Option(
            metavar="API",
            help=f"Of openai: completions or responses. {default('completions')}",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the API is, such as https://api.openai.com/v1.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model at that API.", rich_help_panel=_MODEL)
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="VAR",
            help=f"Variable with the key. {default('EXEUNT_API_KEY, then that of the maker')}",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="The system message.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Go on with this session.", rich_help_panel=_KEPT),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"Where sessions are kept; memory: keeps none. {default('a file of yours')}",
            rich_help_panel=_KEPT,
        ),
    ] = None,
) -> None:
    """Talk with a model.

    Choose one: --local, --gguf PATH, or --base-url URL --model NAME.

    Each line is a message; one that is typed during an answer steers it.
    /clear PROMPT starts a new context, /help lists the other commands.
    Ctrl-C aborts the answer, a second one leaves.

    Sessions are kept, and can be taken up again: exeunt sessions lists them.

    Lines may also come through a pipe: the answers go to the standard output,
    and the status is 1 if a message got none.
    """
    from exeunt.cli.chat import WrongChoice, choose_model, run_chat

    try:
        source = choose_model(
            local=local,
            gguf=gguf,
            provider=provider,
            wire_api=wire_api,
            base_url=base_url,
            model=model,
            api_key_env=api_key_env,
        )
    except WrongChoice as wrong:
        typer.echo(f"exeunt chat: {wrong}", err=True)
        raise typer.Exit(WRONG_USAGE) from None
    run(run_chat, source, system, journal, resume)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")] = False,
) -> None:
    """Say what is installed and what works here.

    The status is 1 if Exeunt cannot run.
    """
    from exeunt.cli.doctor import run_doctor

    run(run_doctor, as_json)


app.command()(serve)
