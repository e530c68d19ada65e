"""The job whose savepoints are kept, one for each format, so that later releases prove to read them.

It has one of everything: a source with positions, a processor with each kind of state and timers,
an aggregation, and a sink with transactions. Run as a program it makes a savepoint of today:

    python tests/support/golden_job.py /tmp/golden
"""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, and so are those nobody needs

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from weir.dataflow import functions as F  # noqa: N812 - as users write it
from weir.dataflow.stream import Stream
from weir.spark import WeirSession

FAR_AHEAD_MS = 4_102_444_800_000
"""The year 2100: such a timer never fires while somebody looks."""

GENERATED = {"splits": "2", "keys": "5", "rows": "1000", "rowsPerSecond": "20"}
PROCESSED = "key long, value long, total long"


class OneOfEach(StatefulProcessor):
    """Keeps a sum, the last rows, a count by parity and a timer for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._total = handle.getValueState("total", "total long, rows int")
        self._seen = handle.getListState("seen", "value long")
        self._parities = handle.getMapState("parities", "parity string", "rows long")

    def handleInputRows(
        self, key: Any, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        total, count = self._total.get() or (0, 0)
        for row in rows:
            parity = ("odd" if row.value % 2 else "even",)
            known = self._parities.getValue(parity)
            self._parities.updateValue(parity, ((known[0] if known else 0) + 1,))
            self._seen.appendValue((row.value,))
            total, count = total + row.value, count + 1
            yield Row(key=row.key, value=row.value, total=total)
        self._total.update((total, count))
        self._handle.registerTimer(FAR_AHEAD_MS + key[0])

    def close(self) -> None:
        """Nothing to close."""


def golden_stream(session: WeirSession) -> Stream:
    rows = session.readStream.format("generator").options(**GENERATED).load().uid("rows")
    processed = (
        rows.groupBy("key")
        .transformWithState(OneOfEach(), PROCESSED, timeMode="ProcessingTime")
        .uid("each")
    )
    sums = processed.groupBy("key").agg(F.sum("value").alias("sum"), F.count("*").alias("rows"))
    return sums.uid("sums")


def make(home: Path) -> str:
    """Let the job run for a moment; where its savepoint is."""
    session = (
        WeirSession.builder.appName("golden")
        .config("weir.parallelism", 2)
        .config("weir.maxParallelism", 8)
        .config("weir.checkpointing.interval", "1 h")
        .config("weir.checkpointing.inlineThreshold", "1 KiB")
        .config("weir.checkpointing.storage", f"file://{home}/checkpoints")
        .getOrCreate()
    )
    written = golden_stream(session).writeStream.format("parquet").uid("files")
    job = written.start(str(home / "output"))
    time.sleep(3)
    where = job.savepoint(f"file://{home}/savepoint")
    job.stop()
    session.stop()
    return where


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]).absolute())}\n")
