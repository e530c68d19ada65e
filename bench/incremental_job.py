"""One measured run of a job in which few of many keys change; how much its checkpoints upload."""

import argparse
import json
import statistics
import sys
import tempfile
import time

from weir import JobStatus, WeirSession
from weir import functions as F  # noqa: N812 - as PySpark's users write it

KEYS = 1_000_000
CHANGED_A_SECOND = 10_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--incremental", action="store_true")
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        session = (
            WeirSession.builder.appName("incremental")
            .config("weir.parallelism", 2)
            .config("weir.checkpointing.interval", "1 s")
            .config("weir.checkpointing.storage", f"file://{directory}")
            .config("weir.checkpointing.incremental", given.incremental)
            .getOrCreate()
        )
        generator = session.readStream.format("generator").options(
            splits=2, keys=KEYS, sparseKeys=True, columns="key,value"
        )
        everything = generator.option("rows", 8 * KEYS).load()
        changes = generator.option("rowsPerSecond", CHANGED_A_SECOND).load()
        sums = everything.union(changes).groupBy("key").agg(F.sum("value").alias("total"))
        job = sums.writeStream.format("noop").start()
        while job.status is not JobStatus.RUNNING:
            time.sleep(0.01)
        time.sleep(given.seconds)
        done = [r for r in job.driver.statistics.history() if r.location]
        job.stop()
        session.stop()
    newest = done[: len(done) // 2]
    figures = {
        "checkpoints": len(done),
        "state_bytes": max(r.bytes for r in done),
        "duration_ms": statistics.median(r.duration_ms for r in newest),
        "written_bytes": statistics.median(
            sum(part.timings.written_bytes for part in r.subtasks.values()) for r in newest
        ),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
