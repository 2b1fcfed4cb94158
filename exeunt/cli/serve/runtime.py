"""`exeunt-runtime`: takes the place of the runtime that a client would start, with the same flags."""

import argparse
import os
import sys
from functools import partial
from importlib.metadata import version
from typing import NoReturn

from exeunt.tuning import allow_many_files, tune_garbage_collector

LOG_LEVELS = ("none", "error", "warning", "warn", "info", "debug", "all", "default")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="exeunt-runtime",
        allow_abbrev=False,
        description="Serve sessions to the client that started this process. "
        "Models come from each session's provider, or from EXEUNT_PROVIDER_BASE_URL, _TYPE, _WIRE_API, "
        "_TRANSPORT, _API_KEY and _MODEL; "
        "EXEUNT_AUTO_MODEL is the one to go on with at a limit, EXEUNT_PRICES what calls cost; "
        "what stands before each session's system message comes from EXEUNT_SYSTEM_MESSAGE; EXEUNT_CURRENT_DATETIME=1 "
        "tells the models date and time; EXEUNT_INSTRUCTION_ROOTS names folders in which clients may name some with "
        "instructions (with --stdio: any). "
        "Files of sessions are kept in EXEUNT_SESSION_FILES, or below COPILOT_HOME. "
        "Metrics are at EXEUNT_METRICS_PORT, of EXEUNT_METRICS_HOST.",
    )
    parser.add_argument("--version", action="version", version=f"exeunt {version('exeunt')}")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="speak on the standard streams")
    way.add_argument("--port", type=int, default=0, metavar="N", help="listen on this port; 0: any free one")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--log-level", default="error", choices=LOG_LEVELS, metavar="LEVEL")
    parser.add_argument(
        "--session-idle-timeout", type=float, default=0, metavar="SECONDS",
        help="when an idle session leaves memory; 0: never",
    )  # fmt: skip
    parser.add_argument("--journal", metavar="URL", help="where sessions are kept (or EXEUNT_JOURNAL)")
    parser.add_argument("--auth-token-env", metavar="NAME", help="taken, and of no use: nobody signs in here")
    # "--server" is what some clients say for "--headless".
    for flag in ("--headless", "--server", "--no-auto-update", "--no-auto-login", "--remote"):
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> NoReturn:
    """Run until the client ends it. Exit status: 0 done, 1 failed, 2 wrong usage."""
    arguments = _parser().parse_args()
    # After the flags are known to be right: a wrong one is said at once.
    import trio

    from exeunt.actors.errors import ExeuntError
    from exeunt.cli.serve import provider, serving, switches
    from exeunt.cli.serve.scraping import scrape_options
    from exeunt.cli.serve.telemetry import trace_options
    from exeunt.groups import lone
    from exeunt.wire.options import WireOptions

    tune_garbage_collector()
    allow_many_files()
    serving.log_to_stderr(arguments.log_level)
    try:
        what = serving.Served(
            default=provider.default_provider(os.environ),
            options=WireOptions(
                wait_for_clients=True,
                system_message=os.environ.get("EXEUNT_SYSTEM_MESSAGE", ""),
                context_tokens=provider.context_tokens(os.environ),
                attachments_root=provider.attachments_root(os.environ),
                session_files=provider.base_directory_files(os.environ),
                instruction_roots=switches.instruction_roots(os.environ, anywhere=arguments.stdio),
                current_datetime=switches.switched_on(os.environ, "EXEUNT_CURRENT_DATETIME"),
            ),
            tokens=provider.tokens(os.environ, (), {}),
            journal=arguments.journal or os.environ.get("EXEUNT_JOURNAL"),
            idle_timeout=arguments.session_idle_timeout or None,
            traces=trace_options(os.environ),
            metrics=scrape_options(os.environ),
        )
        if arguments.stdio:
            status = trio.run(serving.serve_stdio, what)
        else:
            serving.check(what, address=arguments.host, port=arguments.port, unix=None)
            status = trio.run(
                partial(
                    serving.serve_ports,
                    what,
                    address=arguments.host,
                    port=arguments.port,
                    unix=None,
                    say=_say,
                )
            )
    except* ExeuntError as group:
        sys.exit(f"exeunt-runtime: {lone(group)}")
    sys.exit(status)


def _say(port: int | None) -> None:
    sys.stdout.write(f"CLI server listening on port {port}\n")
    sys.stdout.flush()
