"""Runs fault schedules from the command line: many seeds, one seed, or planted bugs.

python -m simulation --seeds 2000          two thousand schedules on all cores
python -m simulation --from 1234 --seeds 1 one schedule; if it fails, its history
python -m simulation --planted             plant a sample of the bugs and see each caught
python -m simulation --planted --all       plant every bug of the list
"""

import sys
from typing import Annotated

import typer

from simulation.planted import run_planted
from simulation.runner import run_schedules


def main(
    seeds: Annotated[int, typer.Option(help="How many schedules to run.", min=1)] = 200,
    first: Annotated[int, typer.Option("--from", help="The first seed.", min=0)] = 0,
    *,
    planted: Annotated[
        bool, typer.Option("--planted", help="Plant bugs in the core; each must be caught.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Plant every bug, not only a sample of them.")
    ] = False,
    digest: Annotated[
        bool, typer.Option("--digest", help="Print one digest of all histories.")
    ] = False,
) -> None:
    """Run seeded fault schedules against the production core and slot."""
    ok = run_planted(every=every) if planted else run_schedules(first, seeds, digest=digest)
    sys.exit(0 if ok else 1)


typer.run(main)
