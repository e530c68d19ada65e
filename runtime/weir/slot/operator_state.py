"""Keeps the operator states of one subtask: lists of rows, and maps that are the same everywhere.

Taking a snapshot copies nothing, whatever the size of a state. A list is a row of Arrow batches,
which are immutable; a map is a dictionary that the first write after a snapshot copies. Both
become bytes when an upload looks at them, beside the mailbox.

In a snapshot a state is a few items, each an Arrow stream that names the state it belongs to. Lists
are shared out by item, so a list is cut into as many as the operator may ever have subtasks, if it
has the rows; what is meant for everyone is one item. Nothing is ever pickled (spec X2).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import pyarrow as pa

from weir.core.rescale import share_of
from weir.core.snapshots import Redistribution
from weir.dataflow.physical import StateDeclaration
from weir.dataflow.results import ResultMismatch, fitted
from weir.dataflow.types import written
from weir.errors import JobRejected
from weir.ports.operators import ListSnapshot
from weir.state.columns import columns_of
from weir.state.row_types import Row, RowType

KIND = b"weir.redistribution"
ROWS_TOGETHER = 4096
BATCHES_TOGETHER = 256
"""Whichever comes first: so many small appends become one batch."""

_KINDS = {
    Redistribution.SPLIT: "list",
    Redistribution.UNION: "union list",
    Redistribution.BROADCAST: "broadcast",
}


class Items(Sequence[bytes]):
    """Even and contiguous parts of a table, each encoded when it is looked at."""

    def __init__(self, count: int, read: Callable[[], pa.Table]) -> None:
        self._count = count
        self._read = read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(self._count))]
        if not 0 <= at < self._count:
            raise IndexError(at)
        first, stop = share_of(at, self._count, self._table.num_rows)
        return _encoded(self._table.slice(first, stop - first))

    @cached_property
    def _table(self) -> pa.Table:
        return self._read()


class RowList:
    """A list state, or one subtask's part of a union list state."""

    def __init__(self, declared: StateDeclaration) -> None:
        self._declared = declared
        self._schema = declared.values
        self._type = RowType(f"state {declared.name!r}", declared.values)
        self._batches: list[pa.RecordBatch] = []
        self._recent: list[pa.RecordBatch] = []
        self._rows: list[Row] = []
        """The newest, which no batch holds yet."""

    # -- for the user

    def exists(self) -> bool:
        return bool(self._rows or self._recent or self._batches)

    def get(self) -> Iterator[tuple[Any, ...]]:
        return iter(_rows_of(self._all(), self._type))

    def put(self, newState: Iterable[tuple[Any, ...]]) -> None:  # noqa: N803
        rows = list(map(self._type.freeze, newState))
        self.clear()
        self._add(rows)

    def appendValue(self, newState: tuple[Any, ...]) -> None:  # noqa: N802, N803
        self._add([self._type.freeze(newState)])

    def appendList(self, newState: Iterable[tuple[Any, ...]]) -> None:  # noqa: N802, N803
        self._add(list(map(self._type.freeze, newState)))

    def clear(self) -> None:
        self._batches, self._recent, self._rows = [], [], []

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.Table.from_batches(self._all(), self._schema)

    def appendArrow(self, rows: pa.RecordBatch | pa.Table) -> None:  # noqa: N802
        self._pack_rows()
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            try:
                self._append(fitted(batch, self._schema))
            except ResultMismatch as misfit:
                raise TypeError(
                    f"state {self._declared.name!r} cannot take it: {misfit}"
                ) from misfit

    # -- for the operator

    def capture(self, most_items: int) -> ListSnapshot:
        batches = self._all()
        rows = sum(batch.num_rows for batch in batches)
        is_shared_out = self._declared.kind is Redistribution.SPLIT
        count = min(rows, most_items if is_shared_out else 1)
        marks = _marked(self._declared).metadata

        def read() -> pa.Table:
            table = pa.Table.from_batches(batches, self._schema).combine_chunks()
            return table.replace_schema_metadata(marks)

        return ListSnapshot(self._declared.name, self._declared.kind, Items(count, read))

    def load(self, items: Sequence[bytes]) -> None:
        for item in items:
            for batch in _decoded(item, self._declared).to_batches():
                self._append(batch.replace_schema_metadata(None))

    def _all(self) -> list[pa.RecordBatch]:
        self._pack_rows()
        return [*self._batches, *self._recent]

    def _add(self, rows: list[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= ROWS_TOGETHER:
            self._pack_rows()

    def _pack_rows(self) -> None:
        if self._rows:
            columns = columns_of(self._rows, list(self._schema))
            self._rows = []
            self._append(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _append(self, batch: pa.RecordBatch) -> None:
        self._recent.append(batch)
        is_long = sum(recent.num_rows for recent in self._recent) >= ROWS_TOGETHER
        if is_long or len(self._recent) >= BATCHES_TOGETHER:
            self._batches.append(pa.concat_batches(self._recent))
            self._recent = []


class BroadcastMap:
    """A broadcast state, which its operator opens to changes only for the broadcast input."""

    def __init__(self, declared: StateDeclaration) -> None:
        self._declared = declared
        self._keys = RowType(f"key of state {declared.name!r}", declared.keys)
        self._values = RowType(f"state {declared.name!r}", declared.values)
        self._entries: dict[Row, Row] = {}
        self._is_captured = False
        self._table: pa.Table | None = None
        self.is_open = False
        """Whether user code may change it now."""

    # -- for the user

    def exists(self) -> bool:
        return bool(self._entries)

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        value = self._entries.get(self._keys.freeze(key))
        return value if value is None else _thawed(value, self._values)

    def containsKey(self, key: tuple[Any, ...]) -> bool:  # noqa: N802
        return self._keys.freeze(key) in self._entries

    def iterator(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        return zip(self.keys(), self.values(), strict=True)

    def keys(self) -> Iterator[tuple[Any, ...]]:
        return iter([_thawed(key, self._keys) for key in self._entries])

    def values(self) -> Iterator[tuple[Any, ...]]:
        return iter([_thawed(value, self._values) for value in self._entries.values()])

    def toArrow(self) -> pa.Table:  # noqa: N802
        if self._table is None:
            self._table = _table_of(self._entries, self._declared.columns)
        return self._table

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        frozen = self._keys.freeze(key), self._values.freeze(value)
        self._begin_change()
        self._entries[frozen[0]] = frozen[1]

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        frozen = self._keys.freeze(key)
        self._begin_change()
        self._entries.pop(frozen, None)

    def clear(self) -> None:
        self._begin_change()
        self._entries.clear()

    def _begin_change(self) -> None:
        if not self.is_open:
            raise TypeError(
                f"state {self._declared.name!r} must stay the same in every subtask, so only "
                "processBroadcastBatch may change it; keep what differs in a list state"
            )
        if self._is_captured:
            self._entries = dict(self._entries)
            self._is_captured = False
        self._table = None

    # -- for the operator

    def capture(self, most_items: int) -> ListSnapshot:
        del most_items
        self._is_captured = True
        entries, schema = self._entries, _marked(self._declared)
        items = Items(min(len(entries), 1), lambda: _table_of(entries, schema))
        return ListSnapshot(self._declared.name, self._declared.kind, items)

    def load(self, items: Sequence[bytes]) -> None:
        width = len(self._declared.keys)
        for item in items:
            for row in zip(*_decoded(item, self._declared).to_pydict().values(), strict=True):
                key, value = self._keys.freeze(row[:width]), self._values.freeze(row[width:])
                self._entries[key] = value


def state_for(declared: StateDeclaration) -> RowList | BroadcastMap:
    if declared.kind is Redistribution.BROADCAST:
        return BroadcastMap(declared)
    return RowList(declared)


def _rows_of(batches: Sequence[pa.RecordBatch], row_type: RowType) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        if row_type.thaw is None:
            yield from rows
        else:
            yield from (row_type.thaw(row_type.freeze(row)) for row in rows)


def _thawed(row: Row, row_type: RowType) -> tuple[Any, ...]:
    return row if row_type.thaw is None else row_type.thaw(row)


def _table_of(entries: Mapping[Row, Row], schema: pa.Schema) -> pa.Table:
    rows = [(*key, *value) for key, value in entries.items()]
    return pa.Table.from_arrays(columns_of(rows, list(schema)), schema=schema)


# -- items


def _marked(declared: StateDeclaration) -> pa.Schema:
    """The columns of a state, with its kind, so that another kind of state is not taken for it."""
    return declared.columns.with_metadata({KIND: declared.kind.value.encode()})


def _encoded(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _decoded(item: bytes, declared: StateDeclaration) -> pa.Table:
    with pa.ipc.open_stream(item) as reader:
        table = reader.read_all()
    kind = Redistribution((table.schema.metadata or {})[KIND].decode())
    if kind is not declared.kind:
        raise JobRejected(
            f"state {declared.name!r} is a {_KINDS[declared.kind]} state in the function",
            f"it is a {_KINDS[kind]} state in the checkpoint",
            "give the new one another name",
        )
    if not table.schema.equals(declared.columns):
        raise JobRejected(
            f"state {declared.name!r} was declared with other columns than the checkpoint has",
            _difference(table.schema, declared.columns),
            "declare it as it was, or give it another name",
        )
    return table


def _difference(known: pa.Schema, declared: pa.Schema) -> str:
    before, now = _types(known), _types(declared)
    changes = [
        f"{name} was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    return "; ".join(changes) or f"their order was {', '.join(known.names)}"


def _types(schema: pa.Schema) -> dict[str, str]:
    return {
        field.name: written(field.type) + ("" if field.nullable else " not null")
        for field in schema
    }
