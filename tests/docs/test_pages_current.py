"""What the pages say of files, options and output is what there is now."""

import configparser
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import attrs
import pytest
import typer.main

from exeunt import build_options
from exeunt.actors.hooks import Hooks
from exeunt.cli.app import app
from exeunt.cli.examinations import extras, machine, versions
from exeunt.cli.findings import Finding
from tests.docs.documents import PAGES, ROOT, blocks, prose_of, table_under

DOCS = ROOT / "docs"
FOLDERS = "actors|supervisor|metrics|exeunt|tests|loadtests|examples|newsfragments"
PLACE = re.compile(rf"`((?:{FOLDERS})/(?:[\w/-]*/|[\w/-]+(?:\.py|\.md)?))`")
"""A folder or a file of ours; not what a program writes in a folder of that name."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_place_of_the_repository_that_a_page_names_exists(page: Path) -> None:
    assert [place for place in PLACE.findall(prose_of(page)) if not (ROOT / place).exists()] == []


def test_each_protocol_of_the_architecture_stands_where_it_says() -> None:
    rows = table_under(DOCS / "architecture.md", "Rooms and arrows")
    missing = [
        f"{name} in {row[1]}"
        for row in rows
        for name in row[0].split(", ")
        if f"class {name}(Protocol" not in (ROOT / row[1]).read_text(encoding="utf-8")
    ]
    assert missing == []
    assert {"Journal", "Store", "SessionLog"} <= {row[0] for row in rows}


def test_each_class_that_the_architecture_says_is_in_a_file_is_in_it() -> None:
    said = re.findall(r"`(\w+)` in `([\w/]+\.py)`", prose_of(DOCS / "architecture.md"))
    assert len(said) >= 4
    assert [
        (name, place)
        for name, place in said
        if f"class {name}" not in (ROOT / place).read_text(encoding="utf-8")
    ] == []


def test_each_option_of_a_session_stands_in_its_table() -> None:
    rows = table_under(DOCS / "sessions.md", "Creating")
    named = {name.strip() for row in rows for name in re.split(",| or ", row[0])}
    options = set(inspect.signature(build_options).parameters)
    hooks = {field.name for field in attrs.fields(Hooks)}  # told by `on_...`
    assert options - named == hooks
    assert named - options == {"session_id", "on_...", ""}


async def test_each_line_of_the_doctor_stands_in_its_page() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8").partition("## exeunt doctor")[2]
    found: list[Finding] = [*versions(), *extras(), *await machine()]
    assert [
        item.name for item in found if re.search(rf"^  \w+ +{item.name}  ", text, re.MULTILINE) is None
    ] == []


def test_the_pauses_of_the_collector_are_told_in_one_place() -> None:
    # Two places of a measurement are two measurements, sooner or later.
    assert re.search(r"\d ms", (ROOT / "exeunt" / "tuning.py").read_text(encoding="utf-8")) is None


def test_the_unit_of_systemd_starts_a_server_with_options_that_there_are() -> None:
    (unit,) = blocks("ini")
    parsed = configparser.ConfigParser(delimiters="=", interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit.text)
    _, command, *options = shlex.split(parsed["Service"]["ExecStart"])
    serve: Any = typer.main.get_command(app)
    known = {name for option in serve.commands[command].params for name in option.opts}
    given = {option for option in options if option.startswith("--")}
    assert given
    assert given <= known
