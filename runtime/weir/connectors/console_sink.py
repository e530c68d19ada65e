"""A sink that prints rows, in PySpark's table format.

A driver prints each commit once; if it dies while it prints, the next driver prints the same rows
again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from weir.connectors.driver_staging import DriverStaging, StagedRows
from weir.connectors.staging import StagingWriter
from weir.core.ids import SubtaskId
from weir.ports.operators import TaskInfo
from weir.ports.sinks import SinkOwner

_RULE = "-" * 43
_ELLIPSIS = "..."
_NARROWEST = 3
_WHOLE = 0


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Prints committed rows in the driver."""

    staging: DriverStaging
    rows: int = 20
    """At most so many of each commit."""
    width: int = 20
    """Longer cells are cut; zero: none is."""

    def open(self, place: TaskInfo) -> StagingWriter:
        return self.staging.writer(place)

    def committer(self) -> "ConsoleCommitter":
        return ConsoleCommitter(self, self.staging.staged_rows())


@dataclass(frozen=True, slots=True)
class ConsoleCommitter:
    """Prints what is committed."""

    sink: ConsoleSink
    staged_rows: StagedRows
    shown: set[int] = field(default_factory=set)

    def claim(self, owner: SinkOwner) -> None:
        self.staged_rows.claim(owner)

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        if sequence not in self.shown:
            table = self.staged_rows.load(names)
            if table.num_rows:
                sys.stdout.write(framed(sequence, table, self.sink.rows, self.sink.width))
                sys.stdout.flush()
            self.shown.add(sequence)
        self.staged_rows.staging.discard(names)

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        self.staged_rows.staging.resolve(subtasks, owner, keep)


def framed(sequence: int, table: pa.Table, rows: int, width: int) -> str:
    """What PySpark's console sink would print of this table."""
    names = table.column_names
    columns = [
        [_cell(value, width) for value in column.to_pylist()]
        for column in table.slice(0, rows).columns
    ]
    sizes = [
        max(_NARROWEST, *map(len, (name, *column)))
        for name, column in zip(names, columns, strict=True)
    ]
    edge = "+" + "+".join("-" * size for size in sizes) + "+\n"
    head, *body = (_line(cells, sizes, width) for cells in (names, *zip(*columns, strict=True)))
    more = f"only showing top {rows} rows\n" if table.num_rows > rows else ""
    title = f"{_RULE}\nBatch: {sequence}\n{_RULE}\n"
    return "".join((title, edge, head, edge, *body, edge, more, "\n"))


def _line(cells: Sequence[str], sizes: Sequence[int], width: int) -> str:
    """Cells that may be cut stand at the right, whole ones at the left."""
    pad = str.ljust if width == _WHOLE else str.rjust
    return "|" + "|".join(pad(cell, size) for cell, size in zip(cells, sizes, strict=True)) + "|\n"


def _cell(value: object, width: int) -> str:
    text = "NULL" if value is None else str(value)
    if width == _WHOLE or len(text) <= width:
        return text
    return text[: width - len(_ELLIPSIS)] + _ELLIPSIS if width > len(_ELLIPSIS) else text[:width]
