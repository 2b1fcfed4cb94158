"""The child process that serves a GGUF file: `python -m exeunt.models.local_server --help`.

It is a process of its own because the server is C++: it holds the interpreter lock while it loads, and a
fault in it ends the process. It tells its address once, as the only line on standard output, and lives until
its standard input is closed.
"""

import argparse
import importlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Any

_LOG_WARNINGS = 2
"""llama.cpp's verbosity: 1 errors, 2 warnings too, 3 and up a line per request."""
_PROMPT_CACHE_MIB = 256
"""Memory for the prompts of earlier requests. The library's default of 8 GiB is too much beside a host."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m exeunt.models.local_server", description=__doc__)
    parser.add_argument("--gguf", required=True, help="the model's file")
    parser.add_argument("--name", required=True, help="what the server calls the model")
    parser.add_argument("--context-tokens", type=int, required=True, help="prompt and answer together")
    parser.add_argument("--threads", type=int, help="default: one for each physical core")
    return parser.parse_args(arguments)


def end_with_the_parent() -> None:
    """Have Linux end this process when the parent's end of standard input is closed.

    A thread that reads standard input would not run while the library loads and holds the interpreter lock.
    `PR_SET_PDEATHSIG` is no way either: it fires when the *thread* that started the child ends, and trio starts
    children from worker threads, which it retires after ten idle seconds.
    """
    if sys.platform != "linux":
        return  # No signal that ends a process comes of a closed pipe: noticed once the model is loaded.
    import fcntl

    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:
        os._exit(0)  # It was closed before we asked for the signal.


def serve(options: argparse.Namespace) -> Any:
    """Load the model and return its running server. Raises what the library raises."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = options.gguf
    params.model_alias = {options.name}
    params.n_ctx = options.context_tokens
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = _LOG_WARNINGS
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    # No door for web pages of other origins, no page, and no listing that shows the prompts of others.
    params.cors_origins = "http://127.0.0.1"
    params.ui = False
    params.endpoint_slots = False
    if options.threads is not None:
        params.cpuparams.n_threads = options.threads
        params.cpuparams_batch.n_threads = options.threads
    return xllamacpp.Server(params)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    end_with_the_parent()
    # The library may print: only our line may reach the parent's pipe.
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        server = serve(options)
    except AttributeError as error:
        sys.exit(f"this release of xllamacpp does not fit ({error}): pip install --upgrade xllamacpp")
    except Exception as error:  # noqa: BLE001 (whatever it is, the parent shows it)
        sys.exit(f"{type(error).__name__}: {error}")
    # Nobody reads the log from here on, and a full pipe would stop the server.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.write(answer, f"{server.listening_address}\n".encode())
    os.close(answer)
    while os.read(0, 4096):
        pass
    # There is nothing to save, and the library's own farewell may wait for a request that runs.
    os._exit(0)


if __name__ == "__main__":
    main()
