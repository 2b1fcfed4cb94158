"""`exeunt-runtime`: takes the place of the runtime that a client would start, with the same flags."""

import argparse
import math
import os
import sys
from functools import partial
from importlib.metadata import version
from typing import NoReturn

from exeunt.cli.serve.orphans import Starter
from exeunt.tuning import allow_many_files, tune_garbage_collector

LOG_LEVELS = ("none", "error", "warning", "warn", "info", "debug", "all", "default")


VARIABLES = """\
variables:
  EXEUNT_PROVIDER_BASE_URL, _API_KEY, _MODEL, _TYPE, _WIRE_API, _TRANSPORT
                        the model of sessions that bring none
  EXEUNT_AUTO_MODEL     the one to go on with when the provider limits it
  EXEUNT_PRICES         what calls cost, in JSON
  EXEUNT_CONTEXT_TOKENS how many tokens the models take in
  EXEUNT_SYSTEM_MESSAGE what stands before the system message of sessions
  EXEUNT_CURRENT_DATETIME
                        1: tell the models date and time
  EXEUNT_JOURNAL        where sessions are kept, as --journal
  EXEUNT_SESSION_FILES  where their files are kept; else below COPILOT_HOME
  EXEUNT_INSTRUCTION_ROOTS, EXEUNT_ATTACHMENTS_ROOT
                        folders that clients may name, and attach files of
  EXEUNT_CONNECTION_TOKEN
                        lets clients in, with --port
  EXEUNT_METRICS_PORT, EXEUNT_METRICS_HOST
                        where metrics are served
"""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: give seconds, or 0 for never")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="exeunt-runtime",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Serve sessions to the client that started this process: on its standard streams,\n"
        "or on a port. For a server that stays there is `exeunt serve`.",
        epilog=VARIABLES,
    )
    parser.add_argument("--version", action="version", version=f"exeunt {version('exeunt')}")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="speak on the standard streams")
    way.add_argument("--port", type=int, default=0, metavar="N", help="listen on this port; 0: any free one")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS",
        help="listen on this address; one of other machines needs a token",
    )  # fmt: skip
    parser.add_argument(
        "--log-level", default="error", choices=LOG_LEVELS, metavar="LEVEL",
        help="of the log on stderr: none, error, warning, info, debug",
    )  # fmt: skip
    parser.add_argument(
        "--session-idle-timeout", type=_seconds, default=0, metavar="SECONDS",
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
    # Before anything that takes time: the sooner, the surer that it has not ended yet.
    starter = Starter()
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
            serving.check(what)
            status = trio.run(serving.serve_stdio, what)
        else:
            serving.check_ports(what, address=arguments.host, port=arguments.port, unix=None)
            status = trio.run(
                partial(
                    serving.serve_ports,
                    what,
                    address=arguments.host,
                    port=arguments.port,
                    unix=None,
                    say=_say,
                    starter=starter,
                )
            )
    except* ExeuntError as group:
        sys.exit(f"exeunt-runtime: {lone(group)}")
    sys.exit(status)


def _say(port: int | None) -> None:
    sys.stdout.write(f"CLI server listening on port {port}\n")
    sys.stdout.flush()
