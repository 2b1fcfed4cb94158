"""Variables of OpenTelemetry that make no sense keep a server from starting."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from exeunt import InvalidConfiguration
from exeunt.cli.serve.telemetry import TraceOptions, trace_options
from tests.cli.programs import run


def options(*files: Path, **environ: str) -> TraceOptions | None:
    return trace_options({"COPILOT_OTEL_ENABLED": "true", **environ}, file=files[0] if files else None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_TRACES_SAMPLER", "sometimes", "is one of always_on, always_off, traceidratio, parentbased_"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-4", "must be a whole number, not '-4'"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "long", "must be a whole number, not 'long'"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=1,nothing", "with commas between; number 2 is not"),
        ("OTEL_RESOURCE_ATTRIBUTES", "=1", "number 1 is not"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "is a time in seconds above 0, not 'soon'"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "above 0, not '0'"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "inf", "above 0, not 'inf'"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "is one of none, gzip, deflate, not 'zip'"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere", "there is no file '/nowhere' that could be read"),
        ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/", "there is no file '/'"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"^{name}.*{re.escape(said)}"):
        options(**{name: value})


@pytest.mark.parametrize("headers", ["sk-secret", "a=1,sk-secret", "a b=sk-secret"])
def test_a_header_that_is_none_is_not_repeated(headers: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"OTEL_EXPORTER_OTLP_HEADERS is key=value") as refused:
        options(OTEL_EXPORTER_OTLP_HEADERS=headers)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("share", ["half", "1.5", "-0.1", "nan"])
def test_a_share_of_traces_is_one_from_0_to_1(share: str) -> None:
    with pytest.raises(InvalidConfiguration, match="OTEL_TRACES_SAMPLER_ARG is a share from 0 to 1, not"):
        options(OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG=share)
    assert options(OTEL_TRACES_SAMPLER="always_on", OTEL_TRACES_SAMPLER_ARG=share) is not None


def test_what_makes_sense_is_taken(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("")
    assert options(
        OTEL_TRACES_SAMPLER="ParentBased_TraceIdRatio",
        OTEL_TRACES_SAMPLER_ARG="0.25",
        OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="0",
        OTEL_SPAN_EVENT_COUNT_LIMIT="",
        OTEL_RESOURCE_ATTRIBUTES="a=1, b=2,",
        OTEL_EXPORTER_OTLP_TIMEOUT="2.5",
        OTEL_EXPORTER_OTLP_COMPRESSION="GZIP",
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20a=b, x-tenant=ada",
        OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate),
    )


def test_what_is_said_of_a_collector_is_of_no_matter_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    assert options(path, OTEL_EXPORTER_OTLP_COMPRESSION="zip") == TraceOptions(file=path, where=str(path))


def test_without_traces_nobody_looks_at_the_variables() -> None:
    assert trace_options({"OTEL_TRACES_SAMPLER": "sometimes"}) is None
    assert trace_options({"OTEL_TRACES_SAMPLER": "sometimes", "OTEL_SDK_DISABLED": "true"}) is None


@pytest.mark.parametrize("limit", ["OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"])
async def test_a_server_with_such_a_variable_says_one_line(limit: str) -> None:
    variables: dict[str, Any] = {"COPILOT_OTEL_ENABLED": "true", limit: "x"}
    done = await run("serve", "--port", "0", **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"exeunt serve: {limit} must be a whole number, not 'x'\n"


def test_a_file_that_no_line_could_be_written_to_is_refused_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, why in (
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "traces", f"there is no folder '{tmp_path / 'none'}'"),
    ):
        with pytest.raises(InvalidConfiguration, match=re.escape(f"traces cannot go to '{path}': {why}")):
            options(path)
    mine = tmp_path / "mine"
    mine.write_text("")
    asked: list[tuple[Path, int]] = []

    def refuse(path: Path, mode: int) -> bool:
        asked.append((path, mode))
        return False

    monkeypatch.setattr(os, "access", refuse)
    with pytest.raises(InvalidConfiguration, match="it may not be written to"):
        options(mine)
    with pytest.raises(InvalidConfiguration, match="nothing may be made in"):
        options(tmp_path / "traces")
    assert asked == [(mine, os.W_OK), (tmp_path, os.W_OK | os.X_OK)]
    assert list(tmp_path.iterdir()) == [mine]


def test_content_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="say where they go, by --otel-endpoint or --otel-file"):
        trace_options({}, capture_content=True)
    assert trace_options({"OTEL_SDK_DISABLED": "true"}, capture_content=True) is None
