"""Reads files of keyed state without restoring from them: for people, for Spark, for a diff.

The schema's metadata describe the content of a file, so a reader needs no operator, job or
processor. The rows come with their key group, in the order of the file.

An incremental checkpoint has several layered files for one range of key groups; the rows of a key
in an older file count only if no newer file has the key.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.ports.keyed_state import Key
from weir.state.columns import keys_of
from weir.state.layer_merge import REMOVED
from weir.state.snapshot_files import INDEX, KEY_COLUMNS, KEY_GROUP, NAME
from weir.state.state_schema import AGGREGATES, KIND


@dataclass(frozen=True, slots=True)
class Header:
    """The description of a file of keyed state, from its metadata."""

    name: str
    kind: str
    """value, list, map, timers, rows or aggregates."""
    schema: pa.Schema
    """The key group, the key columns, then the state's own."""
    key_columns: tuple[str, ...]
    rows: int
    """Of the key groups that were asked for."""


def header_of(data: pa.Buffer, groups: KeyGroupRange) -> Header:
    schema = _open(data).schema
    metadata = schema.metadata
    index = json.loads(metadata[INDEX])
    counts = zip(index["groups"], index["counts"], strict=True)
    return Header(
        metadata[NAME].decode(),
        metadata.get(KIND, AGGREGATES.encode()).decode(),
        schema.remove_metadata(),
        _key_columns(data),
        sum(count for group, count in counts if group in groups),
    )


def rows_of(layers: Sequence[pa.Buffer], groups: KeyGroupRange) -> Iterator[pa.RecordBatch]:
    """The rows of these key groups, with all columns; a later layer has the newer rows of a key."""
    newer: set[Key] = set()
    for number, data in reversed(list(enumerate(layers))):
        found: list[Key] = []
        for batch in _inside(data, groups):
            if len(layers) == 1:
                yield batch
                continue
            keys = keys_of([batch.column(name) for name in _key_columns(data)])
            found += keys if number else ()
            kept = batch.filter(pa.array([key not in newer for key in keys], pa.bool_()))
            shown = _without_removed(kept)
            if shown.num_rows:
                yield shown.cast(_open(layers[0]).schema.remove_metadata())
        newer.update(found)


def _without_removed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A layer names the keys that have no value any more; they have nothing to show."""
    if REMOVED.name not in batch.schema.names:
        return batch
    there = pc.invert(batch.column(REMOVED.name))
    return batch.filter(there).drop_columns([REMOVED.name])


def _inside(data: pa.Buffer, groups: KeyGroupRange) -> Iterator[pa.RecordBatch]:
    reader = _open(data)
    schema = reader.schema.remove_metadata()
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        group = batch.column(KEY_GROUP.name)
        inside = pc.and_(pc.greater_equal(group, groups.first), pc.less_equal(group, groups.last))
        kept = batch.filter(inside)
        if kept.num_rows:
            yield pa.RecordBatch.from_arrays(kept.columns, schema=schema)


def _key_columns(data: pa.Buffer) -> tuple[str, ...]:
    return tuple(json.loads(_open(data).schema.metadata[KEY_COLUMNS]))


def _open(data: pa.Buffer) -> pa.ipc.RecordBatchFileReader:
    try:
        reader = pa.ipc.open_file(data)
    except pa.ArrowInvalid as problem:
        raise JobRejected(
            "this file holds no keyed state",
            f"it is no Arrow file ({problem})",
            "look into another checkpoint, or bring the file back from a copy",
        ) from problem
    if not {NAME, KEY_COLUMNS, INDEX} <= set(reader.schema.metadata or ()):
        raise JobRejected(
            "this Arrow file holds no keyed state",
            "it does not name its state, so no snapshot wrote it",
            "look into a file that a checkpoint, a savepoint or a bootstrap wrote",
        )
    return reader
