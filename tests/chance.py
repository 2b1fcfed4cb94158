"""What is left to chance in a test, made repeatable."""

import importlib
import random


def seed_chance(seed: str) -> None:
    """Let *seed* decide what `random` gives, and in which order trio runs the tasks that can run."""
    random.seed(seed)
    # Trio offers these two to Hypothesis only, which resets them for each example of a property.
    scheduler = importlib.import_module("trio._core._run")
    vars(scheduler)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    scheduler._r.seed(seed)
