"""How much a channel may hold, in bytes (spec R7).

Credits count batches, so they bound bytes only if a batch has a longest size. The router cuts
batches to that size; a row that is longer by itself travels alone, for rows are never cut. What
waits at a receiver, or is on its way to it, is therefore never more than its sender's credit times
the longest batch.
"""

from collections.abc import Iterator

import pyarrow as pa

BATCH_BYTES = 1 << 20
"""The longest batch on a channel: long enough that its own cost does not count."""


def size_of(batch: pa.RecordBatch) -> int:
    """As an Arrow message, which is ten times as quick to ask as for the sum of its columns.

    Dictionaries are not in it: all pieces of a batch share them.
    """
    return int(pa.ipc.get_record_batch_size(batch))


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces, none of which is too long unless it is a single row."""
    if batch.num_rows <= 1 or size_of(batch) <= BATCH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from cut(batch.slice(0, half))
    yield from cut(batch.slice(half))
