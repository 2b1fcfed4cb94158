"""How all tests run: the same every time, unless a run asks for something new.

Trio picks at random which of the tasks that can run goes first. Here the pick depends on the test's name and
on `--schedule-seed`, so a test that fails fails again. `make soak` takes a new seed each time.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.chance import seed_chance

# A time limit per example, or on how fast examples are made, says how busy the machine is, not what is wrong.
settings.register_profile(
    "default",
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=2_000,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and the programs that tests start would inherit it: none of
    # them would ever hear of a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--schedule-seed", type=int, default=0, help="Order in which trio runs tasks (default: 0)."
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"schedule seed: {config.getoption('--schedule-seed')}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    seed_chance(f"{item.config.getoption('--schedule-seed')} {item.nodeid}")
