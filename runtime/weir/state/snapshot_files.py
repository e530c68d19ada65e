"""Writes and reads the files of a snapshot: Arrow files that any Arrow tool opens.

A file of keyed state is sorted by key group, whose number is its first column, and its schema's
metadata says where each group begins. A range of groups is therefore a range of rows, and a subtask
that inherits half a file after rescaling touches no other row (spec S9, S11). A file of list state
is one column of encoded items.

What the other columns mean is the business of the state that wrote them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected

KEY_GROUP = pa.field("key_group", pa.int32(), nullable=False)
ROWS_PER_BATCH = 1 << 16
RESERVED_FROM_BYTES = 1 << 20
"""From this many bytes on, the memory of a file is reserved before it is written."""
_DESCRIPTION_BYTES = 512
"""More than a batch needs for a column beside its values: its place, its padding, its nulls."""

NAME = b"weir.state"
KEY_COLUMNS = b"weir.key_columns"
MAX_PARALLELISM = b"weir.max_parallelism"
INDEX = b"weir.index"

_ITEMS = pa.schema([pa.field("item", pa.large_binary(), nullable=False)])


@dataclass(frozen=True, slots=True)
class KeyedState:
    """The rows of one keyed state, as many as were asked for."""

    name: str
    table: pa.Table
    key_columns: tuple[str, ...]

    @property
    def key_fields(self) -> list[pa.Field]:
        return [self.table.schema.field(name) for name in self.key_columns]


@dataclass(frozen=True, slots=True)
class _Index:
    """Where the groups that have rows begin, in ascending order of groups."""

    groups: npt.NDArray[np.int64]
    first_rows: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    rows_per_batch: int

    def rows_of(self, wanted: KeyGroupRange) -> range:
        begin = int(np.searchsorted(self.groups, wanted.first, "left"))
        end = int(np.searchsorted(self.groups, wanted.last, "right"))
        if begin == end:
            return range(0)
        return range(
            int(self.first_rows[begin]), int(self.first_rows[end - 1] + self.counts[end - 1])
        )


def write_keyed(
    name: str,
    table: pa.Table,
    groups: npt.NDArray[np.int32],
    key_columns: Sequence[str],
    max_parallelism: int,
) -> pa.Buffer:
    """Lay down a state, given the key group of each row of its table."""
    assert len(groups) == table.num_rows, "each row has a key group"
    # There are never more than 2**15 groups, and NumPy sorts 16-bit numbers in linear time.
    order = np.argsort(groups.astype(np.int16, copy=False), kind="stable")
    metadata = {
        **(table.schema.metadata or {}),
        NAME: name.encode(),
        KEY_COLUMNS: _compact(list(key_columns)),
        MAX_PARALLELISM: str(max_parallelism).encode(),
        INDEX: _index_of(np.bincount(groups, minlength=max_parallelism)),
    }
    schema = pa.schema([KEY_GROUP, *table.schema], metadata=metadata)

    def write_to(sink: pa.NativeFile) -> None:
        with pa.ipc.new_file(sink, schema) as writer:
            for begin in range(0, table.num_rows, ROWS_PER_BATCH):
                rows = order[begin : begin + ROWS_PER_BATCH]
                writer.write_batch(_gather(table, groups, rows, schema))

    return _written_at_once(write_to, _expected_bytes(table, schema)) or _written(write_to)


def _expected_bytes(table: pa.Table, schema: pa.Schema) -> int:
    """About as long as the file will be, and seldom less: the footer repeats the schema."""
    batches = table.num_rows // ROWS_PER_BATCH + 1
    described = 2 * schema.serialize().size + batches * len(schema) * _DESCRIPTION_BYTES
    return int(table.nbytes + KEY_GROUP.type.byte_width * table.num_rows + described)


def _written_at_once(
    write_to: Callable[[pa.NativeFile], None], expected_bytes: int
) -> pa.Buffer | None:
    """The file, in memory of about its size; None if it is small, or longer than expected.

    A buffer that grows is copied each time that it has doubled, into memory that the system must
    clear first: for a large state that takes longer than all the rest.
    """
    if expected_bytes < RESERVED_FROM_BYTES:
        return None
    buffer = pa.allocate_buffer(expected_bytes)
    sink = pa.FixedSizeBufferWriter(buffer)
    try:
        write_to(sink)
    except OSError:
        return None
    return buffer.slice(0, sink.tell())


def _written(write_to: Callable[[pa.NativeFile], None]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    write_to(sink)
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class FileHeader:
    """What a file says of its state beside the schema."""

    name: str
    key_columns: Sequence[str]
    max_parallelism: int


def write_sorted(
    path: Path, header: FileHeader, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> pa.Buffer:
    """Lay down a state that need not fit into memory, in a file that leaves with the result.

    The batches are sorted by key group, which is their first column. Where the groups begin is
    known at the end and written at the beginning, so the batches make a stop on the disk.
    """
    waiting = path.with_suffix(".batches")
    try:
        counts = _write_batches(waiting, schema, batches, header.max_parallelism)
        _write_file(path, waiting, header, schema, counts)
        return pa.memory_map(str(path)).read_buffer()
    finally:
        for file in (waiting, path):
            file.unlink(missing_ok=True)


def _write_batches(
    waiting: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], groups: int
) -> npt.NDArray[np.int64]:
    """How many rows each key group has."""
    counts = np.zeros(groups, np.int64)
    with pa.OSFile(str(waiting), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in _full_batches(batches, schema):
            counts += np.bincount(batch.column(0).to_numpy(), minlength=groups)
            writer.write_batch(batch)
    return counts


def _write_file(
    path: Path,
    waiting: Path,
    header: FileHeader,
    schema: pa.Schema,
    counts: npt.NDArray[np.int64],
) -> None:
    metadata = {
        **(schema.metadata or {}),
        NAME: header.name.encode(),
        KEY_COLUMNS: _compact(list(header.key_columns)),
        MAX_PARALLELISM: str(header.max_parallelism).encode(),
        INDEX: _index_of(counts),
    }
    described = schema.with_metadata(metadata)
    with pa.memory_map(str(waiting)) as source, pa.OSFile(str(path), "wb") as sink:
        waiting.unlink()
        with pa.ipc.new_file(sink, described) as writer:
            for batch in pa.ipc.open_stream(source):
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=described))


def read_keyed(data: pa.Buffer, groups: KeyGroupRange) -> KeyedState:
    """Only the rows of these key groups; the file may hold more of them, or fewer."""
    reader = _open(data)
    metadata = reader.schema.metadata or {}
    if missing := [key.decode() for key in (NAME, KEY_COLUMNS, INDEX) if key not in metadata]:
        raise JobRejected(
            "the Arrow file is not the keyed state of a snapshot",
            f"its metadata has no {', '.join(missing)}",
            "restore from a file that a checkpoint, savepoint or bootstrap wrote",
        )
    rows = _read_index(metadata[INDEX])
    schema = reader.schema.remove(0).with_metadata(_without_ours(metadata))
    batches = [
        pa.RecordBatch.from_arrays(batch.columns[1:], schema=schema)
        for batch in _slices(reader, rows.rows_of(groups), rows.rows_per_batch)
    ]
    return KeyedState(
        metadata[NAME].decode(),
        pa.Table.from_batches(batches, schema),
        tuple(json.loads(metadata[KEY_COLUMNS])),
    )


def state_name(data: pa.Buffer) -> str:
    """Which state a keyed file holds."""
    metadata = _open(data).schema.metadata or {}
    return str(metadata.get(NAME, b"").decode())


def write_list(items: Sequence[bytes]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _ITEMS) as writer:
        column = pa.array(items, pa.large_binary())
        writer.write_batch(pa.RecordBatch.from_arrays([column], schema=_ITEMS))
    return sink.getvalue()


def is_empty(data: pa.Buffer) -> bool:
    """Whether a file has no rows."""
    reader = _open(data)
    return all(not reader.get_batch(at).num_rows for at in range(reader.num_record_batches))


def read_list(data: pa.Buffer, first: int, stop: int) -> list[bytes]:
    """The items from ``first`` up to, not including, ``stop``."""
    items = _open(data).read_all().column(0)
    assert 0 <= first <= stop <= len(items), f"items {first} to {stop} of {len(items)}"
    wanted: list[bytes] = items.slice(first, stop - first).to_pylist()
    return wanted


def _gather(
    table: pa.Table, groups: npt.NDArray[np.int32], rows: npt.NDArray[np.int64], schema: pa.Schema
) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in table.take(pa.array(rows)).columns]
    return pa.RecordBatch.from_arrays([pa.array(groups[rows]), *columns], schema=schema)


def _index_of(rows_by_group: npt.NDArray[np.int64]) -> bytes:
    present = np.flatnonzero(rows_by_group)
    counts = rows_by_group[present]
    return _compact(
        {
            "rows_per_batch": ROWS_PER_BATCH,
            "groups": present.tolist(),
            "first_rows": (np.cumsum(counts) - counts).tolist(),
            "counts": counts.tolist(),
        }
    )


def _full_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows; every batch but the last is full, as readers expect."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_PER_BATCH:
            table = pa.Table.from_batches(waiting, schema).combine_chunks()
            yield table.slice(0, ROWS_PER_BATCH).to_batches()[0]
            rows -= ROWS_PER_BATCH
            waiting = table.slice(ROWS_PER_BATCH).to_batches()
    if rows:
        yield pa.Table.from_batches(waiting, schema).combine_chunks().to_batches()[0]


def _read_index(encoded: bytes) -> _Index:
    index = json.loads(encoded)
    return _Index(
        np.array(index["groups"], np.int64),
        np.array(index["first_rows"], np.int64),
        np.array(index["counts"], np.int64),
        index["rows_per_batch"],
    )


def _slices(
    reader: pa.ipc.RecordBatchFileReader, rows: range, rows_per_batch: int
) -> Iterator[pa.RecordBatch]:
    """The batches that hold these rows, cut to them. Every batch but the last is full."""
    if not rows:
        return
    for number in range(rows.start // rows_per_batch, (rows.stop - 1) // rows_per_batch + 1):
        offset = number * rows_per_batch
        begin, stop = max(rows.start - offset, 0), min(rows.stop - offset, rows_per_batch)
        yield reader.get_batch(number).slice(begin, stop - begin)


def _open(data: pa.Buffer) -> pa.ipc.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(data)
    except pa.ArrowInvalid as error:
        raise JobRejected(
            "a state file is not an Arrow file",
            str(error),
            "restore from another checkpoint",
        ) from error


def _without_ours(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    ours = (NAME, KEY_COLUMNS, MAX_PARALLELISM, INDEX)
    return {key: value for key, value in metadata.items() if key not in ours}


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
