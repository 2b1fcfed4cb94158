"""Play the recorded scenarios with the official client: `python -m tests.interop.conformance [NAME ...]`.

Prints what differs, and the counts. `--accept` keeps what a listed scenario shows now as what it has to show.
"""

import argparse
import sys
from pathlib import Path

import attrs

from tests.interop.conformance.normal import normal
from tests.interop.conformance.play import Runtime, play
from tests.interop.conformance.records import load, save
from tests.interop.conformance.verdict import OURS, Verdict, chosen, judge, reasons
from tests.interop.node import modules

RUNTIME = Path(sys.executable).with_name("exeunt-runtime")

LINES = 6
"""Of what differs in one scenario."""


def main() -> int:
    """Play what was asked for; the exit code is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.conformance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which scenarios; all without any")
    parser.add_argument("--runtime", default=str(RUNTIME), metavar="PATH", help="what the client starts")
    parser.add_argument(
        "--slow", action="store_true", help="also those that kill processes, or wait for minutes"
    )
    parser.add_argument("--accept", action="store_true", help="keep what listed scenarios show")
    asked = parser.parse_args()

    records = chosen(asked.names, slow=asked.slow)
    outcomes = play(Runtime(asked.runtime), records.values(), modules(), limit=200 if asked.slow else 60)
    if asked.accept:
        ours = load(OURS)
        kept = {
            name: attrs.evolve(records[name], shown=normal(outcomes[name]))
            for name in reasons()
            if name in records and not outcomes[name].get("error")
        }
        save({name: record for name, record in {**ours, **kept}.items() if name in reasons()}, OURS)
    return report(judge(records, outcomes))


def report(verdicts: list[Verdict]) -> int:
    """Print `verdicts`; the exit code."""
    for verdict in verdicts:
        if verdict.outcome == "wrong":
            print(f"WRONG   {verdict.name}")
            for line in verdict.lines[:LINES]:
                print(f"        {line[:400]}")
    counts = {
        outcome: sum(v.outcome == outcome for v in verdicts) for outcome in ("equal", "listed", "wrong")
    }
    print(
        f"{len(verdicts)} scenarios: {counts['equal']} as recorded, {counts['listed']} differ as listed, "
        f"{counts['wrong']} wrong"
    )
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
