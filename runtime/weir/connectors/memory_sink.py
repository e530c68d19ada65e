"""A sink whose rows end up in the driver's memory: for notebooks, examples and tests.

The memory ends with the driver, so this sink promises exactly once within one driver's life only.
"""

from dataclasses import dataclass, field

import pyarrow as pa

from weir.connectors.driver_staging import DriverStaging, StagedRows
from weir.connectors.staging import StagingWriter
from weir.core.ids import SubtaskId
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.ports.sinks import SinkOwner

LIMIT_BYTES = 256 << 20
"""Of all rows in memory, unless the job sets another limit."""


@dataclass(frozen=True, slots=True)
class MemorySink:
    """Keeps committed rows. The copy that stays in the driver is the one to ask for them."""

    staging: DriverStaging
    limit_bytes: int = LIMIT_BYTES
    _tables: dict[int, pa.Table] = field(default_factory=dict, compare=False, repr=False)
    """By commit number."""

    def __reduce__(self) -> tuple[type["MemorySink"], tuple[DriverStaging, int]]:
        """Slots get the description, never the rows."""
        return MemorySink, (self.staging, self.limit_bytes)

    def open(self, place: TaskInfo) -> StagingWriter:
        return self.staging.writer(place)

    def committer(self) -> "MemoryCommitter":
        return MemoryCommitter(self.staging.staged_rows(), self.limit_bytes, self._tables)

    def rows(self) -> pa.Table:
        """Everything committed so far, in the order of the commits; no columns if nothing was."""
        tables = [table for table in list(self._tables.values()) if table.num_columns]
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


@dataclass(frozen=True, slots=True)
class MemoryCommitter:
    """Loads what is committed."""

    staged_rows: StagedRows
    limit_bytes: int
    tables: dict[int, pa.Table]

    def claim(self, owner: SinkOwner) -> None:
        self.staged_rows.claim(owner)

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        if sequence not in self.tables:
            table = self.staged_rows.load(names)
            self._check_room(table)
            self.tables[sequence] = table
        self.staged_rows.staging.discard(names)

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        self.staged_rows.staging.resolve(subtasks, owner, keep)

    def _check_room(self, table: pa.Table) -> None:
        needed = table.nbytes + sum(held.nbytes for held in self.tables.values())
        if needed > self.limit_bytes:
            raise JobRejected(
                f"the memory sink would hold {needed} bytes",
                f"it may hold {self.limit_bytes}, because it is meant for small results",
                'write to files, or raise option("limitBytes", ...)',
            )
