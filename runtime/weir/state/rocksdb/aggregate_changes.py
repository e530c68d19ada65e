"""Remembers which aggregates changed between captures, by the rows of the table that holds them.

The rows of the table in memory are known by number until it is written to RocksDB; from then on a
key that changed is known by itself. A row that was freed may have another key by then, which has
changed as well, and a removed key is known by itself from the beginning (spec S5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.ports.keyed_state import RowNumbers
from weir.state.changed_rows import ChangedRows, distinct
from weir.state.memory.aggregate_table import AggregateTable
from weir.state.rocksdb.changed_keys import ChangedKeys, KnownChanges


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What changed in one interval."""

    generation: int
    """Counts the tables; row numbers mean something in one of them only."""
    row_numbers: RowNumbers
    keys: tuple[pa.Table, ...]

    def __len__(self) -> int:
        return sum(table.num_rows for table in self.keys)


class AggregateChanges:
    """Belongs to the mailbox thread."""

    def __init__(self, keys: Sequence[pa.Field]) -> None:
        self._schema = pa.schema(keys)
        self._history: ChangedKeys[TableChanges] = ChangedKeys()
        self._rows = ChangedRows()
        self._keys: list[pa.Table] = []
        self._generation = 0

    def begun(self, capture: CheckpointId) -> None:
        self._history.begun(capture)

    def truncated(self, capture: CheckpointId) -> None:
        self._history.truncated(capture)

    def changed(self, row_numbers: RowNumbers, size: int) -> None:
        self._rows.add(row_numbers, size)

    def removed(self, keys: Sequence[pa.Array]) -> None:
        self._keys.append(pa.Table.from_arrays(list(keys), schema=self._schema))

    def written_back(self, table: AggregateTable) -> None:
        """The rows of this table have no numbers any more."""
        self._take_rows(table)
        self._generation += 1

    def captured(self, capture: CheckpointId, table: AggregateTable) -> KnownChanges[TableChanges]:
        row_numbers = self._take_rows(table)
        changes = TableChanges(self._generation, row_numbers, tuple(self._keys))
        self._keys = []
        return self._history.captured(capture, changes)

    def _take_rows(self, table: AggregateTable) -> RowNumbers:
        row_numbers = self._rows.drain()
        if len(row_numbers):
            self.removed(table.keys_of(row_numbers))
        return row_numbers


def merged(intervals: Sequence[TableChanges]) -> tuple[RowNumbers, pa.Table | None]:
    """The rows of the newest table, each once, and the keys, which may come several times."""
    newest = intervals[-1].generation
    rows = [each.row_numbers for each in intervals if each.generation == newest]
    tables = [table for each in intervals for table in each.keys]
    return distinct(np.concatenate(rows)), pa.concat_tables(tables) if tables else None
