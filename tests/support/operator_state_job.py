"""A real job with every kind of operator state, as a program that kills one of its slots.

It runs twice in one Spark: first narrow, where a slot is killed and the job is stopped with a
savepoint, then wide and to its end. What each subtask knows then is all that is written, one row a
subtask, so whatever was lost or doubled shows in the sums.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from job_setting import QUICK_RESTARTS, SHORT_LIVED_JVM
from wait_until import until
from weir import BroadcastProcessFunction, StateHandle, Stream, StreamingJob, WeirSession
from weir.dataflow.process_functions import Made

NARROW, WIDE = 2, 3
ROWS, RULES = 60_000, 6_000
SECONDS = 60
"""So long the rows would take at the rate of the first run."""

KNOWN = "index int, rows long, total long, rules long, rule_total long, before long"


class Ledger(BroadcastProcessFunction):
    """Counts its rows in a list, all rules in a broadcast map, and its like in a union list."""

    def init(self, handle: StateHandle) -> None:
        self.counted = handle.getListState("counted", "rows long, total long")
        self.present = handle.getUnionListState("present", "index int")
        self.rules = handle.getBroadcastState("rules", "offset long", "value long")

    def open(self, index: int, parallelism: int) -> None:
        assert index < parallelism
        self.index = index
        self.before = len(list(self.present.get()))
        self.present.put([(index,)])

    def processBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        rows, total = self._counted()
        self.counted.put([(rows + batch.num_rows, total + pc.sum(batch.column("value")).as_py())])
        return None

    def processBroadcastBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        for offset, value in zip(
            batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True
        ):
            known = self.rules.getValue((offset,)) or (0,)
            self.rules.updateValue((offset,), (known[0] + value,))
        return None

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows, total = self._counted()
        rules = [value for (value,) in self.rules.values()]
        known = (self.index, rows, total, len(rules), sum(rules), self.before)
        names = [column.split()[0] for column in KNOWN.split(", ")]
        yield pa.RecordBatch.from_pydict({n: [v] for n, v in zip(names, known, strict=True)})

    def _counted(self) -> tuple[int, int]:
        """After a change of width a subtask may have inherited several counts, or none."""
        parts = list(self.counted.get())
        return sum(rows for rows, _ in parts), sum(total for _, total in parts)


def main(home: str) -> None:
    session = _session(home)
    first = _submit(session, home, NARROW, SECONDS)
    _until_checkpoints(first, 2)
    victim = min(first.driver.slots.addresses())
    os.kill(int(victim.rpartition(".")[2]), signal.SIGKILL)
    _until_checkpoints(first, 2)
    first.stopWithSavepoint(f"file://{home}/savepoint")
    _submit(session, home, WIDE, 0).awaitTermination()
    session.stop()


def _session(home: str) -> WeirSession:
    builder = (
        WeirSession.builder.appName("ruled")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
        .config("weir.parallelism", WIDE)
        .config("weir.checkpointing.interval", "300 ms")
        .config("weir.checkpointing.unaligned", "true")
        .config("weir.checkpointing.storage", f"file://{home}/checkpoints")
    )
    for key, value in QUICK_RESTARTS:
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _submit(session: WeirSession, home: str, width: int, seconds: int) -> StreamingJob:
    rules = _generated(session, RULES, seconds).uid("rules").setParallelism(1)
    known = (
        _generated(session, ROWS, seconds)
        .uid("rows")
        .connect(rules.broadcast())
        .process(Ledger(), KNOWN)
        .uid("ledger")
        .setParallelism(width)
    )
    job = known.writeStream.format("parquet").uid("files").start(f"file://{home}/output")
    assert isinstance(job, StreamingJob), "what was started is a job of this session"
    return job


def _generated(session: WeirSession, rows: int, seconds: int) -> Stream:
    source = session.readStream.format("generator").option("rows", rows).option("splits", 2)
    return source.option("rowsPerSecond", rows // seconds if seconds else 0).load()


def _until_checkpoints(job: StreamingJob, more: int) -> None:
    counts = job.driver.statistics.counts
    goal = counts.completed + more
    until(f"checkpoint number {goal}", lambda: counts.completed >= goal, lambda: str(counts))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    main(sys.argv[1])
