"""Says what each built-in aggregation keeps for a key, and what it makes of it in the end.

An accumulator is one number for each key: a sum, a count, a least or a greatest value. Several
aggregations share one where they can: whether ``sum(x)`` is null, what ``avg(x)`` divides by, and
``count(x)`` itself are all the count of the values of x that are not null. The rules are those of
SQL: nulls are passed over, and an aggregate of no value is null, except a count, which is 0. NaN is
a value, greater than all others.

Accumulators know arrays of slots; they do not know keys, snapshots or where the arrays come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.dataflow.keyed import check_aggregate
from weir.dataflow.physical import Aggregate, Function
from weir.errors import JobRejected
from weir.wire.flat import dtype_of

Slots = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


class Kept(StrEnum):
    """What an accumulator holds."""

    COUNT = "count"
    SUM = "sum"
    FLOAT_SUM = "float_sum"
    MIN = "min"
    MAX = "max"


_UPDATES = {
    Kept.COUNT: np.add,
    Kept.SUM: np.add,
    Kept.FLOAT_SUM: np.add,
    # Of NaN and a number this takes the number, and max the NaN.
    Kept.MIN: np.fmin,
    Kept.MAX: np.maximum,
}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One number for each key. ``column`` is empty for a count of rows."""

    kept: Kept
    column: str
    kind: pa.DataType

    @property
    def name(self) -> str:
        """Its column in a snapshot."""
        return f"{self.kept}({self.column or '*'})"

    @property
    def beginning(self) -> np.generic:
        """What leaves the first value as it is."""
        dtype = dtype_of(self.kind)
        is_float = dtype.kind == "f"
        number: float = 0
        if self.kept is Kept.MIN:
            number = np.nan if is_float else np.iinfo(dtype).max
        elif self.kept is Kept.MAX:
            number = -np.inf if is_float else np.iinfo(dtype).min
        beginning: np.generic = dtype.type(number)
        return beginning

    def update(self, array: Array, slots: Slots, values: Array) -> None:
        """Take in one value, not null, for each of the slots."""
        if self.kept is Kept.COUNT:
            np.add.at(array, slots, 1)
        else:
            _UPDATES[self.kept].at(array, slots, values.astype(array.dtype, copy=False))


def count_of(column: str) -> Accumulator:
    return Accumulator(Kept.COUNT, column, pa.int64())


ROWS = count_of("")


def accumulators_of(aggregate: Aggregate, schema: pa.Schema) -> tuple[Accumulator, ...]:
    """What to keep for an aggregation of rows of this schema; the one it counts by comes last."""
    if not aggregate.column:
        assert aggregate.function is Function.COUNT, "only a count is of rows"
        return (ROWS,)
    kind = _column_kind(aggregate, schema)
    count = count_of(aggregate.column)
    match aggregate.function:
        case Function.COUNT:
            return (count,)
        case Function.SUM:
            return (_sum_of(aggregate.column, kind), count)
        case Function.AVG if pa.types.is_integer(kind):
            # As in Spark, a mean of large integers must not overflow on the way.
            return (Accumulator(Kept.FLOAT_SUM, aggregate.column, pa.float64()), count)
        case Function.AVG:
            return (_sum_of(aggregate.column, kind), count)
        case Function.MIN | Function.MAX:
            return (Accumulator(Kept(aggregate.function.value), aggregate.column, kind), count)


def result_of(function: Function, kept: Sequence[Array]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """An aggregation's values and which of them are not null, from what it keeps."""
    count = kept[-1]
    if function is Function.COUNT:
        return count, np.ones(len(count), np.bool_)
    valid = count > 0
    if function is Function.AVG:
        return kept[0] / np.maximum(count, 1), valid
    return kept[0], valid


def kind_of(function: Function, several: Sequence[Accumulator]) -> pa.DataType:
    """The type of an aggregation's values."""
    return pa.float64() if function is Function.AVG else several[0].kind


def _sum_of(column: str, kind: pa.DataType) -> Accumulator:
    total = pa.int64() if pa.types.is_integer(kind) else pa.float64()
    return Accumulator(Kept.SUM, column, total)


def _column_kind(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    if aggregate.column not in schema.names:
        raise JobRejected(
            f"{aggregate.function}({aggregate.column}) needs column '{aggregate.column}', which is"
            f" not there. The columns are: {', '.join(schema.names)}."
        )
    kind = schema.field(aggregate.column).type
    check_aggregate(aggregate, kind)
    return kind
