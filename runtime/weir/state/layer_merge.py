"""Merges a full file with the layers of changes above it.

Read from the newest to the oldest, a key counts where it is seen first: with its rows, or as gone.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.state.columns import keys_of
from weir.state.snapshot_files import KeyedState

REMOVED = pa.field("state.removed", pa.bool_(), nullable=False)
"""The column that only layers have: whether the key has no value any more."""


def merge_layers(files: Sequence[KeyedState]) -> list[KeyedState]:
    """What counts of each file of one state; they come in the order they were laid.

    No key is in two of them. They may have been written under different declarations, so they stay
    apart: what becomes of their columns is not known here.
    """
    if len(files) == 1 and REMOVED.name not in files[0].table.column_names:
        return [files[0]]
    seen: set[tuple[object, ...]] = set()
    kept: list[KeyedState] = []
    for state in reversed(files):
        keys = list(keys_of([state.table.column(name) for name in state.key_columns]))
        shown = pa.array([key not in seen for key in keys], pa.bool_())
        seen.update(keys)
        kept.append(replace(state, table=_without_removed(state.table.filter(shown))))
    return kept


def _without_removed(table: pa.Table) -> pa.Table:
    if REMOVED.name not in table.column_names:
        return table
    return table.filter(pc.invert(table.column(REMOVED.name)))


def split_removed(table: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """The keys to remove, if it is a layer that has some, and the rows to take over after that."""
    if REMOVED.name not in table.column_names:
        return None, table
    rows = table.drop_columns([REMOVED.name])
    return rows.filter(table.column(REMOVED.name)), _without_removed(table).drop_columns(
        [REMOVED.name]
    )


def layer_of(changed: pa.Table, removed: Sequence[pa.Table]) -> pa.Table:
    """What changed, and the keys that are gone; one that came again is in both, and is there."""
    if not removed:
        return changed
    rows = pa.concat_tables([changed, *removed], promote_options="default")
    is_removed = np.arange(rows.num_rows) >= changed.num_rows
    return rows.append_column(REMOVED, pa.array(is_removed)).combine_chunks()
