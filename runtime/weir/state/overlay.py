"""Makes one state out of a whole file and the layers of changes that lie over it.

Read from the newest to the oldest, a key counts where it is seen first: with its rows, or as gone.
"""

from collections.abc import Sequence

import pyarrow as pa

from weir.state.columns import keys_of
from weir.state.files import KeyedState

REMOVED = pa.field("state.removed", pa.bool_(), nullable=False)
"""The column that tells a layer from a whole: whether the key has no value any more."""


def laid_over(files: Sequence[KeyedState]) -> KeyedState:
    """The files of one state in the order they were laid, the newest last."""
    whole = files[0]
    if len(files) == 1 and REMOVED.name not in whole.table.column_names:
        return whole
    seen: set[tuple[object, ...]] = set()
    kept: list[pa.Table] = []
    for state in reversed(files):
        keys = list(keys_of([state.table.column(name) for name in state.key_columns]))
        shown = pa.array([key not in seen for key in keys], pa.bool_())
        seen.update(keys)
        kept.append(_without_removed(state.table.filter(shown), whole.table.schema))
    return KeyedState(whole.name, pa.concat_tables(reversed(kept)), whole.key_columns)


def _without_removed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if REMOVED.name not in table.column_names:
        return table
    there = pa.compute.invert(table.column(REMOVED.name))
    return table.filter(there).drop_columns([REMOVED.name]).cast(schema)
