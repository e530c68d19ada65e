"""One measured run of a keyed job, in a separate process; its figures go to standard output.

It runs what users run, through the public API, and reads the figures that the driver has anyway.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from weir import JobStatus, Stream, StreamingJob, WeirSession
from weir import functions as F  # noqa: N812 - as PySpark's users write it

KEYED = "keyed"


class Sum(StatefulProcessor):
    """A running sum in plain Python."""

    def init(self, handle) -> None:  # noqa: ANN001 - as PySpark declares it
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:  # noqa: ANN001, N802, N803
        del timerValues
        known = self._total.get()
        total = known[0] if known else 0
        for row in rows:
            total += row.value
        self._total.update((total,))
        yield Row(key=key[0], total=total)

    def close(self) -> None:
        """Nothing to close."""


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory() as directory:
        session = _session(given, directory)
        rows = (
            session.readStream.format("generator")
            .options(splits=2, keys=given.keys, sparseKeys=True, columns="key,value")
            .load()
        )
        job = _keyed(rows, given.kind).uid(KEYED).writeStream.format("noop").start()
        figures = _measure(job, given)
        job.stop()
        session.stop()
    sys.stdout.write(json.dumps(figures) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["sum", "processor"], required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--interval", default="0 ms")
    parser.add_argument("--incremental", action="store_true")
    parser.add_argument("--rocksdb-memory", default="", help="state on disk, with so much memory")
    parser.add_argument("--warm-up", type=float, default=8.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--kill", action="store_true")
    return parser.parse_args()


def _session(given: argparse.Namespace, directory: str) -> WeirSession:
    builder = WeirSession.builder.appName("bench")
    if given.rocksdb_memory:
        builder = builder.config("weir.state.backend", "rocksdb").config(
            "weir.state.rocksdbMemory", given.rocksdb_memory
        )
    return (
        builder.config("weir.parallelism", 2)
        .config("weir.checkpointing.interval", given.interval)
        .config("weir.checkpointing.incremental", given.incremental)
        .config("weir.checkpointing.storage", f"file://{directory}")
        .config("weir.restart.initialBackoff", "50 ms")
        .getOrCreate()
    )


def _keyed(rows: Stream, kind: str) -> Stream:
    grouped = rows.groupBy("key")
    if kind == "sum":
        return grouped.agg(F.sum("value").alias("total"))
    return grouped.transformWithState(Sum(), "key long, total long")


def _measure(job: StreamingJob, given: argparse.Namespace) -> dict[str, object]:
    _await_running(job)
    time.sleep(given.warm_up)
    before, began, memory = _rows(job), time.monotonic(), _memory(job)
    time.sleep(given.seconds)
    after, ended = _rows(job), time.monotonic()
    figures: dict[str, object] = {
        "rows_per_second": (after - before) / (ended - began),
        "memory_at_first_mib": memory >> 20,
        "memory_mib": _memory(job) >> 20,
        **_checkpoints(job),
    }
    if given.kill:
        figures["recovery_s"] = [_recovery(job) for _ in range(3)]
    return figures


def _await_running(job: StreamingJob) -> None:
    while job.status is not JobStatus.RUNNING:
        assert job.isActive, job.exception()
        time.sleep(0.005)


def _rows(job: StreamingJob) -> int:
    """What the keyed operator has taken in so far."""
    heartbeats = job.driver.slots.heartbeats().values()
    gauges = [gauge for _, pulse in heartbeats for gauge in pulse.gauges]
    return sum(gauge.rows_in for gauge in gauges if gauge.subtask.operator == KEYED)


def _memory(job: StreamingJob) -> int:
    return sum(pulse.memory_bytes for _, pulse in job.driver.slots.heartbeats().values())


def _checkpoints(job: StreamingJob) -> dict[str, object]:
    done = [record for record in job.driver.statistics.history() if record.location]
    parts = [part for record in done for part in record.subtasks.values()]
    if not parts:
        return {"checkpoints": 0}
    sync = sorted(part.timings.sync_ms for part in parts)
    slowest = [
        (
            max(part.timings.start_delay_ms for part in record.subtasks.values()),
            max(part.timings.async_ms for part in record.subtasks.values()),
        )
        for record in done
        if record.subtasks
    ]
    return {
        "checkpoints": len(done),
        "duration_ms": statistics.median(record.duration_ms for record in done),
        "bytes": statistics.median(record.bytes for record in done),
        "written_bytes": statistics.median(
            sum(part.timings.written_bytes for part in record.subtasks.values()) for record in done
        ),
        "start_delay_ms": statistics.median(delay for delay, _ in slowest),
        "async_ms": statistics.median(written for _, written in slowest),
        "sync_p99_ms": sync[int(len(sync) * 0.99)],
        "alignment_p99_ms": sorted(p.timings.alignment_ms for p in parts)[int(len(parts) * 0.99)],
    }


def _recovery(job: StreamingJob) -> float:
    """From the kill of a slot until every subtask is restored and takes part again."""
    victim, _ = next(iter(job.driver.slots.heartbeats().values()))
    os.kill(victim.pid, signal.SIGKILL)
    killed = time.monotonic()
    while job.status is JobStatus.RUNNING:
        time.sleep(0.001)
    _await_running(job)
    taken = time.monotonic() - killed
    time.sleep(5.0)
    return round(taken, 3)


if __name__ == "__main__":
    main()
