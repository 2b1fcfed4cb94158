"""Run the client's end-to-end suite against a runtime: `python -m tests.interop.e2e CHECKOUT [--runtime PATH]`.

CHECKOUT is a checkout of the client's repository (github/copilot-sdk). Prints each test that failed, how many passed,
and which failures are listed with a reason. The exit code is 1 if a test failed that is not listed.
"""

import argparse
import sys
from pathlib import Path

from tests.interop.e2e.suite import Result, core, listed, prepare, run

RUNTIME = Path(sys.executable).with_name("exeunt-runtime")


def main() -> int:
    """Run what was asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.e2e", description=__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument("--runtime", type=Path, default=RUNTIME, help="what the suite starts (default: ours)")
    parser.add_argument("--workers", type=int, default=2, help="test files side by side (default: 2)")
    parser.add_argument("-k", dest="word", default="", help="only tests whose names hold this word")
    asked = parser.parse_args()

    tests = [test for test in core() if asked.word in test]
    results = run(prepare(asked.checkout.absolute()), tests, asked.runtime.absolute(), asked.workers)
    return report([result for result in results if result.test in tests], len(tests))


def report(results: list[Result], asked: int) -> int:
    """Print what `results` show of the `asked` tests; the exit code."""
    known = listed()
    failed = [result for result in results if result.outcome == "failed"]
    for result in failed:
        print(f"{'listed' if result.test in known else 'FAILED'}  {result.test}")
        print(f"        {known.get(result.test) or result.error[:300]}")
    for test in sorted(set(known) & {result.test for result in results if result.outcome == "passed"}):
        print(f"passes although listed  {test}")
    passed = sum(result.outcome == "passed" for result in results)
    unlisted = [result for result in failed if result.test not in known]
    print(
        f"{passed} of {asked} passed; {len(failed) - len(unlisted)} failed as listed; {len(unlisted)} failed besides"
    )
    return 1 if unlisted or len(results) < asked else 0


if __name__ == "__main__":
    sys.exit(main())
