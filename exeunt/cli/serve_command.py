"""`exeunt serve` and its options. What it does is imported when it runs."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from exeunt.cli import given
from exeunt.cli.given import default
from exeunt.cli.running import WRONG_USAGE, run

_PROVIDER = "Which model"
_PLACE = "Where to listen"
_STORED = "What is kept"
_CLIENTS = "What clients may"
_METRICS = "Metrics"
_TRACES = "Traces"


def serve(
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="N",
            help=f"Listen on this port; 0: any free one. {default('7890, without --unix')}",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Listen on this address; one of other machines needs a token.",
            rich_help_panel=_PLACE,
        ),
    ] = "127.0.0.1",
    unix: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=given.path,
            help="Listen on this Unix socket; with --port, on both.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    token_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TENANT=]NAME",
            help="Variable with the token that lets the clients of a tenant in. May be given several times. "
            f"{default('EXEUNT_CONNECTION_TOKEN; without it, no token')}",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            callback=given.text,
            help=f"What the API speaks: openai or anthropic. {default('openai')}",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    wire_api: Annotated[
        str | None,
        typer.Option(
            metavar="API",
            callback=given.text,
            help=f"Of openai: completions or responses. {default('completions')}",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            callback=given.text,
            help="Where the API is, such as https://api.openai.com/v1.",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=given.text,
            help="The model of sessions that name none.",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="VAR",
            callback=given.text,
            help=f"Variable with the key. {default('EXEUNT_PROVIDER_API_KEY')}",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    auto_model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=given.text,
            help="The model of turns that go on when the provider limits their own.",
            rich_help_panel=_PROVIDER,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=given.path,
            help="A TOML file with the provider, prices, and the tokens of tenants.",
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where sessions are kept, such as sqlite:///s.sqlite3 or postgresql://... "
            f"{default('in memory: they end with the server')}",
            rich_help_panel=_STORED,
        ),
    ] = None,
    journal_wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help=f"Wait for its database to start, at most so long. {default('0')}",
            show_default=False,
            rich_help_panel=_STORED,
        ),
    ] = 0.0,
    session_files: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=given.path,
            help=f"Keep files of sessions here. {default('EXEUNT_SESSION_FILES, or no files')}",
            rich_help_panel=_STORED,
        ),
    ] = None,
    idle_timeout: Annotated[
        float | None,
        typer.Option(
            "--session-idle-timeout",
            min=0.1,
            metavar="SECONDS",
            help=f"When an idle session leaves memory, to come back with its next message. {default('never')}",
            rich_help_panel=_STORED,
        ),
    ] = None,
    wait_for_clients: Annotated[
        bool,
        typer.Option(
            "--wait-for-clients",
            metavar="",
            help="Tool calls of a client that has left wait for its return, and do not fail.",
            rich_help_panel=_CLIENTS,
        ),
    ] = False,
    attachments_root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=given.path,
            help="Attach files below this folder by their path. "
            f"{default('EXEUNT_ATTACHMENTS_ROOT, or none')}",
            rich_help_panel=_CLIENTS,
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="N",
            help="Serve metrics for Prometheus on this port; 0: any free one. "
            f"{default('EXEUNT_METRICS_PORT, or none')}",
            rich_help_panel=_METRICS,
        ),
    ] = None,
    metrics_host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            callback=given.text,
            help=f"On this address. {default('EXEUNT_METRICS_HOST, or 127.0.0.1')}",
            rich_help_panel=_METRICS,
        ),
    ] = None,
    otel_endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            callback=given.text,
            help="Send traces to this collector, such as http://localhost:4318.",
            rich_help_panel=_TRACES,
        ),
    ] = None,
    otel_file: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=given.path,
            help="Write traces to this file, a line of JSON each.",
            rich_help_panel=_TRACES,
        ),
    ] = None,
    otel_content: Annotated[
        bool,
        typer.Option(
            "--otel-content", metavar="", help="Traces hold what was said, too.", rich_help_panel=_TRACES
        ),
    ] = False,
    instruction_root: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            parser=given.path,
            help="Name folders in this one, whose files with instructions are read for them. May be given "
            f"several times. {default('EXEUNT_INSTRUCTION_ROOTS, or none')}",
            rich_help_panel=_CLIENTS,
        ),
    ] = None,
    current_datetime: Annotated[
        bool,
        typer.Option(
            "--current-datetime",
            metavar="",
            help=f"Models are told date and time. {default('EXEUNT_CURRENT_DATETIME')}",
            rich_help_panel=_CLIENTS,
        ),
    ] = False,
    log_level: Annotated[
        Literal["none", "error", "warning", "info", "debug"],
        typer.Option(metavar="LEVEL", help="Of the log on stderr: none, error, warning, info or debug."),
    ] = "info",
) -> None:
    """Serve sessions to clients: the official Copilot SDKs, unchanged.

    exeunt serve --model gpt-5 --journal sqlite:///sessions.sqlite3

    Clients connect to 127.0.0.1, port 7890: in Node.js by
    RuntimeConnection.forUri("127.0.0.1:7890").

    Sessions bring their own model provider, or use the server's: from
    these options, a file, or EXEUNT_PROVIDER_TYPE, _WIRE_API, _BASE_URL,
    _API_KEY and _MODEL. Ends in order on Ctrl-C and SIGTERM.
    """
    import os

    from exeunt.actors.errors import InvalidConfiguration
    from exeunt.cli.serve import provider as providers
    from exeunt.cli.serve import serving, switches
    from exeunt.cli.serve.scraping import scrape_options
    from exeunt.cli.serve.telemetry import trace_options
    from exeunt.wire.options import WireOptions

    serving.log_to_stderr(log_level)
    chosen = serving.DEFAULT_PORT if port is None and unix is None else port
    try:
        file = providers.read_file(config)
        what = serving.Served(
            default=providers.default_provider(
                os.environ,
                file.provider,
                kind=provider,
                wire_api=wire_api,
                base_url=base_url,
                model=model,
                api_key_env=api_key_env,
                auto_model=auto_model,
                prices=file.prices,
            ),
            options=WireOptions(
                wait_for_clients=wait_for_clients,
                context_tokens=providers.context_tokens(os.environ),
                attachments_root=providers.attachments_root(os.environ, attachments_root),
                session_files=providers.session_files(os.environ, session_files),
                instruction_roots=switches.instruction_roots(os.environ, instruction_root or ()),
                current_datetime=current_datetime
                or switches.switched_on(os.environ, "EXEUNT_CURRENT_DATETIME"),
            ),
            tokens=providers.tokens(os.environ, token_env or (), file.tokens),
            journal=journal,
            journal_wait=journal_wait,
            idle_timeout=idle_timeout,
            traces=trace_options(
                os.environ, file=otel_file, endpoint=otel_endpoint, capture_content=otel_content
            ),
            metrics=scrape_options(os.environ, port=metrics_port, address=metrics_host),
        )
        serving.check_ports(what, address=host, port=chosen, unix=unix)
    except InvalidConfiguration as wrong:
        typer.echo(f"exeunt serve: {wrong}", err=True)
        raise typer.Exit(WRONG_USAGE) from None

    def say(listening: int | None) -> None:
        places = [] if listening is None else [f"{host}, port {listening}"]
        places += [] if unix is None else [str(unix)]
        typer.echo(f"exeunt serve: listening on {' and '.join(places)}")

    run(partial(serving.serve_ports, what, address=host, port=chosen, unix=unix, say=say))
