"""`exeunt demo`: in a pipe, at a terminal, stopped, and with a promise broken."""

import io
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
import trio
from rich.console import Console

import exeunt
from exeunt import Session, open_host
from exeunt.demo import DemoOptions, run_demo
from exeunt.demo.acts import ACTS, LAST_ACT, PLAYED, SEED, SUMMARY_SEED, Way
from exeunt.demo.performance import Performance
from exeunt.demo.screen import print_report
from exeunt.demo.second_act import judged, play_second_act, till_of
from exeunt.demo.verdict import judge
from tests.cli.programs import EXEUNT, LONGEST, VIRTUAL, at_a_terminal, environment, run

REASONS = ("completed", "terminal_tool", "context_cleared", "aborted", "limit", "error", "interrupted")
IN_MEMORY = ("--journal", "memory:")
"""Virtual time jumps over the work of threads and disks."""
OUTCOMES = ("success", "failure", "invalid", "denied", "rejected", "timeout", "cancelled")


def count(text: str, name: str) -> int:
    """The number behind *name* in a report."""
    match = re.search(rf"(?<!\S){re.escape(name)} +([\d,]+)", text)
    assert match is not None, f"{name} is not in\n{text}"
    return int(match[1].replace(",", ""))


async def scrape(address: str) -> str:
    def read() -> str:
        with urllib.request.urlopen(address, timeout=10) as response:
            return str(response.read(), "utf-8")

    return await trio.to_thread.run_sync(read)


async def test_in_a_pipe_the_demo_prints_lines_and_a_report_and_leaves() -> None:
    done = await run("demo", "--sessions", "60", "--port", "0", *IN_MEMORY, program=VIRTUAL)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert re.search(r"^  5\.0 s +\d+ %  [\d,]+ turns", text, re.MULTILINE)
    assert "BROKEN" not in text
    assert text.count("kept ") == 7


async def test_everything_that_the_demo_promises_to_show_happens_in_it() -> None:
    done = await run("demo", "--sessions", "60", "--port", "0", *IN_MEMORY, program=VIRTUAL)
    for name in (*REASONS, *OUTCOMES, "committed", "rolled_back", "refused", "steered"):
        assert count(done.stdout, name) > 0, name
    for name in ("empty_prompt", "already_staged", "no_tool_call"):
        assert count(done.stdout, name) > 0, name
    assert count(done.stdout, "restarts") == count(done.stdout, "crashes injected") == 2
    assert count(done.stdout, "lost") == 0
    accepted, dropped = count(done.stdout, "accepted"), count(done.stdout, "dropped, aborted")
    assert accepted == count(done.stdout, "answered") + dropped


async def test_at_a_terminal_the_demo_draws_and_serves_metrics_until_ctrl_c() -> None:
    async with at_a_terminal("demo", "-n", "20", "--port", "0", *IN_MEMORY, program=VIRTUAL) as terminal:
        await terminal.expect("Exeunt: a demo")
        await terminal.expect("at rest")
        await terminal.expect("until Ctrl-C.")
        assert "\x1b[?25l" in terminal.raw, "the cursor is hidden while the view lives"
        assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")
        [address] = set(re.findall(r"http://[\d.]+:\d+/metrics", terminal.text))
        scraped = await trio.to_thread.run_sync(
            lambda: urllib.request.urlopen(address, timeout=10).read().decode()
        )
        assert re.search(
            r'^exeunt_turn_terminations_total\{reason="interrupted"\} 2\.0$', scraped, re.MULTILINE
        )
        assert re.search(r'^exeunt_sessions\{state="live"\} 20\.0$', scraped, re.MULTILINE)
        await terminal.type("\x03")
        assert await terminal.ended() == 0


async def test_with_exit_a_demo_at_a_terminal_leaves_at_once() -> None:
    async with at_a_terminal(
        "demo", "-n", "3", "--port", "0", "--exit", *IN_MEMORY, program=VIRTUAL
    ) as terminal:
        assert await terminal.ended() == 0
        assert "until Ctrl-C" not in terminal.text


async def test_a_terminal_that_cannot_draw_gets_lines() -> None:
    arguments = ("demo", "-n", "3", "--port", "0", "--exit", *IN_MEMORY)
    async with at_a_terminal(*arguments, program=VIRTUAL, TERM="dumb") as terminal:
        assert await terminal.ended() == 0
        assert "3 sessions at once" in terminal.text
        assert "\x1b" not in terminal.raw


async def test_colours_can_be_switched_off() -> None:
    arguments = ("demo", "-n", "3", "--port", "0", "--exit", *IN_MEMORY)
    async with at_a_terminal(*arguments, program=VIRTUAL, NO_COLOR="1") as terminal:
        assert await terminal.ended() == 0
        assert not re.search(r"\x1b\[[\d;]*3\dm", terminal.raw)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_demo_with_a_report_of_what_there_was(signum: signal.Signals) -> None:
    command = [*EXEUNT, "demo", "-n", "20", "--port", "0"]
    with trio.fail_after(LONGEST):
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, env=environment())
        assert process.stdout is not None
        async with process.stdout:
            text = await process.stdout.receive_some()
            address = text.decode().split()[-1]
            while 'reason="completed"' not in await scrape(address):
                pass
            process.send_signal(signum)
            async for data in process.stdout:
                text += data
        assert await process.wait() == 128 + signum
    assert f"Ended by {signum.name}." in text.decode()
    assert "still under way" in text.decode()
    assert count(text.decode(), "lost") == 0
    assert b"BROKEN" not in text


