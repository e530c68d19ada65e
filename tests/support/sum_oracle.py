"""Judges a job of running sums by the files that its sink committed, and by nothing else.

What should be there follows from the generator's arithmetic, in one pass without any dataflow.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from job_setting import JobSetting
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe
from weir.storage.stores import ObjectStore, store_for

PLACE = ["split", "offset"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the output compares with what it should be."""

    expected: int
    delivered: int
    lost: int
    duplicated: int
    wrong: int
    """Rows whose sum is not that of their key up to them."""
    invented: int
    """Rows that were never read."""

    @property
    def is_exactly_once(self) -> bool:
        return not (self.lost or self.duplicated or self.wrong or self.invented)

    @property
    def is_at_least_once(self) -> bool:
        return not (self.lost or self.invented)


def judge(setting: JobSetting, storage: Mapping[str, str]) -> Verdict:
    """Everything that the generator has, against everything that was committed."""
    return _compare(_recomputed(setting), delivered(setting, storage))


def judge_prefix(setting: JobSetting, storage: Mapping[str, str]) -> Verdict:
    """The same for a job that was stopped: of each split all up to its last row is expected."""
    found = delivered(setting, storage)
    ends = found.group_by("split").agg(pl.col("offset").max().alias("end"))
    expected = _recomputed(setting).join(ends, on="split").filter(pl.col("offset") <= pl.col("end"))
    return _compare(expected.drop("end"), found)


def _compare(expected: pl.DataFrame, found: pl.DataFrame) -> Verdict:
    unique = found.unique(PLACE)
    both = expected.join(unique, on=PLACE, suffix="_found")
    return Verdict(
        expected=expected.height,
        delivered=found.height,
        lost=expected.join(unique, on=PLACE, how="anti").height,
        duplicated=found.height - unique.height,
        wrong=both.filter(pl.col("total") != pl.col("total_found")).height,
        invented=found.join(expected, on=[*PLACE, "key"], how="anti").height,
    )


def _recomputed(setting: JobSetting) -> pl.DataFrame:
    source = GeneratorSource(Recipe(keys=setting.keys), setting.splits, setting.rows)
    shares = [(split, source.share(split) or 0) for split in range(source.splits)]
    rows = pl.concat([pl.DataFrame(source.recipe.rows(s, 0, share)) for s, share in shares])
    total = pl.col("value").cum_sum().over("split", "key").alias("total")
    return rows.select("split", "offset", "key", total)


def delivered(setting: JobSetting, storage: Mapping[str, str]) -> pl.DataFrame:
    """All rows of all files that a commit names, each file once."""
    frames = committed_frames(setting.output, storage)
    empty = _recomputed(setting).clear()
    return pl.concat([empty, *(frame.select(empty.columns) for frame in frames)])


def committed_frames(output: str, storage: Mapping[str, str]) -> list[pl.DataFrame]:
    """What each of the files holds that a commit names."""
    store = store_for(output, storage)
    files = [f"{output}/{name}" for name in committed(store, output)]
    return [pl.read_parquet(io.BytesIO(store.read(file))) for file in files]


def committed(store: ObjectStore, output: str) -> list[str]:
    """The names of the files that count."""
    records = [json.loads(store.read(url)) for url in sorted(store.list(f"{output}/_commits"))]
    return list(dict.fromkeys(file for record in records for file in record["files"]))
