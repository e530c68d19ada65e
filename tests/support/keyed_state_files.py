"""States of a few keys, without an operator around them: captured, written and read back."""

from collections.abc import Sequence

import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import KeyedSnapshot
from weir.state.memory.keyed_snapshot import capture, load
from weir.state.memory.keyed_states import KeyedColumn
from weir.state.memory.row_index import RowIndex
from weir.state.restored_rows import Keys
from weir.state.snapshot_files import KeyedState, read_keyed

KEYS = Keys((pa.field("id", pa.int64()),), max_parallelism=128)
ALL_GROUPS = KeyGroupRange(0, 127)


def captured(row_index: RowIndex, state: KeyedColumn) -> KeyedSnapshot:
    (piece,) = capture(row_index, [state], KEYS, ALL_GROUPS, {}).keyed
    return piece


def read(piece: KeyedSnapshot) -> KeyedState:
    return read_keyed(piece.write(), ALL_GROUPS)


def rows(piece: KeyedSnapshot) -> list[dict[str, object]]:
    """What is in the file, by key."""
    found: Sequence[dict[str, object]] = read(piece).table.to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def refill(piece: KeyedSnapshot, row_index: RowIndex, state: KeyedColumn) -> None:
    load(read(piece), row_index, state, KEYS)
