"""Build the sdist and the wheel, and use the wheel as somebody does who has only that.

    python tests/wheel/check_wheel.py

Run by `make wheel`, not by pytest: it takes most of a minute and needs a package index. It ends with status 1
and the output of the command that failed.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("actors", "supervisor", "metrics")
LONGEST_STEP = 300
"""Seconds for one command. The slowest, an installation over a slow line, takes a tenth of it."""

IMPORT_EVERYTHING = """
import importlib, pkgutil, exeunt

for name in exeunt.__all__:
    getattr(exeunt, name)
for room in ("exeunt.actors", "exeunt.supervisor", "exeunt.metrics"):
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, room + "."):
        importlib.import_module(module.name)
"""


class CheckFailed(Exception):
    """The build is not what it should be."""


def run(*command: str | Path, cwd: Path) -> str:
    """Run *command* in *cwd* and give its output; `CheckFailed` with the output if its status is not 0."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_STEP,
            check=False,
        )
    except subprocess.TimeoutExpired as slow:
        raise CheckFailed(f"{slow.cmd} took more than {LONGEST_STEP} s") from None
    if done.returncode:
        raise CheckFailed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def sources() -> set[str]:
    """Each Python file and data file of the package, by the path that it has in the wheel."""
    found: set[str] = set()
    for folder in (ROOT / "exeunt", *(ROOT / room for room in ROOMS)):
        prefix = Path() if folder.name == "exeunt" else Path("exeunt")
        # Whatever is not made by running it: code, the typing marker, dashboards, pages.
        files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
        found |= {(prefix / path.relative_to(ROOT)).as_posix() for path in files}
    return {name for name in found if "__pycache__" not in name}


def check_contents(wheel: Path, sdist: Path) -> None:
    """Both archives hold the linked rooms as real files, nothing is missing, and nothing else came along."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        if missing := sources() - packed:
            raise CheckFailed(f"the wheel lacks {sorted(missing)}")
        if strangers := {name for name in packed if not name.startswith("exeunt/")}:
            raise CheckFailed(f"the wheel would write outside its package: {sorted(strangers)}")
        if not any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist()):
            raise CheckFailed("the wheel lacks its license")
    with tarfile.open(sdist) as tar:
        top = sdist.name.removesuffix(".tar.gz")
        regular = {member.name for member in tar.getmembers() if member.isfile()}
        if missing := {name for name in sources() if f"{top}/{name}" not in regular}:
            raise CheckFailed(f"the sdist lacks, or has as a link, {sorted(missing)}")


def readme_example() -> str:
    """The first Python block of README.md: a newcomer copies it into a file and runs it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if block is None:
        raise CheckFailed("README.md has no Python example")
    return block[1]


def check_use(wheel: Path, scratch: Path) -> None:
    """Install the wheel in an environment of its own and use it from a folder outside the checkout."""
    environment = scratch / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    python = (programs / "python", "-W", "error")
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    run(programs / "python", "-m", "pip", "--disable-pip-version-check", "install", wheel, cwd=elsewhere)
    run(programs / "python", "-m", "pip", "check", cwd=elsewhere)
    run(*python, "-c", IMPORT_EVERYTHING, cwd=elsewhere)
    run(programs / "exeunt", "--help", cwd=elsewhere)
    example = elsewhere / "example.py"
    example.write_text(readme_example(), encoding="utf-8")
    run(*python, example, cwd=elsewhere)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="exeunt-wheel-") as folder:
        scratch = Path(folder)
        try:
            run(sys.executable, "-m", "build", "--outdir", scratch / "dist", ROOT, cwd=scratch)
            [wheel] = (scratch / "dist").glob("*.whl")
            [sdist] = (scratch / "dist").glob("*.tar.gz")
            check_contents(wheel, sdist)
            check_use(wheel, scratch)
        except CheckFailed as failure:
            print(failure, file=sys.stderr)
            return 1
        print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} KiB, installs, imports and runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
