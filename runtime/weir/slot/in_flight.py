"""Batches that an unaligned barrier overtook, as a file: an Arrow stream, in the order they had."""

from collections.abc import Sequence

import pyarrow as pa

from weir.core.key_groups import Groups
from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import Batch
from weir.wire.keys import key_groups


def write_in_flight(batches: Sequence[object]) -> pa.Buffer:
    rows = [batch for batch in batches if isinstance(batch, pa.RecordBatch)]
    assert len(rows) == len(batches), "only batches are in flight"
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, rows[0].schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return target.getvalue()


def read_in_flight(
    content: pa.Buffer, groups: KeyGroupRange | None, keys: Sequence[str], max_parallelism: int
) -> list[Batch]:
    """The batches, restricted to the rows of some key groups where that is asked for."""
    with pa.ipc.open_stream(content) as reader:
        batches = list(reader)
    if groups is None:
        return batches
    kept = [
        _restricted(batch, groups, key_groups(batch, keys, max_parallelism)) for batch in batches
    ]
    return [batch for batch in kept if batch.num_rows]


def _restricted(batch: Batch, groups: KeyGroupRange, of_rows: Groups) -> Batch:
    inside = (of_rows >= groups.first) & (of_rows <= groups.last)
    return batch.filter(pa.array(inside))
