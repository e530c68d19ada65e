"""One measured run of a job whose last step is slow; how long its checkpoints take."""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from weir import JobStatus, WeirSession

COLUMNS = "split int, offset long, key long, value long, event_time timestamp"


def slow_for(seconds: float) -> Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return slow


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--unaligned", action="store_true")
    parser.add_argument("--call-ms", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=25.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        session = (
            WeirSession.builder.appName("backpressure")
            .config("weir.parallelism", 2)
            .config("weir.checkpointing.interval", "1 s")
            .config("weir.checkpointing.storage", f"file://{directory}")
            .config("weir.checkpointing.unaligned", given.unaligned)
            .getOrCreate()
        )
        rows = session.readStream.format("generator").options(splits=2, keys=1000).load()
        slow = rows.repartition(2, "key").mapInArrow(slow_for(given.call_ms / 1000), COLUMNS)
        job = slow.writeStream.format("noop").start()
        while job.status is not JobStatus.RUNNING:
            time.sleep(0.01)
        time.sleep(given.seconds)
        done = [r for r in job.driver.statistics.history() if r.location][:-1]
        job.stop()
        session.stop()
    figures = {
        "checkpoints": len(done),
        "duration_ms": statistics.median(r.duration_ms for r in done) if done else None,
        "longest_ms": max((r.duration_ms for r in done), default=None),
        "bytes": statistics.median(r.bytes for r in done) if done else None,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