async def test_ctrl_c_leaves_the_terminal_with_its_cursor() -> None:
    async with at_a_terminal("demo", "-n", "20", "--port", "0") as terminal:
        await terminal.expect("at rest")
        await terminal.type("\x03")
        assert await terminal.ended() == 130
        assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")
        assert "Ended by SIGINT." in terminal.text


async def test_a_port_that_is_taken_is_named_before_anything_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await run("demo", "-n", "3", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("exeunt: cannot serve metrics")
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_reader_that_goes_away_ends_the_demo_without_a_traceback() -> None:
    command = [*VIRTUAL, "demo", "-n", "5", "--port", "0", *IN_MEMORY]
    with trio.fail_after(LONGEST):
        process = await trio.lowlevel.open_process(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        assert process.stdout is not None
        assert process.stderr is not None
        async with process.stdout, process.stderr:
            await process.stdout.receive_some()
            await process.stdout.aclose()
            errors = b"".join([data async for data in process.stderr])
        assert await process.wait() == 1
    assert errors == b""


async def test_a_lost_message_is_found_and_gives_status_1(
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    play = Performance.run

    async def lose_one(self: Performance) -> None:
        await play(self)
        self.tally.accepted += 1

    monkeypatch.setattr(Performance, "run", lose_one)
    output = io.StringIO()
    chosen = DemoOptions(sessions=20, port=0, journal="memory:", leave=True)
    status = await run_demo(chosen, Console(file=output, width=80))
    text = output.getvalue()
    assert status == 1
    assert "BROKEN  each accepted message ended, exactly once" in text
    assert count(text, "lost") == 1
    assert "injected by the demo" in capsys.readouterr().err, "what the host had logged is shown now"


async def test_a_run_that_does_not_end_is_a_broken_promise(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: Session, *arguments: object, **options: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Session, "send_and_wait", never)
    async with open_host() as host:
        performance = Performance(host, 5, 1)
        await performance.run()
        promises = await judge(performance)
    broken = [promise.text for promise in promises if not promise.kept]
    assert broken == ["all guests left within 300 s"]
    console = Console(file=io.StringIO(), width=80)
    print_report(console, performance, promises)


def found(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


async def test_the_logs_of_a_demo_are_in_a_temporary_file_that_goes_with_it(tmp_path: Path) -> None:
    command = [*EXEUNT, "demo", "-n", "20", "--port", "0"]
    with trio.fail_after(LONGEST):
        process = await trio.lowlevel.open_process(
            command, stdout=subprocess.PIPE, env=environment(TMPDIR=str(tmp_path))
        )
        assert process.stdout is not None
        async with process.stdout:
            await process.stdout.receive_some()
            assert found(tmp_path, "exeunt-demo-*/demo.sqlite3")
            process.send_signal(signal.SIGINT)
            async for _ in process.stdout:
                pass
        assert await process.wait() == 128 + signal.SIGINT
    assert found(tmp_path, "exeunt-demo-*") == []


# --- The second act ------------------------------------------------------------------------------------------


async def test_a_killed_worker_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    with trio.fail_after(LONGEST):
        act = await play_second_act(tmp_path)
    assert (act.lost, act.twice, act.problem) == (0, 0, "")
    assert act.kept
    assert act.acknowledged >= 200


async def test_a_payment_that_was_made_twice_is_found(tmp_path: Path) -> None:
    with trio.fail_after(LONGEST):
        assert (await play_second_act(tmp_path)).kept
    till = till_of(tmp_path)
    payments = till.read_text().splitlines()
    till.write_text("\n".join([*payments, payments[0]]))
    act = await judged(tmp_path, [("worker-00", "a message that nobody has seen")])
    assert (act.lost, act.twice, act.kept) == (1, 1, False)
    async with open_host() as host:
        promises = await judge(Performance(host, 0, 1), act, stopped=True)
    [broken] = [promise for promise in promises if not promise.kept]
    assert broken.details == "of 1 messages 1 were lost; 1 ran twice"


async def test_a_worker_that_ends_by_itself_is_a_broken_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exeunt.demo.second_act.WORKER", "exeunt.demo.nothing")
    with trio.fail_after(LONGEST):
        act = await play_second_act(tmp_path)
    assert not act.kept
    assert "ended before" in act.details


def test_each_act_is_found_by_its_words() -> None:
    assert len({act.prompt for act in ACTS}) == len(ACTS)
    assert {act.way for act in PLAYED} == set(Way)
    silent = [
        act.prompt
        for act in ACTS
        if not act.replies and act.way not in (Way.CLEAR_AS_HOST, Way.CLEAR_OUTSIDE)
    ]
    assert silent == []
    assert {SEED, SUMMARY_SEED, LAST_ACT.prompt} == {act.prompt for act in ACTS if not act.weight}


def test_the_package_reaches_the_demo_in_loadtests_by_a_relative_link() -> None:
    link = Path(exeunt.__file__).parent / "demo"
    assert link.readlink() == Path("..", "loadtests", "demo")
