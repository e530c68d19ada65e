"""Plants one bug in this process and runs schedules until one of them notices.

    python -m simulation.bug_search "commit before completion"

Prints the seed that caught it and how, or that it survived.
"""

import sys

from simulation.bugs import bug_named
from simulation.source_patch import plant

PATIENCE = 500
"""Schedules that a bug may survive at most."""


def main(name: str) -> None:
    bug = bug_named(name)
    plant(bug)
    from simulation.runner import begin_worker, run_one  # noqa: PLC0415 - the core is imported sabotaged

    begin_worker()
    for seed in range(bug.first_seed, bug.first_seed + PATIENCE):
        outcome = run_one(seed)
        if outcome.violation:
            print(f"caught by seed {seed}: {outcome.violation[:120]}")
            return
    print("survived")


if __name__ == "__main__":
    main(sys.argv[1])
