"""Builds the generator source from a user's options.

``expected_rows`` takes the same options, so that a test or a demonstration can recompute the input
of a job without running it.
"""

from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import COLUMNS, Recipe
from weir.dataflow.options import Options
from weir.ports.operators import Batch

MOST_KEYS = 1 << 32
MOST_SPLITS = 10_000
MOST_LATENESS_MS = (1 << 32) - 1


def generator_source(options: Options) -> GeneratorSource:
    recipe = Recipe(
        columns=_columns(options),
        keys=_between(options, "keys", 1_000, 1, MOST_KEYS),
        sparse_keys=options.flag("sparseKeys", default=False),
        start_ms=options.integer("eventTimeStart", 0),
        step_ms=options.duration_ms("eventTimeStep", 1),
        out_of_orderness_ms=_lateness(options),
        seed=options.integer("seed", 0),
    )
    return GeneratorSource(
        recipe,
        splits=_between(options, "splits", 2, 1, MOST_SPLITS),
        total=_between(options, "rows", 0, 0, 1 << 62),
        rows_per_second=_between(options, "rowsPerSecond", 0, 0, 1 << 40),
    )


def expected_rows(options: Options, split: int, first: int, stop: int) -> Batch:
    """The rows of a split from one offset to before another, as every reader would give them."""
    return generator_source(options).recipe.rows(split, first, stop)


def _columns(options: Options) -> tuple[str, ...]:
    given = options.text("columns", ",".join(COLUMNS.names))
    columns = tuple(name.strip() for name in given.split(","))
    if len(set(columns)) < len(columns) or not set(columns) <= set(COLUMNS.names):
        raise options.refusal(
            "columns", "these are not columns of the generator", f"choose of {COLUMNS.names}"
        )
    return columns


def _lateness(options: Options) -> int:
    lateness = options.duration_ms("outOfOrderness", 0)
    if lateness > MOST_LATENESS_MS:
        raise options.refusal("outOfOrderness", "this is longer than 49 days", "choose less")
    return lateness


def _between(options: Options, name: str, default: int, least: int, most: int) -> int:
    number = options.integer(name, default)
    if not least <= number <= most:
        raise options.refusal(name, "it is out of range", f"choose {least} to {most}")
    return number
