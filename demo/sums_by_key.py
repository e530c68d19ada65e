"""The demo's job, as a user would write it: a running sum for every key, exactly once.

Rows come from a generator in two splits, are shuffled by key, and end in Parquet files. Each output
row names its input row and the sum of its key at that row, so a reader can check
afterwards that nothing was lost, nothing was duplicated and no state was lost.
"""

import os
from collections.abc import Iterator

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from weir import WeirSession


class RunningSum(StatefulProcessor):
    """An ordinary PySpark processor with one value of state for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(  # noqa: N802 - PySpark's name
        self,
        key: object,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803 - PySpark's name
    ) -> Iterator[Row]:
        del key, timerValues
        known = self._total.get()
        total = known[0] if known else 0
        for row in rows:
            total += row.value
            yield Row(split=row.split, offset=row.offset, key=row.key, total=total)
        self._total.update((total,))

    def close(self) -> None:
        """Nothing to close."""


def main() -> None:
    session = (
        WeirSession.builder.appName("running-sums")
        .config("weir.parallelism", 2)
        .config("weir.checkpointing.interval", "1 s")
        .config("weir.checkpointing.storage", os.environ["DEMO_CHECKPOINTS"])
        .config("weir.restart.initialBackoff", "100 ms")
        .getOrCreate()
    )
    rows = (
        session.readStream.format("generator")
        .option("splits", 2)
        .option("keys", 5_000)
        .option("rowsPerSecond", os.environ["DEMO_ROWS_PER_SECOND"])
        .option("rows", os.environ["DEMO_ROWS"])
        .load()
        .uid("rows")
    )
    sums = (
        rows.groupBy("split", "key")
        .transformWithState(RunningSum(), "split int, offset long, key long, total long")
        .uid("sums")
    )
    job = sums.writeStream.format("parquet").uid("files").start(os.environ["DEMO_OUTPUT"])
    job.awaitTermination()
    print(f"the job has ended: {job.status}")  # noqa: T201
    session.stop()


if __name__ == "__main__":
    main()
