"""The page that lists methods and events lists all of them, and says what the code does."""

import re

import pytest

from exeunt.wire.events.outside import OUTSIDE
from exeunt.wire.table import METHODS
from tests.docs.documents import ROOT
from tests.interop.schemas import schema
from tests.interop.test_schema import NOT_IN_THE_SCHEMA, methods_of

pytestmark = pytest.mark.timeout(600)  # the schemas are downloaded by the first test that needs them

PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")


def rows(part: str) -> dict[str, str]:
    """What the tables of a part of the page say, by name. A name stands in one row only."""
    found: dict[str, str] = {}
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or cells[1] not in ("yes", "partly", "no"):
            continue
        for name in re.findall(r"`([^`]+)`", cells[0]):
            assert name not in found, f"{name} stands in two rows"
            found[name] = cells[1]
        if cells[1] != "yes":
            assert cells[2], f"{line} says neither what nor why"
    return found


def test_each_method_of_the_schema_stands_in_the_page_and_is_served_as_it_says() -> None:
    api = schema("api")
    part = PAGE.split("\n## Methods\n")[1].split("\n### What the server asks of a client\n")[0]
    said = rows(part)
    known = methods_of(api["server"]) | methods_of(api["session"]) | NOT_IN_THE_SCHEMA | {"$/cancelRequest"}
    assert sorted(known ^ set(said)) == []
    served = {name for name, answer in said.items() if answer != "no"} - {"$/cancelRequest"}
    assert sorted(served ^ set(METHODS)) == []


def test_each_method_of_clients_stands_in_the_page() -> None:
    api = schema("api")
    part = PAGE.split("\n### What the server asks of a client\n")[1].split("\n## Events\n")[0]
    known = methods_of(api["clientSession"]) | methods_of(api["clientGlobal"])
    assert sorted(known - set(rows(part))) == []


def test_each_event_of_the_schema_stands_in_the_page() -> None:
    definitions = schema("session-events")["definitions"]
    known = {
        definitions[one["$ref"].rpartition("/")[2]]["properties"]["type"]["const"]
        for one in definitions["SessionEvent"]["anyOf"]
    }
    part = PAGE.split("\n## Events\n")[1]
    assert sorted(known ^ set(rows(part))) == []


def test_the_events_of_the_host_itself_stand_in_the_page() -> None:
    last = PAGE.split("\nEvents of the host that the protocol does not have")[1]
    assert [kind for kind in sorted(OUTSIDE) if f"`{kind}`" not in last] == []
