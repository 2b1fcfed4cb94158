"""Whether and where a server sends its traces."""

import importlib.util
import itertools
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exeunt import InvalidConfiguration
from exeunt.cli.serve.telemetry import TraceOptions, open_traces, trace_options
from exeunt.wire.framing import FrameReader, frame
from tests.cli.programs import LONGEST, environment


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"COPILOT_OTEL_ENABLED": "false"}, None),
        ({"COPILOT_OTEL_ENABLED": "0", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:4318"}, None),
        ({"COPILOT_OTEL_ENABLED": "true", "OTEL_SDK_DISABLED": "true"}, None),
        ({"COPILOT_OTEL_ENABLED": "true"}, TraceOptions()),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:4318"},
            TraceOptions(where="http://here:4318"),
        ),
        (
            {
                "COPILOT_OTEL_ENABLED": "TRUE",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://all:4318",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:4318/v1/traces",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
                "OTEL_BSP_MAX_QUEUE_SIZE": "100",
            },
            TraceOptions(where="http://traces:4318/v1/traces", protocol="http/json", most_waiting=100),
        ),
        (
            {"COPILOT_OTEL_FILE_EXPORTER_PATH": "t.jsonl", "COPILOT_OTEL_SOURCE_NAME": "theatre"},
            TraceOptions(file=Path("t.jsonl"), where="t.jsonl", source_name="theatre"),
        ),
        (
            {
                "COPILOT_OTEL_ENABLED": "true",
                "COPILOT_OTEL_EXPORTER_TYPE": "otlp-http",
                "COPILOT_OTEL_FILE_EXPORTER_PATH": "t.jsonl",
            },
            TraceOptions(),
        ),
    ],
)
def test_what_the_environment_says(environ: dict[str, str], expected: TraceOptions | None) -> None:
    assert trace_options(environ) == expected


@pytest.mark.parametrize(
    ("value", "captured"),
    [
        ("true", True),
        ("True", True),
        ("1", True),
        ("SPAN_ONLY", True),
        ("SPAN_AND_EVENT", True),
        ("EVENT_ONLY", False),
        ("NO_CONTENT", False),
        ("false", False),
        ("", False),
    ],
)
def test_content_is_captured_where_the_environment_says_so(value: str, captured: bool) -> None:
    environ = {
        "COPILOT_OTEL_ENABLED": "true",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": value,
    }
    options = trace_options(environ)
    assert options is not None
    assert options.capture_content is captured


def test_who_may_in_at_a_collector_stands_in_no_log() -> None:
    options = trace_options({}, endpoint="https://ada:secret@collector:4318/otlp?key=secret")
    assert options is not None
    assert options.where == "https://collector:4318/otlp"
    with pytest.raises(InvalidConfiguration) as refused:
        trace_options({}, endpoint="ftp://ada:secret@collector")
    assert "secret" not in str(refused.value)


