"""Reads one partition of a PySpark reader as a split that can be read again from any row.

A position is ``rows:digest``. PySpark's readers cannot begin in the middle, so a restored split is
read from its beginning: the rows that were emitted before are counted, digested and dropped, and if
their digest is not the one in the position, the rest would not fit what was emitted (spec R5).

Where a source brings the same rows in another order each time, a split can be read whole or not at
all instead: its rows are held back until the last one is there, and then leave in one batch.
"""

import pyarrow as pa

from weir.connectors.pyspark.fetch import Fetch
from weir.connectors.pyspark.row_digest import CHUNK_ROWS, RowDigest
from weir.errors import JobRejected
from weir.ports.operators import Batch

REST_MS = 5
HELD_BYTES = 128 << 20
"""Of one split that is read whole."""


class ReplayDiffers(JobRejected):
    """A source did not bring the rows again that a checkpoint counts on."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"data source {source}: {reason}",
            "the rest of the partition would not fit what was read of it before",
            "let read() bring the same rows in the same order each time; if only their order "
            'changes, set option("splitAtomic", "true")',
        )


class CountedReader:
    """One split, emitted as its rows come."""

    def __init__(self, source: str, fetch: Fetch, position: str) -> None:
        self._source = source
        self._fetch = fetch
        self._digest = RowDigest()
        self._begin = position
        self._wanted = int(position.partition(":")[0]) if position else 0

    def read(self, rows: int) -> Batch | None:
        if self._is_behind:
            self._pass(rows)
            return None
        return self._take(min(rows, self._digest.room))

    @property
    def position(self) -> str:
        return self._begin if self._is_behind else self._reached

    @property
    def is_exhausted(self) -> bool:
        return not self._is_behind and self._fetch.is_over

    @property
    def rest_ms(self) -> int:
        return 0 if self._fetch.has_more else REST_MS

    def close(self) -> None:
        self._fetch.close()

    @property
    def _reached(self) -> str:
        return f"{self._digest.rows}:{self._digest.hexdigest()}"

    @property
    def _is_behind(self) -> bool:
        """Of the position that it was opened at."""
        return self._digest.rows < self._wanted

    def _pass(self, rows: int) -> None:
        """Drop some of the rows that were emitted before, and compare them at the end."""
        left = self._wanted - self._digest.rows
        if self._take(min(rows, self._digest.room, left)) is None and self._fetch.is_over:
            reason = f"a partition had {self._wanted} rows and has {self._digest.rows} now"
            raise ReplayDiffers(self._source, reason)
        if not self._is_behind and self._reached != self._begin:
            raise ReplayDiffers(self._source, f"the first {self._wanted} rows are other ones now")

    def _take(self, rows: int) -> Batch | None:
        batch = self._fetch.take(rows)
        if batch is not None:
            self._digest.take_in(batch)
        return batch


class WholeReader:
    """One split, emitted all at once."""

    def __init__(self, source: str, fetch: Fetch, limit: int = HELD_BYTES) -> None:
        self._source = source
        self._fetch = fetch
        self._limit = limit
        self._held: list[Batch] = []
        self._bytes = 0
        self.is_exhausted = False

    def read(self, rows: int) -> Batch | None:
        """All rows once they are there, however many were asked for."""
        batch = self._fetch.take(max(rows, CHUNK_ROWS))
        if batch is not None:
            self._hold(batch)
        if not self._fetch.is_over:
            return None
        self.is_exhausted = True
        return pa.concat_batches(self._held) if self._held else None

    @property
    def position(self) -> str:
        """It has a beginning and an end, and nothing in between."""
        return ""

    @property
    def rest_ms(self) -> int:
        return 0 if self._fetch.has_more else REST_MS

    def close(self) -> None:
        self._fetch.close()

    def _hold(self, batch: Batch) -> None:
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._limit:
            raise JobRejected(
                f"data source {self._source}: a partition has more than {self._limit >> 20} MiB",
                "with splitAtomic a whole partition is held in memory",
                "make partitions smaller, or leave splitAtomic out if read() brings the same "
                "rows in the same order",
            )
