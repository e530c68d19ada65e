"""A job that reads a DataFrame of Spark's on executors whose slots are all taken, as a program.

Spark must read the DataFrame while the job's slots hold their cores. If no core were left for it,
the program would never end.
"""

import sys
from pathlib import Path

from job_setting import SHORT_LIVED_JVM
from weir import WeirSession

ROWS = 20_000
EXECUTORS = (
    ("spark.master", "local-cluster[2,3,512]"),
    ("spark.executor.memory", "512m"),
    ("spark.executor.extraJavaOptions", SHORT_LIVED_JVM),
    ("spark.weir.slotCores", "2"),
)
"""Two executors, each with room for one slot and for one task of another job."""


def main(home: Path) -> None:
    builder = (
        WeirSession.builder.appName("squares")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
        .config("weir.parallelism", 2)
        .config("weir.checkpointing.interval", "300 ms")
        .config("weir.checkpointing.storage", f"file://{home}/checkpoints")
    )
    for key, value in EXECUTORS:
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    squares = session.spark.range(0, ROWS, 1, 4).selectExpr("id", "id * id AS square")
    rows = session.fromDataFrame(squares).filter("id % 2 = 0")
    job = rows.writeStream.format("parquet").uid("files").start(f"file://{home}/output")
    job.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
