"""Counts the rows of a split and keeps a digest of them that depends on the rows alone.

A replay may bring the same rows in batches of other sizes. So rows are digested in chunks of a
fixed number, each chained to those before it, and the rest since the last full chunk whenever a
position is asked for.
"""

import pyarrow as pa
import xxhash

from weir.ports.operators import Batch

CHUNK_ROWS = 4096


class RowDigest:
    """All rows so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._chain = b""
        self._rest: list[Batch] = []
        self._rest_rows = 0

    @property
    def room(self) -> int:
        """So many rows are left of the chunk; one batch must not hold more."""
        return CHUNK_ROWS - self._rest_rows

    def take_in(self, batch: Batch) -> None:
        assert batch.num_rows <= self.room, "a batch ends where its chunk does"
        self.rows += batch.num_rows
        self._rest.append(batch)
        self._rest_rows += batch.num_rows
        if self._rest_rows == CHUNK_ROWS:
            self._chain = self._folded()
            self._rest, self._rest_rows = [], 0

    def hexdigest(self) -> str:
        return (self._folded() if self._rest_rows else self._chain).hex()

    def _folded(self) -> bytes:
        rest = pa.concat_batches(self._rest)
        digest = xxhash.xxh3_128(self._chain)
        digest.update(rest.serialize())
        return digest.digest()
