"""The table of built-in aggregations: what each accepts, keeps for a key, and returns.

An entry is everything that Weir knows about one aggregation. ``functions`` and ``groupBy`` look up
its name, the graph its result type, and the state what to keep, so a new aggregation is one entry
here and one function for users. The rules are those of Spark SQL: nulls are skipped, the aggregate
of no value is null except for a count, which is 0, and NaN is a value greater than all others.

For each key an aggregation keeps accumulators, one number each, and the count of the values that
are not null. Aggregations of one column share accumulators that have the same reduction and type.
This module knows arrays of numbers, and neither keys nor snapshots.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.dataflow.name_suggestions import did_you_mean
from weir.dataflow.types import TIMESTAMP, written
from weir.errors import JobRejected

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
"""Which row of an array of accumulators each value belongs to."""

NO_COLUMN = pa.null()
"""The input type of an aggregation of rows, as in ``count(*)``."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """How numbers become one: the rule that an accumulator follows."""

    name: str
    """The accumulator of column x is the column ``name(x)`` of a snapshot file."""
    merge: np.ufunc
    """Makes one accumulator of two; a single value is an accumulator too."""
    initial: Callable[[np.dtype[Any]], float]
    """Merged with any accumulator, it leaves that as it is."""
    counts: bool = False
    """A value contributes 1, whatever it is."""

    def fold(self, accumulators: Array, rows: Rows, values: Array) -> None:
        """Merge each value, none of them null, into the accumulator in its row."""
        if self.counts:
            self.merge.at(accumulators, rows, 1)
        else:
            self.merge.at(accumulators, rows, values.astype(accumulators.dtype, copy=False))


def _zero(dtype: np.dtype[Any]) -> float:
    del dtype
    return 0


def _above_all(dtype: np.dtype[Any]) -> float:
    return float("nan") if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _below_all(dtype: np.dtype[Any]) -> float:
    return float("-inf") if dtype.kind == "f" else int(np.iinfo(dtype).min)


COUNT_OF_VALUES = Reduction("count", np.add, _zero, counts=True)
_SUM = Reduction("sum", np.add, _zero)
_FLOAT_SUM = Reduction("float_sum", np.add, _zero)
# Of NaN and a number, fmin takes the number and maximum the NaN.
_MIN = Reduction("min", np.fmin, _above_all)
_MAX = Reduction("max", np.maximum, _below_all)

Kept = tuple[Reduction, pa.DataType]
"""One accumulator: the reduction that it follows, and the type of its number."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One entry of the table. Its functions take the type of the aggregated column."""

    name: str
    accepts: tuple[pa.DataType, ...] | None
    """The input types, where Spark's timestamp stands for every unit and zone; None: all types."""
    result_type: Callable[[pa.DataType], pa.DataType]
    keeps: Callable[[pa.DataType], tuple[Kept, ...]]
    """The accumulators beside the count of values, in the order of a snapshot file."""
    finish: Callable[[Sequence[Array], Array], Array]
    """The results, of the accumulators and the counts."""
    is_nullable: bool = True
    """Whether the aggregate of no value is null."""

    def check(self, column: str, kind: pa.DataType) -> None:
        """Refuse a column of a type that this aggregation does not accept."""
        comparable = TIMESTAMP if pa.types.is_timestamp(kind) else kind
        if self.accepts is None or comparable in self.accepts:
            return
        raise JobRejected(
            f"{self.name}({column}) cannot be computed",
            f"column {column!r} is a {written(kind)}, and {self.name} takes"
            f" {', '.join(map(written, self.accepts))}",
            "cast it first, or use a StatefulProcessor",
        )


def aggregation(name: str) -> Aggregation:
    """The entry for a name in any case, or a refusal that lists the names."""
    wanted = name.lower()
    found = AGGREGATIONS.get(_SYNONYMS.get(wanted, wanted))
    if found is None:
        raise JobRejected(
            f"there is no aggregation {name!r}",
            f"there are {', '.join(AGGREGATIONS)}",
            f"{did_you_mean(name, tuple(AGGREGATIONS))}choose one of these",
        )
    return found


def _sum_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else pa.float64()


def _kept_for_avg(kind: pa.DataType) -> tuple[Kept, ...]:
    # Spark adds integers as doubles here, so a mean of large integers does not overflow.
    return ((_FLOAT_SUM if pa.types.is_integer(kind) else _SUM, pa.float64()),)


def _only(kept: Sequence[Array], counts: Array) -> Array:
    del counts
    (results,) = kept
    return results


def _mean(kept: Sequence[Array], counts: Array) -> Array:
    (sums,) = kept
    means: Array = sums / np.maximum(counts, 1)
    return means


_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_ORDERED = (*_NUMBERS, pa.date32(), TIMESTAMP)

_ENTRIES = (
    Aggregation(
        "sum",
        accepts=_NUMBERS,
        result_type=_sum_type,
        keeps=lambda kind: ((_SUM, _sum_type(kind)),),
        finish=_only,
    ),
    Aggregation(
        "count",
        accepts=None,
        result_type=lambda _: pa.int64(),
        keeps=lambda _: (),
        finish=lambda _, counts: counts,
        is_nullable=False,
    ),
    Aggregation(
        "min",
        accepts=_ORDERED,
        result_type=lambda kind: kind,
        keeps=lambda kind: ((_MIN, kind),),
        finish=_only,
    ),
    Aggregation(
        "max",
        accepts=_ORDERED,
        result_type=lambda kind: kind,
        keeps=lambda kind: ((_MAX, kind),),
        finish=_only,
    ),
    Aggregation(
        "avg",
        accepts=_NUMBERS,
        result_type=lambda _: pa.float64(),
        keeps=_kept_for_avg,
        finish=_mean,
    ),
)

AGGREGATIONS: Mapping[str, Aggregation] = {entry.name: entry for entry in _ENTRIES}
"""Every built-in aggregation by its name."""

_SYNONYMS = {"mean": "avg"}
"""Other names that Spark SQL has for an entry."""
