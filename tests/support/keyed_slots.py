"""States of a few keys, without an operator around them: captured, written and read back."""

from collections.abc import Sequence

import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import KeyedPiece
from weir.state.files import KeyedState, read_keyed
from weir.state.pieces import Keys, capture, load
from weir.state.slots import KeySlots
from weir.state.values import KeyedColumn

KEYS = Keys((pa.field("id", pa.int64()),), max_parallelism=128)
ALL_GROUPS = KeyGroupRange(0, 127)


def captured(slots: KeySlots, state: KeyedColumn) -> KeyedPiece:
    (piece,) = capture(slots, [state], KEYS, ALL_GROUPS, {}).keyed
    return piece


def read(piece: KeyedPiece) -> KeyedState:
    return read_keyed(piece.write(), ALL_GROUPS)


def rows(piece: KeyedPiece) -> list[dict[str, object]]:
    """What is in the file, by key."""
    found: Sequence[dict[str, object]] = read(piece).table.to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def refill(piece: KeyedPiece, slots: KeySlots, state: KeyedColumn) -> None:
    load(read(piece), slots, state, KEYS)
