"""One measured run of a keyed sum at a steady rate: how long rows take to the last operator.

A step behind the source adds the time to each row; a step in front of the sink compares it with the
clock. Keys are many, so that an emitted row seldom stands for more than one change.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weir import JobStatus, StreamingJob, WeirSession
from weir import functions as F  # noqa: N812 - as PySpark's users write it

KEYS = 1_000_000
BIN_MS = 500
"""The curve has one point for so long."""

Samples = np.ndarray[tuple[int, int], np.dtype[np.int64]]


class Stamp(NamedTuple):
    """Adds the microsecond at which the source read a row."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            stamp = pa.array(np.full(batch.num_rows, time.time_ns() // 1000))
            yield batch.append_column("stamp", stamp)


class Measure(NamedTuple):
    """Writes when each row arrived, and how long it took, to a file of this subtask's process."""

    directory: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            now = time.time_ns() // 1000
            stamps = batch.column("newest").to_numpy(zero_copy_only=False)
            samples = np.column_stack((np.full(len(stamps), now), now - stamps))
            with (Path(self.directory) / f"{id(self)}.samples").open("ab") as file:
                file.write(samples.astype(np.int64).tobytes())
            yield batch


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as measured:
        session = (
            WeirSession.builder.appName("latency")
            .config("weir.parallelism", 2)
            .config("weir.checkpointing.interval", given.interval)
            .config("weir.checkpointing.storage", f"file://{directory}")
            .getOrCreate()
        )
        generator = session.readStream.format("generator").options(
            splits=2, keys=KEYS, columns="key,value", rowsPerSecond=given.rate
        )
        stamped = generator.load().mapInArrow(Stamp(), "key long, value long, stamp long")
        sums = stamped.groupBy("key").agg(
            F.sum("value").alias("total"), F.max("stamp").alias("newest")
        )
        seen = sums.mapInArrow(Measure(measured), "key long, total long, newest long")
        job = seen.writeStream.format("noop").start()
        while job.status is not JobStatus.RUNNING:
            assert job.isActive, job.exception()
            time.sleep(0.01)
        time.sleep(given.warm_up)
        began = time.time_ns() // 1000
        time.sleep(given.seconds)
        checkpoints = _checkpoints(job, began)
        job.stop()
        session.stop()
        samples = _samples(Path(measured), began)
    figures = {"checkpoints": checkpoints, **_figures(samples, began)}
    sys.stdout.write(json.dumps(figures) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--interval", default="1 s")
    parser.add_argument("--warm-up", type=float, default=6.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    return parser.parse_args()


def _checkpoints(job: StreamingJob, began: int) -> list[int]:
    """The points of the curve in which a checkpoint was triggered."""
    history = job.driver.statistics.history()
    starts = [record.triggered_at * 1000 - began for record in history]
    return sorted({start // (BIN_MS * 1000) for start in starts if start >= 0})


def _samples(directory: Path, began: int) -> Samples:
    parts = [np.fromfile(path, np.int64).reshape(-1, 2) for path in directory.iterdir()]
    together = np.concatenate(parts)
    return together[together[:, 0] >= began]


def _figures(samples: Samples, began: int) -> dict[str, object]:
    millis = samples[:, 1] / 1000
    p50, p99 = np.percentile(millis, (50, 99))
    bins = (samples[:, 0] - began) // (BIN_MS * 1000)
    return {
        "rows": len(samples),
        "p50_ms": round(float(p50), 1),
        "p99_ms": round(float(p99), 1),
        "max_ms": round(float(millis.max()), 1),
        "curve_ms": [
            round(float(millis[bins == number].max(initial=0)), 1)
            for number in range(int(bins.max()) + 1)
        ],
    }


if __name__ == "__main__":
    main()
