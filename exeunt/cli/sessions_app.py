"""The commands below `exeunt sessions` and their options. What they do is imported when they run."""

from pathlib import Path
from typing import Annotated

import typer

from exeunt.cli.running import run

app = typer.Typer(no_args_is_help=True, help="Look at stored sessions, move them, check them.")

Journal = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="URL",
        help="sqlite:///PATH or postgresql://... [dim]\\[default: that of exeunt chat][/dim]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")]
SessionId = Annotated[str, typer.Argument(metavar="ID", help="The session.")]


@app.command("list")
def list_(
    journal: Journal = None,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Of this tenant only.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the sessions, the one used last first."""
    from exeunt.cli.sessions.looking import list_sessions

    run(list_sessions, journal, tenant, limit, as_json)


@app.command()
def show(
    session_id: SessionId,
    journal: Journal = None,
    events: Annotated[int, typer.Option(min=0, metavar="N", help="Show the last N events.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a session: what the model sees, and the last events."""
    from exeunt.cli.sessions.looking import show_session

    run(show_session, journal, session_id, events, as_json)


@app.command()
def delete(
    session_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The sessions.")],
    journal: Journal = None,
) -> None:
    """Delete sessions, for good."""
    from exeunt.cli.sessions.looking import delete_sessions

    run(delete_sessions, journal, session_ids)


@app.command("export")
def export_(
    session_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="The sessions.")] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All sessions.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PATH", help="A new file.")] = None,
    journal: Journal = None,
) -> None:
    """Write sessions as JSON lines."""
    from exeunt.cli.sessions.transfer import export_sessions

    if bool(session_ids) == everything:
        typer.echo("exeunt sessions export: name sessions, or say --all", err=True)
        raise typer.Exit(2)
    run(export_sessions, journal, session_ids or [], everything, output)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="PATH", help="An export; - is the standard input.")],
    journal: Journal = None,
) -> None:
    """Read sessions that were exported.

    Each is taken whole or not at all.
    """
    from exeunt.cli.sessions.transfer import import_sessions

    run(import_sessions, journal, source)


@app.command()
def verify(journal: Journal = None, as_json: AsJson = False) -> None:
    """Read every log and name the sessions that are damaged.

    The status is 1 if there are any. Changes nothing.
    """
    from exeunt.cli.sessions.checking import verify_journal

    run(verify_journal, journal, as_json)


@app.command()
def repair(
    into: Annotated[Path, typer.Option("--into", metavar="PATH", help="The new journal, a file.")],
    journal: Journal = None,
) -> None:
    """Write what is whole of a SQLite journal into a new one.

    Stop what has it open first. The damaged journal stays as it is.
    """
    from exeunt.cli.sessions.checking import repair_journal

    run(repair_journal, journal, into)
