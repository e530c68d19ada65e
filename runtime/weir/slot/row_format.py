"""The byte formats of a slot: how rows are merged and measured, and how state becomes a file.

The slot's decisions handle batches and file contents without looking inside. All that depends on
Arrow is here, behind one protocol, so that the simulator runs the same slot on plain tuples.
"""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.exchange.batch_sizes import BATCH_BYTES, size_of
from weir.ports.operators import Batch
from weir.slot.in_flight import read_in_flight, write_in_flight
from weir.state.snapshot_files import is_empty, read_list, state_name, write_list

SMALL_ROWS = 1 << 16
"""Batches that together stay below this are merged before they are processed."""


class RowFormat(Protocol):
    """What a slot must know of batches and of the files of snapshots."""

    def merge(self, elements: Sequence[object]) -> list[Batch]:
        """The batches of one channel, small ones joined, in their order."""

    def size_of(self, batch: object) -> int:
        """In bytes, as the batch counts against limits."""

    def write_list(self, items: Sequence[bytes]) -> pa.Buffer: ...
    def read_list(self, content: pa.Buffer, first: int, stop: int) -> list[bytes]: ...
    def state_name(self, content: pa.Buffer) -> str: ...
    def is_empty(self, content: pa.Buffer) -> bool:
        """Whether a file of keyed state has no rows."""

    def write_in_flight(self, batches: Sequence[object]) -> pa.Buffer: ...
    def read_in_flight(
        self,
        content: pa.Buffer,
        groups: KeyGroupRange | None,
        keys: Sequence[str],
        max_parallelism: int,
    ) -> list[Batch]:
        """The batches, restricted to the rows of these key groups unless that is None."""


class ArrowFormat:
    """Record batches, and Arrow files."""

    def merge(self, elements: Sequence[object]) -> list[Batch]:
        """Small batches become one: each costs as much as a few hundred rows do."""
        batches = [element for element in elements if isinstance(element, pa.RecordBatch)]
        assert len(batches) == len(elements), "only a batch can be processed"
        if len(batches) > 1 and _are_small(batches):
            return [pa.concat_batches(batches)]
        return batches

    def size_of(self, batch: object) -> int:
        return size_of(batch) if isinstance(batch, pa.RecordBatch) else 0

    def write_list(self, items: Sequence[bytes]) -> pa.Buffer:
        return write_list(items)

    def read_list(self, content: pa.Buffer, first: int, stop: int) -> list[bytes]:
        return read_list(content, first, stop)

    def state_name(self, content: pa.Buffer) -> str:
        return state_name(content)

    def is_empty(self, content: pa.Buffer) -> bool:
        return is_empty(content)

    def write_in_flight(self, batches: Sequence[object]) -> pa.Buffer:
        return write_in_flight(batches)

    def read_in_flight(
        self,
        content: pa.Buffer,
        groups: KeyGroupRange | None,
        keys: Sequence[str],
        max_parallelism: int,
    ) -> list[Batch]:
        return read_in_flight(content, groups, keys, max_parallelism)


def _are_small(batches: list[Batch]) -> bool:
    """The remainder of a turn counts as one batch, so the result must not be longer than one."""
    if sum(batch.num_rows for batch in batches) > SMALL_ROWS:
        return False
    return sum(size_of(batch) for batch in batches) <= BATCH_BYTES
