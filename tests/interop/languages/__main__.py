"""Play a program in another language against our server: `python -m tests.interop.languages CHECKOUT go java rust`.

CHECKOUT is a checkout of the clients' repository (github/copilot-sdk). For each language a program of ours is built
with the client in it, and plays each scene by address and with a token, and with a runtime that the client starts, on
its standard streams and on a port; the model is a script. What the clients depend on comes from where the tools of the
language look for it, or from a folder. The exit code is 1 if something was wrong or could not be built.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from exeunt.groups import lone
from tests.interop.languages.build import LANGUAGES, NotBuiltError
from tests.interop.languages.scenes import EXPECTED, wrong
from tests.interop.languages.stage import WAYS, play


def main() -> int:
    """Build and play what was asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.languages", description=__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument(
        "languages", nargs="+", choices=sorted(LANGUAGES), metavar="LANGUAGE", help="go, java, rust"
    )
    parser.add_argument(
        "--libraries", type=Path, help="java: a folder of jars; rust: a folder of crates (`cargo vendor`)"
    )
    parser.add_argument("--way", choices=WAYS, action="append", help="only this way to the server")
    asked = parser.parse_args()
    failed = False
    for language in asked.languages:
        try:
            program = LANGUAGES[language](asked.checkout, asked.libraries)
        except NotBuiltError as error:
            print(f"{language}: not built: {error}")
            failed = True
            continue
        for way in asked.way or WAYS:
            failed |= not report(language, way, program)
    return 1 if failed else 0


def report(language: str, way: str, program: Sequence[str]) -> bool:
    """Play `program` on one way and print how its scenes went; whether all were right."""
    try:
        seen = trio.run(play, way, program)
    except (ExceptionGroup, trio.TooSlowError, RuntimeError) as error:
        print(f"{language} {way}: not played: {lone(error)!r}")
        return False
    faults = {scene: wrong(scene, seen.get(scene)) for scene in EXPECTED}
    for scene, found in faults.items():
        for fault in found:
            print(f"{language} {way}: {scene}: WRONG: {fault}")
    right = [scene for scene, found in faults.items() if not found]
    print(f"{language} {way}: {len(right)} of {len(faults)} scenes right: {', '.join(right)}")
    return len(right) == len(faults)


if __name__ == "__main__":
    sys.exit(main())
