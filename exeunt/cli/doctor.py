"""`exeunt doctor`: says what is installed, and what works on this machine.

Reading order: `findings` (the values), `examinations` (what is looked at), `self_test`, then this.
"""

import sys
from importlib.metadata import version
from itertools import groupby

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from exeunt.cli.examinations import extras, layout, machine, self_test, versions
from exeunt.cli.findings import Finding, Report

STYLES = {"ok": "green", "note": "yellow", "missing": "dim", "broken": "bold red"}


async def run_doctor(as_json: bool) -> int:
    """Print what is found; return 1 if something that Exeunt needs is broken, else 0."""
    findings = [*versions(), *extras(), layout(), *await machine(), await self_test()]
    works = all(finding.state != "broken" for finding in findings)
    report = Report(version("exeunt"), works, findings)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    else:
        _print(report)
    return 0 if works else 1


def _print(report: Report) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]Exeunt {report.version}[/bold]")
    for section, findings in groupby(report.findings, key=lambda finding: finding.section):
        console.print(f"\n[bold cyan]{section}[/bold cyan]")
        console.print(_table(list(findings)))
    works = (
        "[green]Exeunt works here.[/green]"
        if report.works
        else "[bold red]Exeunt cannot run here.[/bold red]"
    )
    console.print(f"\n{works}")


def _table(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=9)
    table.add_column(min_width=17, no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        value = Text(finding.value)
        if finding.hint:
            value.append(f"\n{finding.hint}", "italic")
        table.add_row(Text(f"  {finding.state}", STYLES[finding.state]), finding.name, value)
    return table
