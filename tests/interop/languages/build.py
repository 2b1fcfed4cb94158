"""Builds our program of a language with the official client of a checkout, and says how it is started.

A checkout is read, never written: what is built goes to `.cache/`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.interop.node import ROOT

PROGRAMS = Path(__file__).with_name("programs")
BUILT = ROOT / ".cache" / "interop" / "languages"

BUILD_LIMIT = 1800
"""Seconds for a build: the Rust client has some 150 dependencies."""

Build = Callable[[Path, Path | None], Sequence[str]]


class NotBuiltError(Exception):
    """A program could not be built: what was missing, or what the compiler said."""


def go(checkout: Path, _libraries: Path | None) -> Sequence[str]:
    """With Go 1.24 or newer. Modules come from where `GOPROXY` says, at the versions of the client's own `go.mod`."""
    client = _client(checkout, "go", "go.mod")
    folder = _folder("go")
    # The client's own list: so that the same versions are built, and its checksums hold.
    required = (client / "go.mod").read_text().partition("\nrequire (")[2]
    (folder / "go.mod").write_text(
        "module exeunt.test/languages\n\ngo 1.24\n\nrequire github.com/github/copilot-sdk/go v0.0.0\n\n"
        f"replace github.com/github/copilot-sdk/go => {json.dumps(str(client))}\n\nrequire ({required}"
    )
    shutil.copy(client / "go.sum", folder / "go.sum")
    _run(["go", "vet", "-mod=mod", "."], folder)
    _run(["go", "build", "-mod=mod", "-o", "play", "."], folder)
    return [str(folder / "play")]


def java(checkout: Path, libraries: Path | None) -> Sequence[str]:
    """With a JDK 17 or newer, without Maven; `libraries` holds the jars that the client's `pom.xml` names."""
    if libraries is None:
        raise NotBuiltError(
            "java needs --libraries, a folder with the jars of jackson-databind, -core, -annotations and "
            "-datatype-jsr310, jna and spotbugs-annotations (`mvn dependency:copy-dependencies` copies them)"
        )
    client = _client(checkout, "java/sdk", "pom.xml")
    folder = _folder("java")
    jars = f"{libraries.absolute()}/*"
    sources = [
        str(path)
        for part in ("src/main/java", "src/generated/java")
        for path in sorted((client / part).rglob("*.java"))
        if path.name != "module-info.java"  # on the class path, as most programs have it
    ]
    (folder / "sources").write_text("".join(f"{json.dumps(source)}\n" for source in sources))
    shutil.copytree(client / "src/main/resources", folder / "client", dirs_exist_ok=True)
    # The client registers a processor of annotations, which is not there before it is compiled.
    _run(["javac", "-proc:none", "-nowarn", "-cp", jars, "-d", "client", "@sources"], folder)
    _run(["javac", "-proc:none", "-cp", f"client:{jars}", "-d", "play", "Play.java", "Scenes.java"], folder)
    return ["java", "-cp", f"{folder}/play:{folder}/client:{jars}", "Play"]


def rust(checkout: Path, libraries: Path | None) -> Sequence[str]:
    """With Rust 1.94 or newer. Crates come from the registry, or from `libraries`, made as `cargo vendor` does."""
    client = _client(checkout, "rust", "Cargo.toml")
    folder = _folder("rust")
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "play"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n'
        f"github-copilot-sdk = {{ path = {json.dumps(str(client))}, default-features = false }}\n"
        'async-trait = "0.1"\nserde_json = "1"\n'
        'tokio = { version = "1", features = ["rt-multi-thread", "macros", "sync", "time"] }\n'
    )
    if libraries is not None:
        (folder / ".cargo").mkdir()
        (folder / ".cargo" / "config.toml").write_text(
            '[source.crates-io]\nreplace-with = "folder"\n\n[source.folder]\n'
            f"directory = {json.dumps(str(libraries.absolute()))}\n"
        )
    target = BUILT / "rust-target"  # kept: the dependencies take minutes
    # Without the second the build fetches the runtime of the SDK, which nothing here starts.
    variables = {"CARGO_TARGET_DIR": str(target), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
    _run(["cargo", "build", "--quiet", *(["--offline"] if libraries else [])], folder, variables)
    return [str(target / "debug" / "play")]


LANGUAGES: Mapping[str, Build] = {"go": go, "java": java, "rust": rust}


def _client(checkout: Path, part: str, mark: str) -> Path:
    """The folder of the client in `checkout`."""
    folder = checkout.absolute() / part
    if not (folder / mark).is_file():
        raise NotBuiltError(f"{checkout} is no checkout of the client's repository: it has no {part}/{mark}")
    return folder


def _folder(language: str) -> Path:
    """A new folder with the sources of our program."""
    folder = BUILT / language
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROGRAMS / language, folder)
    return folder


def _run(command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run a step of a build."""
    if shutil.which(command[0]) is None:
        raise NotBuiltError(f"{command[0]} is not installed")
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        timeout=BUILD_LIMIT,
        check=False,
    )
    if done.returncode:
        raise NotBuiltError(f"{' '.join(command[:3])} failed:\n{(done.stderr + done.stdout)[-3000:]}")
