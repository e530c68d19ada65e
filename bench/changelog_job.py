"""One measured run of a job with frequent checkpoints on S3, with or without a changelog."""

import argparse
import json
import statistics
import sys
import time

from weir import JobStatus, WeirSession
from weir import functions as F  # noqa: N812 - as PySpark's users write it

BYTES_OF_A_KEY = 40


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--storage", required=True)
    parser.add_argument("--changelog", action="store_true")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    keys = given.megabytes * 1_000_000 // BYTES_OF_A_KEY
    session = (
        WeirSession.builder.appName("changelog")
        .config("weir.parallelism", 2)
        .config("weir.checkpointing.interval", "200 ms")
        .config("weir.checkpointing.storage", given.storage)
        .config("weir.state.changelog.enabled", given.changelog)
        .getOrCreate()
    )
    generator = session.readStream.format("generator").options(
        splits=2, keys=keys, sparseKeys=True, columns="key,value"
    )
    everything = generator.option("rows", 8 * keys).load()
    changes = generator.option("rowsPerSecond", given.rate).load()
    sums = everything.union(changes).groupBy("key").agg(F.sum("value").alias("total"))
    job = sums.writeStream.format("noop").start()
    while job.status is not JobStatus.RUNNING:
        time.sleep(0.01)
    time.sleep(given.seconds)
    done = [r for r in job.driver.statistics.history() if r.location]
    job.stop()
    session.stop()
    durations = sorted(r.duration_ms for r in done[: len(done) // 2 or 1])
    figures = {
        "checkpoints": len(done),
        "state_bytes": max(r.bytes for r in done),
        "p50_ms": statistics.median(durations),
        "p99_ms": durations[int(len(durations) * 0.99)],
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
