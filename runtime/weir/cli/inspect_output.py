"""Shows what is in a checkpoint or savepoint, and how two of them differ.

It needs neither Spark nor a running job, because the files of a snapshot describe themselves.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from weir.cli import number_format
from weir.core.enumerator import shown
from weir.slot.event_time import FOREVER, LONG_AGO
from weir.state import state_file_reader
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of
from weir.storage import inspection, state_files
from weir.storage.inspection import (
    Description,
    KeyedDescription,
    ListDescription,
    OperatorDescription,
    StateFileReaders,
)
from weir.storage.object_store import ObjectStore
from weir.storage.savepoint_diff import Difference, types_of
from weir.storage.store_by_scheme import StoreByScheme


def describe_snapshot(path: str) -> tuple[ObjectStore, Description]:
    """The store and the description of the snapshot at a URL."""
    store = StoreByScheme()
    manifest = inspection.find(store, path)
    return store, inspection.describe(store, manifest, StateFileReaders(header_of, read_list))


# -- for people


def headline(description: Description) -> str:
    manifest = description.manifest
    taken = datetime.fromtimestamp(manifest.taken_at / 1_000, UTC).astimezone()
    return (
        f"{manifest.kind} {manifest.checkpoint} of epoch {manifest.epoch},"
        f" taken {taken:%Y-%m-%d %H:%M:%S}, {number_format.size(manifest.bytes)} of state"
    )


def file_statistics(description: Description) -> Iterator[str]:
    """What file merging has done to the snapshot, if it has done something."""
    files = description.files
    if files.is_merged:
        yield (
            f"{files.logical_files} pieces of {number_format.size(files.logical_bytes)} in"
            f" {files.physical_files} files of {number_format.size(files.physical_bytes)},"
            f" space amplification {files.amplification:.2f}"
        )


def of_operators(operators: list[OperatorDescription]) -> Table:
    table = Table("operator", "subtasks", "max", "state", "kind", box=SIMPLE_HEAD)
    for heading in ("rows", "size", "files"):
        table.add_column(heading, justify="right")
    table.add_column("schema", overflow="fold")
    for operator in operators:
        begins: tuple[str, ...] = (
            operator.uid,
            str(operator.parallelism),
            str(operator.max_parallelism),
        )
        for cells in [*_state_cells(operator)] or [("–", "", "", "", "", "")]:
            table.add_row(*map(escape, (*begins, *cells)))
            begins = ("", "", "")
    return table


def _state_cells(operator: OperatorDescription) -> Iterator[tuple[str, ...]]:
    for keyed in operator.keyed:
        files = str(keyed.files) if keyed.files else "inline"
        schema = ", ".join(f"{name} {kind}" for name, kind in types_of(keyed).items())
        rows = f"≤ {keyed.rows}" if keyed.is_layered else str(keyed.rows)
        yield keyed.name, keyed.kind, rows, number_format.size(keyed.bytes), files, schema
    for one in operator.lists:
        kind = f"list, {one.redistribution}"
        yield one.name, kind, str(len(one.items)), number_format.size(one.bytes), "", ""


def log_length(keyed: KeyedDescription) -> str:
    """What a restore replays over the whole state."""
    layers = [handle.file.bytes for part in keyed.parts for handle in part[1:]]
    whole = sum(part[0].file.bytes for part in keyed.parts)
    return (
        f"state {keyed.name}: a whole of {number_format.size(whole)}, and over it"
        f" {len(layers)} segments of changes, {number_format.size(sum(layers))}"
    )


def notes(operator: OperatorDescription) -> Iterator[str]:
    """What a table has no room for: positions, transactions, watermarks, what was unfinished."""
    yield from _native_files(operator)
    for split, position in operator.positions.items():
        yield f"{operator.uid}: split {shown(split)} is read up to {position or 'its beginning'}"
    for keyed in filter(attrgetter("is_layered"), operator.keyed):
        yield f"{operator.uid}: {log_length(keyed)}"
    for free in operator.free_splits:
        yield f"{operator.uid}: split {shown(free)} is not begun"
    for transaction in operator.transactions:
        yield f"{operator.uid}: transaction {transaction.name} is sealed and not committed"
    for edge, watermark in watermarks(operator).items():
        yield f"{operator.uid}: the watermark of {edge} is {watermark}"
    if operator.in_flight:
        yield f"{operator.uid}: rows of {operator.in_flight} channels are in flight"
    if operator.finished:
        yield f"{operator.uid}: {operator.finished} subtasks had finished"


def _native_files(operator: OperatorDescription) -> Iterator[str]:
    for native in operator.native:
        yield (
            f"{operator.uid}: {', '.join(native.states)} in {native.files} files of"
            f" {native.backend}, {number_format.size(native.bytes)}, of which"
            f" {number_format.size(native.new_bytes)} are new in this checkpoint"
        )


def watermarks(operator: OperatorDescription) -> dict[str, int]:
    """Of the inputs that know an event time."""
    return {edge: time for edge, time in operator.watermarks if LONG_AGO < time < FOREVER}


def of_rows(store: ObjectStore, state: KeyedDescription, limit: int) -> Table:
    table = Table(title=escape(state.name), title_justify="left", box=SIMPLE_HEAD)
    for name in state.schema.names:
        table.add_column(escape(name))
    for row in rows_of(store, state, limit):
        table.add_row(*(escape(str(value)) for value in row.values()))
    return table


def of_differences(found: tuple[Difference, ...]) -> Table:
    table = Table("operator", "state", "what", "before", "after", box=SIMPLE_HEAD)
    for one in found:
        cells = (one.operator, one.state, one.what, one.before, one.after)
        table.add_row(*map(escape, cells))
    return table


# -- for programs


def rows_of(store: ObjectStore, state: KeyedDescription, limit: int) -> list[dict[str, object]]:
    """The first rows of a state, by file and then by key group."""
    rows: list[dict[str, object]] = []
    for batch in _batches(store, state):
        if len(rows) >= limit:
            break
        rows += batch.slice(0, limit - len(rows)).to_pylist()
    return rows


def sample(store: ObjectStore, state: KeyedDescription, limit: int) -> dict[str, object]:
    return {"state": state.name, "rows": rows_of(store, state, limit)}


def _batches(store: ObjectStore, state: KeyedDescription) -> Iterator[pa.RecordBatch]:
    for part in state.parts:
        layers = [state_files.fetch(store, handle.file) for handle in part]
        yield from state_file_reader.rows_of(layers, part[0].groups)


def as_json(description: Description, operators: list[OperatorDescription]) -> dict[str, object]:
    manifest = description.manifest
    return {
        "location": manifest.location,
        "checkpoint": manifest.checkpoint,
        "epoch": manifest.epoch,
        "kind": manifest.kind,
        "takenAt": manifest.taken_at,
        "bytes": manifest.bytes,
        "files": {
            "logicalFiles": description.files.logical_files,
            "logicalBytes": description.files.logical_bytes,
            "physicalFiles": description.files.physical_files,
            "physicalBytes": description.files.physical_bytes,
            "spaceAmplification": round(description.files.amplification, 3),
        },
        "problems": [str(problem) for problem in description.problems],
        "operators": [_operator_json(operator) for operator in operators],
    }


def _operator_json(operator: OperatorDescription) -> dict[str, object]:
    return {
        "uid": operator.uid,
        "parallelism": operator.parallelism,
        "maxParallelism": operator.max_parallelism,
        "bytes": operator.bytes,
        "finishedSubtasks": operator.finished,
        "inFlightChannels": operator.in_flight,
        "states": [_keyed_json(state) for state in operator.keyed],
        "lists": [_list_json(one) for one in operator.lists],
        "positions": {shown(split): at for split, at in operator.positions.items()},
        "freeSplits": [shown(split) for split in operator.free_splits],
        "transactions": [transaction.name for transaction in operator.transactions],
        "watermarks": watermarks(operator),
        "native": [
            {
                "backend": native.backend,
                "states": list(native.states),
                "files": native.files,
                "bytes": native.bytes,
                "newBytes": native.new_bytes,
            }
            for native in operator.native
        ],
    }


def _keyed_json(state: KeyedDescription) -> dict[str, object]:
    return {
        "name": state.name,
        "kind": state.kind,
        "rows": state.rows,
        "isLayered": state.is_layered,
        "bytes": state.bytes,
        "files": [*dict.fromkeys(h.file.path for h in state.handles if h.file.path)],
        "keyColumns": list(state.key_columns),
        "schema": types_of(state),
    }


def _list_json(one: ListDescription) -> dict[str, object]:
    return {
        "name": one.name,
        "redistribution": one.redistribution,
        "items": len(one.items),
        "bytes": one.bytes,
    }


def in_json(value: object) -> str:
    """Values that JSON has no form for, as text."""
    if isinstance(value, bytes):
        return value.hex()
    assert isinstance(value, datetime | date | Decimal), f"{type(value)} is in no state"
    return str(value)
