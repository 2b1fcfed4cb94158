"""What the pages say of names, defaults, metrics and each other is so."""

import importlib
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

import exeunt
from exeunt.actors.hooks import Hooks
from exeunt.actors.permissions import answer_of_handler
from exeunt.metrics import Metrics
from exeunt.models.http import Timeouts
from exeunt.telemetry import names
from exeunt.testing import __all__ as testing_names
from tests.docs.documents import PAGES, ROOT, blocks_of, prose_of, table_under

DOCS = ROOT / "docs"
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_NAME = re.compile(r"`(exeunt(?:\.[A-Za-z_]\w*)+)")


def anchors_of(page: Path) -> set[str]:
    """The places in a page that a link may name, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for target, anchor in _LINK.findall(prose_of(page)):
        place = (page.parent / target).resolve() if target else page
        if not place.exists() or (anchor and anchor not in anchors_of(place)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


def test_the_index_leads_to_each_page() -> None:
    linked = {target for target, _ in _LINK.findall(prose_of(DOCS / "README.md"))}
    assert sorted(page.name for page in DOCS.glob("*.md") if page.name not in {*linked, "README.md"}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_name_of_the_package_in_a_page_exists(page: Path) -> None:
    known = span_names()
    assert [name for name in _NAME.findall(prose_of(page)) if name not in known and not _exists(name)] == []


def test_each_name_of_ours_in_a_trace_stands_in_its_page() -> None:
    text = prose_of(DOCS / "telemetry.md")
    assert sorted(name for name in span_names() if f"`{name}`" not in text) == []


def span_names() -> set[str]:
    """The attributes and events of spans that only this host has."""
    return {name for name in vars(names).values() if isinstance(name, str) and name.startswith("exeunt.")} - {
        names.__name__,
        names.__package__,
    }


def test_the_first_program_of_the_readme_is_the_first_of_its_blocks_in_python() -> None:
    first = next(block for block in blocks_of(ROOT / "README.md") if block.info.startswith("python"))
    assert first.info == "python"
    assert "clear_context" in first.text


def test_each_public_error_of_a_session_stands_in_the_pages() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    errors = [name for name in exeunt.__all__ if _is_error(getattr(exeunt, name), exeunt.SessionError)]
    bases = {"SessionError", "TurnError", "ClearRefused"}
    assert [name for name in errors if name not in bases and name not in text] == []


def test_every_metric_stands_in_its_table_with_its_labels() -> None:
    documented = {row[0]: (row[1], tuple(row[2].split(", ")) if row[2] else ()) for row in metric_rows()}
    assert documented == _registered()


def test_every_value_of_a_label_stands_beside_its_metric() -> None:
    said = {row[0]: " ".join(row) for row in metric_rows()}
    missing = [
        f"{name}{{{label}={value}}}"
        for name, label, value in _label_values()
        if value != "other" and re.search(rf"\b{value}\b", said[name]) is None
    ]
    assert missing == []


def metric_rows() -> list[list[str]]:
    """The table of metrics."""
    return table_under(DOCS / "metrics.md", "Every metric")


@pytest.mark.parametrize(
    ("page", "heading", "options"),
    [
        ("sessions.md", "Waits", exeunt.Waits),
        ("sessions.md", "Limits of a turn", exeunt.Limits),
        ("models.md", "Errors and retries", exeunt.RetryPolicy),
    ],
)
def test_the_defaults_of_a_table_are_those_of_the_code(page: str, heading: str, options: Any) -> None:
    rows = _rows_with_defaults(DOCS / page, heading)
    assert rows == {field.name: str(field.default) for field in attrs.fields(options)}


def test_the_timeouts_of_the_model_door_are_those_of_the_code() -> None:
    rows = _rows_with_defaults(DOCS / "models.md", "An OpenAI-compatible API", "Timeouts")
    assert rows == {field.name: f"{field.default:g}" for field in attrs.fields(Timeouts)}


def test_every_kind_of_model_error_stands_in_its_table() -> None:
    rows = table_under(DOCS / "models.md", "Errors and retries")
    assert [row[0] for row in rows] == [str(kind) for kind in exeunt.ModelErrorKind]


def test_every_outcome_of_a_call_stands_in_its_table() -> None:
    rows = _rows_with_defaults(DOCS / "tools.md", "Results and outcomes")
    assert list(rows) == [str(outcome) for outcome in exeunt.Outcome]


def test_every_reason_of_a_turns_end_stands_in_its_table() -> None:
    rows = table_under(DOCS / "sessions.md", "Why turns end")
    assert [row[0] for row in rows] == [str(reason) for reason in exeunt.TurnEndReason]


def test_every_hook_stands_in_its_table() -> None:
    rows = table_under(DOCS / "sessions.md", "Hooks")
    assert [row[0] for row in rows] == [field.name for field in attrs.fields(Hooks)]


def test_every_kind_of_a_permission_in_the_table_is_a_decision() -> None:
    kinds = [
        kind
        for row in table_under(DOCS / "sessions.md", "Permissions")
        for kind in row[1].split(", ")
        if kind
    ]
    assert len([answer_of_handler(kind) for kind in kinds]) == 6


def test_every_double_of_the_test_kit_stands_in_the_pages() -> None:
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    unsaid = {"RecordedRequest", "Reply", "Traced", "describe_messages", "schedule_seed"}
    assert [name for name in testing_names if name not in unsaid and name not in text] == []


def _exists(name: str) -> bool:
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        try:
            return hasattr(importlib.import_module(module), last)
        except ImportError:
            owner_module, _, owner = module.rpartition(".")
            return hasattr(getattr(importlib.import_module(owner_module), owner), last)
    return True


def _is_error(thing: object, base: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


def _rows_with_defaults(page: Path, heading: str, first_column: str = "") -> dict[str, str]:
    """The first two columns of the table under *heading* that has defaults, or begins with *first_column*."""
    section = re.split(rf"^#+ {re.escape(heading)}$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    section = re.split(r"^#+ ", section, flags=re.MULTILINE)[0].replace("`", "")
    wanted = first_column or "(?:field|limit|outcome)"
    table = re.search(rf"^\| {wanted} \|.*\n\|[- |]+\|\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert table is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]
    return {row[0]: row[1] for row in cells}


def _registered() -> dict[str, tuple[str, tuple[str, ...]]]:
    metrics = Metrics()
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for family in metrics._collector.describe():  # pyright: ignore[reportPrivateUsage]
        name = family.name + ("_total" if family.type == "counter" else "")
        found[name] = (family.type, tuple(getattr(family, "_labelnames", ())))
    return found


def _label_values() -> set[tuple[str, str, str]]:
    return {
        (family.name + ("_total" if family.type == "counter" else ""), label, value)
        for family in Metrics()._collector.describe()  # pyright: ignore[reportPrivateUsage]
        if family.type != "histogram"
        for sample in family.samples
        for label, value in sample.labels.items()
        if label not in ("tool", "terminal")
    }