def test_an_option_wins_over_the_environment() -> None:
    environ = {
        "COPILOT_OTEL_ENABLED": "false",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://there:4318",
        "COPILOT_OTEL_EXPORTER_TYPE": "file",
    }
    assert trace_options(environ, endpoint="https://here/", capture_content=True) == TraceOptions(
        url="https://here/v1/traces", where="https://here/", capture_content=True
    )
    assert trace_options(environ, file=Path("t")) == TraceOptions(file=Path("t"), where="t")


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"COPILOT_OTEL_ENABLED": "maybe"}, "COPILOT_OTEL_ENABLED is true or false, not 'maybe'"),
        (
            {"COPILOT_OTEL_EXPORTER_TYPE": "smoke"},
            "COPILOT_OTEL_EXPORTER_TYPE is file or otlp-http, not 'smoke'",
        ),
        ({"COPILOT_OTEL_EXPORTER_TYPE": "file"}, "set COPILOT_OTEL_FILE_EXPORTER_PATH"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf or http/json, not 'grpc'"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "here:4318"},
            "a URL such as http://localhost:4318, not 'here:4318'",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[here"}, "a URL such as"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "OTEL_BSP_MAX_QUEUE_SIZE must be a whole number above 0"),
        (
            {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "some"},
            "CAPTURE_MESSAGE_CONTENT is true or false, not 'some'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        trace_options({"COPILOT_OTEL_ENABLED": "true", **environ})
    assert said in str(refused.value)


def _find_nothing(name: str) -> None:
    """Stand for a Python without the extra."""


def test_without_the_extra_who_asks_for_traces_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", _find_nothing)
    with pytest.raises(InvalidConfiguration, match=r'pip install "exeunt\[otel\]"'):
        trace_options({"COPILOT_OTEL_ENABLED": "true"})
    with caplog.at_level(logging.WARNING, "exeunt.telemetry"):
        assert trace_options({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:4318"}) is None
    assert 'pip install "exeunt[otel]"' in caplog.text


async def test_where_no_traces_are_wanted_nothing_of_opentelemetry_is_imported() -> None:
    program = (
        "import sys, trio\n"
        "from exeunt.cli.serve import runtime, serving, telemetry\n"
        "async def main():\n"
        "    async with telemetry.open_traces(telemetry.trace_options({})) as none:\n"
        "        assert none is None\n"
        "trio.run(main)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: ASYNC221
    assert done.stdout.strip() == "[]"
    async with open_traces(None) as nothing:
        assert nothing is None


RUNTIME = (sys.executable, "-c", "from exeunt.cli.serve.runtime import main; main()", "--stdio")


class Conversation:
    """A client on the standard streams of a program: asks, and waits for the answer."""

    def __init__(self, program: "subprocess.Popen[bytes]") -> None:
        assert program.stdin is not None
        assert program.stdout is not None
        self._to, self._from = program.stdin, program.stdout.fileno()
        self._reader = FrameReader(1024 * 1024)
        self._keys = itertools.count(1)

    def ask(self, method: str, **params: Any) -> None:
        """Send a request, and read until its answer is there, which is none of an error."""
        key = next(self._keys)
        request = {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
        self._to.write(frame(json.dumps(request).encode()))
        self._to.flush()
        while True:
            for body in self._reader.feed(os.read(self._from, 65536)):
                message = json.loads(body)
                if message.get("id") == key:
                    assert "error" not in message
                    return


def test_the_runtime_that_a_client_starts_writes_its_last_span_before_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    variables = {
        "COPILOT_OTEL_ENABLED": "true",
        "COPILOT_OTEL_EXPORTER_TYPE": "file",
        "COPILOT_OTEL_FILE_EXPORTER_PATH": str(path),
        "COPILOT_OTEL_SOURCE_NAME": "theatre",
    }
    with subprocess.Popen(
        RUNTIME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(**variables)
    ) as program:
        client = Conversation(program)
        client.ask("connect")
        client.ask("session.create", sessionId="s")
        # Without a model the turn is an error, which has a span as any.
        client.ask("session.send", sessionId="s", prompt="go", wait=True)
        client.ask("runtime.shutdown")
        assert program.wait(LONGEST) == 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    turn = lines[-1]
    assert (turn["name"], turn["attributes"]["exeunt.turn.reason"]) == ("invoke_agent", "error")
    assert turn["status"]["code"] == 2
    assert turn["instrumentationScope"]["name"] == "theatre"


def test_a_wrong_environment_ends_the_runtime_with_a_word() -> None:
    variables = {"COPILOT_OTEL_ENABLED": "true", "COPILOT_OTEL_EXPORTER_TYPE": "smoke"}
    done = subprocess.run(
        RUNTIME, input=b"", capture_output=True, env=environment(**variables), timeout=LONGEST, check=False
    )
    assert done.returncode == 1
    assert b"COPILOT_OTEL_EXPORTER_TYPE is file or otlp-http" in done.stderr
