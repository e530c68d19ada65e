"""Runs the same keyed sum on Spark Structured Streaming, on the same cores, for comparison."""

import argparse
import json
import sys
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's users write it

ROWS_PER_BATCH = 10_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=45.0)
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS_PER_BATCH)
        .option("numPartitions", 2)
        .load()
    )
    sums = (
        rows.select((F.xxhash64("value") % given.keys).alias("key"), "value")
        .groupBy("key")
        .agg(F.sum("value"))
    )
    with tempfile.TemporaryDirectory() as directory:
        query = (
            sums.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", directory)
            .start()
        )
        time.sleep(given.seconds)
        progress = [p for p in query.recentProgress if p["numInputRows"]][1:]
        query.stop()
    spent = sum(p["durationMs"]["triggerExecution"] for p in progress) / 1000
    rate = sum(p["numInputRows"] for p in progress) / spent
    sys.stdout.write(json.dumps({"rows_per_second": rate, "checkpoints": len(progress)}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
