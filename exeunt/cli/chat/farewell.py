"""The command that goes on with a session: what a chat says at its end, to be pasted as it is."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from exeunt.cli.chat.choice import ApiChoice, ModelChoice

COMMAND = "exeunt"


def resume_command(
    choice: ModelChoice,
    session_id: str,
    *,
    system_message: str | None = None,
    journal: str | None = None,
    program: str = COMMAND,
    platform: str = sys.platform,
) -> str:
    """Return the line for a shell that takes the session up again with the same model and options."""
    arguments = [program, "chat", *_model_options(choice)]
    if system_message is not None:
        arguments += ["--system", system_message]
    if journal is not None:
        arguments += ["--journal", journal]
    arguments += ["--resume", session_id]
    return subprocess.list2cmdline(arguments) if platform == "win32" else shlex.join(arguments)


def _model_options(choice: ModelChoice) -> Sequence[str]:
    if isinstance(choice, ApiChoice):
        options = ["--base-url", choice.base_url, "--model", choice.model]
        if choice.wire_api is not None:
            options = ["--wire-api", choice.wire_api, *options]
        if choice.provider_type != "openai":
            options = ["--provider", choice.provider_type, *options]
        return options if choice.api_key_env is None else [*options, "--api-key-env", choice.api_key_env]
    return ["--local"] if choice.gguf is None else ["--gguf", str(choice.gguf)]


def own_program(given: str | None = None) -> str:
    """Return how this program is called from a shell: by its name if that finds it, else as it was called."""
    called = sys.argv[0] if given is None else given
    path = Path(called)
    if path.stem != COMMAND or not path.is_file():
        return COMMAND  # `python -c`, or another program that runs the command
    found = shutil.which(COMMAND)
    return COMMAND if found is not None and path.samefile(found) else called
