"""Checks the results of user functions against the declared schema, and shows rows in messages."""

import pyarrow as pa

from weir.ports.operators import Batch

LONGEST_ROW = 200


class ResultMismatch(Exception):
    """A result does not match the declared schema; the caller adds the function's name."""


def fitted(made: object, declared: pa.Schema) -> Batch:
    """The user's batch with its columns in the declared order and types."""
    if not isinstance(made, pa.RecordBatch):
        raise ResultMismatch(f"it gave a {type(made).__name__}, not a pyarrow.RecordBatch")
    if made.schema.equals(declared):
        return made
    if sorted(made.schema.names) != sorted(declared.names):
        found, wanted = ", ".join(made.schema.names), ", ".join(declared.names)
        raise ResultMismatch(f"its result has the columns {found}; declared are {wanted}")
    try:
        arrays = [made.column(field.name).cast(field.type) for field in declared]
    except pa.ArrowException as error:
        raise ResultMismatch(f"its result is not as declared: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=declared)


def first_row(batch: Batch) -> str:
    if not batch.num_rows:
        return "an empty batch"
    text = str(batch.slice(0, 1).to_pylist()[0])
    return text if len(text) <= LONGEST_ROW else text[: LONGEST_ROW - 1] + "…"
