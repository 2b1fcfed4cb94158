"""`exeunt doctor`."""

import gc
import json
import sys
from importlib.metadata import PackageNotFoundError

import pytest
import trio

import exeunt
from exeunt.cli import doctor, examinations, self_test
from exeunt.testing.replies import Say, say
from tests.cli.programs import run


async def test_the_doctor_finds_this_machine_in_order() -> None:
    done = await run("doctor")
    assert done.returncode == 0
    assert "Exeunt works here." in done.stdout
    assert "self test" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "\x1b" not in done.stdout


async def test_the_doctor_speaks_json() -> None:
    done = await run("doctor", "--json")
    report = json.loads(done.stdout)
    assert report["works"] is True
    found = {finding["name"]: finding for finding in report["findings"]}
    assert {"Python", "trio", "attrs", "cattrs", "msgspec", "prometheus-client", "h11"} <= set(found)
    assert found["Python"]["value"].startswith(".".join(str(part) for part in sys.version_info[:3]))
    assert found["self test"]["state"] == "ok"
    assert {finding["state"] for finding in report["findings"]} <= {"ok", "note", "missing"}


async def test_a_broken_core_gives_status_1_and_says_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken() -> str:
        await trio.lowlevel.checkpoint()
        return "the reply was 'nothing'"

    monkeypatch.setattr(examinations, "run_self_test", broken)
    assert await doctor.run_doctor(as_json=False) == 1
    text = capsys.readouterr().out
    assert "the reply was 'nothing'" in text
    assert "Exeunt cannot run here." in text


@pytest.mark.parametrize(
    ("requirement", "value"),
    [("no-such-package-of-anybody>=1.0", "not installed"), ("trio>=9999", "is too old")],
)
def test_a_package_that_is_missing_or_too_old_is_broken(
    monkeypatch: pytest.MonkeyPatch, requirement: str, value: str
) -> None:
    def requires(_: str) -> list[str]:
        return [requirement, 'strange>=1; extra == "strange"']

    monkeypatch.setattr(examinations, "requires", requires)
    _, package = examinations.versions()
    assert package.state == "broken"
    assert value in package.value
    assert package.hint == f'pip install "{requirement}"'


def test_an_extra_that_is_missing_comes_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(examinations, "version", missing)
    openai = examinations.extras()[0]
    assert (openai.state, openai.hint) == ("missing", 'pip install "exeunt[openai]"')


def test_the_thresholds_of_the_collector_come_with_the_call_that_sets_them() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        finding = examinations.collector()
        assert (finding.state, finding.hint) == ("note", "exeunt.tune_garbage_collector()")
        exeunt.tune_garbage_collector()
        finding = examinations.collector()
        assert (finding.state, finding.hint) == ("ok", "in yours: exeunt.tune_garbage_collector()")
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("limit", "finding"),
    [
        (None, ("ok", "without limit", "")),
        (20_000, ("ok", "up to 20,000", "in yours: exeunt.allow_many_files()")),
        (
            1_024,
            (
                "note",
                "up to 1,024",
                "raise the hard limit to 4,096 or more (ulimit -Hn, LimitNOFILE= of systemd)",
            ),
        ),
    ],
)
def test_the_limit_of_open_files_comes_with_what_raises_it(
    limit: int | None, finding: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examinations, "most_files", lambda: limit)
    [found] = examinations.open_files()
    assert (found.state, found.value, found.hint) == finding


async def test_the_self_test_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await self_test.run_self_test() == ""

    def other(_: str) -> Say:
        return say("something else")

    monkeypatch.setattr(self_test, "say", other)
    assert await self_test.run_self_test() == "the reply was 'something else'"


async def test_the_self_test_survives_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no loop today")

    monkeypatch.setattr(self_test, "open_host", fails)
    assert await self_test.run_self_test() == "OSError: no loop today"
