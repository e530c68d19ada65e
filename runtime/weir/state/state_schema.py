"""Describes a keyed state without its rows: its kind, its key and its fields.

A schema is read from the beginning of a snapshot's file or taken from a declared state, and
``weir.state.schema_evolution`` compares the two. The first bytes of a file suffice, however large
the state is, so a driver can check it before anything starts.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import JobRejected
from weir.state.layer_merge import REMOVED
from weir.state.snapshot_files import KEY_COLUMNS, KEY_GROUP, NAME

KIND = b"weir.kind"

AGGREGATES = "aggregates"
"""The kind of a file that names none: a table of running aggregates."""

BEGINNING = 1 << 16
"""So many bytes hold the schema of nearly every file."""

_MAGIC_BYTES, _LENGTH_BYTES = 8, 8
"""Before the schema: the format's name, then a marker and the length of the schema."""


@dataclass(frozen=True, slots=True)
class StateSchema:
    """One keyed state, without its rows."""

    name: str
    kind: str
    """value, list, map, timers, rows or aggregates."""
    keys: tuple[pa.Field, ...]
    fields: tuple[pa.Field, ...]
    is_layer: bool = False
    """Of changed rows: its fields may all be null, because a removed key has none."""


def state_schema_from_arrow(schema: pa.Schema) -> StateSchema:
    """The schema that a file's metadata describe."""
    metadata = schema.metadata or {}
    if not {NAME, KEY_COLUMNS} <= set(metadata):
        raise JobRejected(
            "this Arrow file holds no keyed state",
            "it does not name its state, so no snapshot wrote it",
            "restore from a checkpoint, a savepoint or a bootstrap that is whole",
        )
    keys: list[str] = json.loads(metadata[KEY_COLUMNS])
    own = [field for field in schema if field.name not in (*keys, KEY_GROUP.name)]
    return StateSchema(
        metadata[NAME].decode(),
        metadata.get(KIND, AGGREGATES.encode()).decode(),
        tuple(schema.field(name) for name in keys),
        tuple(field for field in own if field.name != REMOVED.name),
        is_layer=REMOVED.name in schema.names,
    )


def state_schema_of_file(read_start: Callable[[int], bytes]) -> StateSchema:
    """Of a file of which so many first bytes can be asked for."""
    start = read_start(BEGINNING)
    end = _MAGIC_BYTES + _LENGTH_BYTES
    if len(start) > end:
        end += int.from_bytes(start[end - _LENGTH_BYTES // 2 : end], "little")
    if end > len(start):
        start = read_start(end)
    try:
        return state_schema_from_arrow(pa.ipc.read_schema(pa.py_buffer(start[_MAGIC_BYTES:end])))
    except pa.ArrowException as problem:
        raise JobRejected(
            "a state file does not begin as an Arrow file does",
            str(problem),
            "bring it back from a copy, or restore from another checkpoint",
        ) from problem


def distinct_schemas(shapes: Iterable[StateSchema]) -> list[StateSchema]:
    """Each shape once; most files of a state have the same."""
    found: dict[tuple[object, ...], StateSchema] = {}
    for shape in shapes:
        columns = tuple((f.name, str(f.type), f.nullable) for f in (*shape.keys, *shape.fields))
        found.setdefault((shape.name, shape.kind, shape.is_layer, columns), shape)
    return list(found.values())
