"""Reads the rows of a native instance by what its handle says of them, without a declaration.

A state that is declared in another way now is read so, and so is a checkpoint that is only looked
into.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from weir.core.ids import Millis
from weir.core.snapshots import KeyGroupRange, NativeState
from weir.dataflow.aggregations import COUNT_OF_VALUES, Reduction
from weir.ports.keyed_state import Row, TimeMode
from weir.state.accumulators import Accumulator, count_of
from weir.state.restored_rows import Keys
from weir.state.rocksdb.key_codec import KeyCodec
from weir.state.rocksdb.key_cursor import KeyCursor
from weir.state.rocksdb.native_snapshot import TIME_MODE
from weir.state.rocksdb.rocksdb_aggregates import AggregateEntries
from weir.state.rocksdb.rocksdb_snapshot import GROUP_BYTES, HEAD_BYTES, Readable, StateWriting
from weir.state.rocksdb.rocksdb_states import (
    RocksDBListState,
    RocksDBMapState,
    RocksDBValueState,
    StoredState,
)
from weir.state.rocksdb.rocksdb_timers import RocksDBTimers
from weir.state.rocksdb.write_buffer import WriteBuffer
from weir.state.state_columns import EXPIRES_AT, LIST, TIMER, VALUE
from weir.state.state_schema import StateSchema, state_schema_of_file

_VALUE, _USER_KEY = "value.", "user_key."
_NO_BUFFER = cast("WriteBuffer", None)
"""Rows are decoded from entries; no value is looked up."""


@dataclass(frozen=True, slots=True)
class _StoredRows:
    """The fields as the snapshot has them; rows are used as they are decoded."""

    schema: pa.Schema
    freeze: Callable[[Any], Row] = tuple
    thaw: None = None


def rows_in(
    source: Readable, stored: NativeState, groups: KeyGroupRange, keys: Keys, now: Millis
) -> Iterator[pa.RecordBatch]:
    """The rows of a state that are alive, by key group, which is their first column."""
    state = _state_of(stored)
    codec = KeyCodec(keys.fields)
    return StateWriting(state, lambda: source, groups, keys, codec, now, Path()).batches()


def aggregates_in(
    source: Readable, schema: pa.Schema, groups: KeyGroupRange, keys: Keys
) -> Iterator[pa.RecordBatch]:
    """The accumulators of each key, by key group, which is the first column."""
    accumulators = [_accumulator(field) for field in list(schema)[len(keys.fields) :]]
    first, stop = (group.to_bytes(GROUP_BYTES, "big") for group in (groups.first, groups.last + 1))
    return AggregateEntries(keys.fields, accumulators).batches(source.scan(first, stop))


def schema_of(stored: NativeState) -> StateSchema:
    content = stored.schema.content
    return state_schema_of_file(lambda size: content[:size])


def _state_of(stored: NativeState) -> StoredState:
    schema = schema_of(stored)
    at = (stored.name, stored.number.to_bytes(HEAD_BYTES - GROUP_BYTES, "big"))
    ttl_ms = 0 if EXPIRES_AT.name in [field.name for field in schema.fields] else None
    cursor, rows = KeyCursor(), _fields_under(_VALUE, schema)
    if schema.kind == VALUE:
        return RocksDBValueState(at, _NO_BUFFER, cursor, rows, ttl_ms)
    if schema.kind == LIST:
        return RocksDBListState(at, _NO_BUFFER, cursor, rows, ttl_ms)
    if schema.kind == TIMER:
        metadata = pa.ipc.open_file(pa.py_buffer(stored.schema.content)).schema.metadata
        mode = TimeMode(metadata[TIME_MODE].decode())
        nothing = cast("Any", None)
        return RocksDBTimers(at[1], (nothing, _NO_BUFFER), cursor, mode, nothing)
    both = (_fields_under(_USER_KEY, schema), rows)
    return RocksDBMapState(at, _NO_BUFFER, cursor, both, ttl_ms)


def _fields_under(prefix: str, schema: StateSchema) -> _StoredRows:
    return _StoredRows(
        pa.schema(
            field.with_name(field.name.removeprefix(prefix))
            for field in schema.fields
            if field.name.startswith(prefix)
        )
    )


def _accumulator(field: pa.Field) -> Accumulator:
    name, _, column = field.name.removesuffix(")").partition("(")
    column = "" if column == "*" else column
    if name == COUNT_OF_VALUES.name:
        return count_of(column)
    folded_elsewhere = Reduction(name, COUNT_OF_VALUES.merge, COUNT_OF_VALUES.initial)
    return Accumulator(folded_elsewhere, column, field.type)
