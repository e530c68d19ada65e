"""The accumulators of an aggregation: one number for each key, in an array.

Which accumulators an aggregation has and how they change is declared in ``dataflow.aggregations``;
here each gets its column, its place in a snapshot file and the array of its numbers. Aggregations
of one column share the accumulators that are equal: ``sum(x)``, ``avg(x)`` and ``count(x)`` all
need the count of the values of x that are not null.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.dataflow.aggregations import (
    AGGREGATIONS,
    COUNT_OF_VALUES,
    NO_COLUMN,
    Aggregation,
    Array,
    Reduction,
)
from weir.errors import JobRejected
from weir.ports.keyed_state import Aggregation as Requested
from weir.wire.numpy_columns import arrow_of, dtype_of


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One number for each key. ``column`` is empty for a count of rows."""

    reduction: Reduction
    column: str
    kind: pa.DataType

    @property
    def name(self) -> str:
        """Its column in a snapshot."""
        return f"{self.reduction.name}({self.column or '*'})"

    @property
    def initial(self) -> np.generic:
        dtype = dtype_of(self.kind)
        initial: np.generic = dtype.type(self.reduction.initial(dtype))
        return initial


def count_of(column: str) -> Accumulator:
    return Accumulator(COUNT_OF_VALUES, column, pa.int64())


@dataclass(frozen=True, slots=True)
class AggregatedColumn:
    """An aggregation of one column, with the accumulators that its results are made of."""

    aggregation: Aggregation
    kind: pa.DataType
    """Of the results."""
    accumulators: tuple[Accumulator, ...]
    """The last one is the count of the column's values."""

    def results(self, kept: Sequence[Array]) -> pa.Array:
        """One result for each key, from the numbers of its accumulators."""
        *others, counts = kept
        valid = counts > 0 if self.aggregation.is_nullable else None
        return arrow_of(self.aggregation.finish(others, counts), valid, self.kind)


def aggregated_column(aggregate: Requested, schema: pa.Schema) -> AggregatedColumn:
    """Look an aggregation of rows of this schema up in the table of aggregations."""
    entry = AGGREGATIONS[aggregate.function]
    kind = _column_kind(aggregate, schema)
    entry.check(aggregate.column, kind)
    kept = (
        Accumulator(reduction, aggregate.column, type_) for reduction, type_ in entry.keeps(kind)
    )
    return AggregatedColumn(entry, entry.result_type(kind), (*kept, count_of(aggregate.column)))


def _column_kind(aggregate: Requested, schema: pa.Schema) -> pa.DataType:
    if not aggregate.column:
        return NO_COLUMN
    if aggregate.column not in schema.names:
        raise JobRejected(
            f"{aggregate.function}({aggregate.column}) needs column {aggregate.column!r}",
            f"the columns are {', '.join(schema.names)}",
            "choose one of these",
        )
    return schema.field(aggregate.column).type
