"""The command `exeunt`.

Reading order: `app` and `sessions_app` (the commands and their options), `running`, then a file or folder for each:
`doctor`, `chat`, `sessions`; what `exeunt demo` plays is `exeunt.demo`. A command imports what it needs when it runs,
so that `exeunt --help` is quick.
"""

import sys
from io import TextIOWrapper
from typing import NoReturn

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 and the number of the signal."""


def main() -> NoReturn:
    """Run the command line of this process and exit: 0 done, 1 failed, 2 wrong usage, 130 ended by Ctrl-C."""
    from exeunt.actors.errors import ExeuntError
    from exeunt.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # An answer may hold any character; an output that cannot show one must not end the conversation.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="exeunt")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ExeuntError as error:
        sys.stderr.write(f"exeunt: {error}\n")
        sys.exit(1)
    sys.exit(0)
