"""The random seed of the integration tests: one for a whole run, printed and replayable.

``WEIR_SEED=123`` repeats a run; ``WEIR_ALL=1`` runs everything where otherwise a sample is run.
"""

import os
import random
import secrets

SEED = int(os.environ.setdefault("WEIR_SEED", str(secrets.randbelow(1 << 32))))
"""In the environment, so that the processes which share a run's tests share its seed."""


def runs_all() -> bool:
    """Asked when tests are collected: the option of pytest has been read by then."""
    return os.environ.get("WEIR_ALL", "") not in ("", "0")


def dice(purpose: str) -> random.Random:
    """A separate generator for each purpose, so that one test's draws do not change another's."""
    return random.Random(f"{SEED} {purpose}")  # noqa: S311 - must be repeatable


def show(what: object) -> None:
    """For the reader of the run: pytest keeps it with the test, and the summary repeats it."""
    print(what)  # noqa: T201 - pytest keeps it with the test
