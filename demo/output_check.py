"""Checks the demo's output by the sink's files alone.

The expected rows are computed from the generator's arithmetic in one sequential pass, without
Weir's runtime: for every input row, the sum of its key up to that row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from weir import read_committed
from weir.testing import GeneratorSource


@dataclass(frozen=True)
class Verdict:
    """The difference between the output and the expected rows."""

    expected: int
    delivered: int
    lost: int
    duplicated: int
    wrong: int

    @property
    def is_exactly_once(self) -> bool:
        return not (self.lost or self.duplicated or self.wrong)

    def __str__(self) -> str:
        text = (
            f"{self.expected:,} expected, {self.delivered:,} delivered, "
            f"{self.lost:,} lost, {self.duplicated:,} duplicated"
        )
        return text + (f", {self.wrong:,} with a wrong sum" if self.wrong else "")


def judge(
    output: str, source: GeneratorSource, storage: Mapping[str, str] | None = None
) -> Verdict:
    """Compare the output with all rows; ``storage`` has the options of the output's store."""
    shares = {split: source.share(split) or 0 for split in range(source.splits)}
    return _compared(_recomputed(source, shares), pl.DataFrame(read_committed(output, storage)))


def judge_so_far(
    output: str, source: GeneratorSource, storage: Mapping[str, str] | None = None
) -> Verdict:
    """Of a job that still runs: every split must be there up to the last row that is."""
    delivered = pl.DataFrame(read_committed(output, storage))
    ends = delivered.group_by("split").agg(pl.col("offset").max() + 1)
    return _compared(_recomputed(source, dict(ends.iter_rows())), delivered)


def _compared(expected: pl.DataFrame, delivered: pl.DataFrame) -> Verdict:
    places = ["split", "offset"]
    unique = delivered.unique(places)
    lost = expected.join(unique, on=places, how="anti")
    wrong = expected.join(unique, on=places, suffix="_found").filter(
        pl.col("total") != pl.col("total_found")
    )
    return Verdict(
        expected=expected.height,
        delivered=delivered.height,
        lost=lost.height,
        duplicated=delivered.height - unique.height,
        wrong=wrong.height,
    )


def _recomputed(source: GeneratorSource, shares: Mapping[int, int]) -> pl.DataFrame:
    """One split after the other, in order, as a loop over all rows would."""
    rows = [pl.DataFrame(source.recipe.rows(s, 0, share)) for s, share in shares.items()]
    total = pl.col("value").cum_sum().over("split", "key").alias("total")
    return pl.concat(rows).select("split", "offset", "key", total)
