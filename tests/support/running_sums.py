"""The job of the integration tests as a program: made ready, started and asked from its input.

It starts Spark at once and the job only on command, so that a successor can stand ready
while its predecessor is still in charge. Commands are lines of JSON on the standard input; what
they came to, and how the job ended, are lines of JSON in a file.
"""

import faulthandler
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from fault_injector import inject_driver_faults
from faults import DIRECTORY, Orders
from job_setting import NAME, SHORT_LIVED_JVM, JobSetting
from weir import StreamingJob, WeirSession
from weir.errors import WeirError

SUMS = "split int, offset long, key long, total long"

HESITATION_S = 0.3
"""So long the slow step is slow, and then so long it is not."""

TOO_SLOW = 3
"""So many times as long as there is time for it a row takes while the slow step is slow."""


class RunningSum(StatefulProcessor):
    """The sum of each key so far; it can be made to fail at one row, always or once."""

    def __init__(self, poisoned_offset: int, stumbled: str) -> None:
        self._poisoned_offset = poisoned_offset
        self._stumbled = stumbled

    def init(self, handle: Any) -> None:  # noqa: ANN401 - as PySpark declares it
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: ANN401, N802, N803
        del key, timerValues
        known = self._total.get()
        total = known[0] if known else 0
        for row in rows:
            if row.offset == self._poisoned_offset and row.split == 0:
                self._stumble()
            total += row.value
            yield Row(split=row.split, offset=row.offset, key=row.key, total=total)
        self._total.update((total,))

    def _stumble(self) -> None:
        if self._stumbled:
            if Path(self._stumbled).exists():
                return
            Path(self._stumbled).touch()
        raise ValueError("this row is poisoned")

    def close(self) -> None:
        """Nothing is open."""


def hesitating(
    row_seconds: float,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that is slow and then quick again, so that queues fill up and drain."""

    def hesitate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if time.time() % (2 * HESITATION_S) < HESITATION_S:
                time.sleep(batch.num_rows * row_seconds)
            yield batch

    return hesitate


class Program:
    """One driver process of the job."""

    def __init__(self, setting: JobSetting, home: Path) -> None:
        self._setting = setting
        self._home = home
        self._answers = (home / "answers").open("a", buffering=1)
        self._commands: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._session = self._make_session()

    def _make_session(self) -> WeirSession:
        given = self._setting
        builder = (
            WeirSession.builder.appName(NAME)
            .config("spark.python.daemon.module", "faulty_daemon")
            .config("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
            .config("spark.ui.enabled", "false")
            .config("weir.parallelism", given.parallelism)
            .config("weir.checkpointing.mode", given.mode)
            .config("weir.checkpointing.interval", f"{given.interval_ms} ms")
            .config("weir.checkpointing.storage", given.checkpoints)
        )
        for key, value in given.config:
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def run(self) -> int:
        """The program's exit status."""
        self._session.spark.sparkContext.parallelize(range(2), 2).map(abs).count()
        threading.Thread(target=self._read_commands, daemon=True).start()
        self._say(ready=True)
        first = self._commands.get()
        status = self._run_job(first) if first["do"] == "start" else 0
        self._session.stop()
        return status

    def _read_commands(self) -> None:
        for line in sys.stdin:
            self._commands.put(json.loads(line))
        self._commands.put({"do": "leave"})

    def _run_job(self, start: dict[str, Any]) -> int:
        Orders(Path(os.environ[DIRECTORY])).name_driver(os.getpid())
        job = self._submit(start["rate"])
        threading.Thread(target=self._obey, args=(job,), daemon=True).start()
        try:
            job.awaitTermination()
        except WeirError as problem:
            self._say(ended=str(job.status), problem=str(problem))
            return 1
        self._say(ended=str(job.status), problem="")
        return 0

    def _submit(self, rate: int) -> StreamingJob:
        given = self._setting
        rows = self._session.readStream.format("generator").option("splits", given.splits)
        rows = rows.option("keys", given.keys).option("rows", given.rows)
        stumbled = str(self._home.parent / "stumbled") if given.is_poisoned_once else ""
        processor = RunningSum(given.poisoned_offset, stumbled)
        sums = (
            rows.option("rowsPerSecond", rate)
            .load()
            .uid("rows")
            .groupBy("split", "key")
            .transformWithState(processor, SUMS)
            .uid("sums")
        )
        if given.is_hesitant:
            row_seconds = TOO_SLOW * given.parallelism / rate if rate else 0.0
            slow = sums.repartition("key").mapInArrow(hesitating(row_seconds), SUMS)
            sums = slow.uid("hesitation")
        job = sums.writeStream.format("parquet").uid("files").start(given.output)
        assert isinstance(job, StreamingJob), "what was started is a job of this session"
        return job

    def _obey(self, job: StreamingJob) -> None:
        while (command := self._commands.get())["do"] != "leave":
            try:
                answer = _carried_out(job, command)
            except WeirError as problem:
                self._say(asked=command["do"], problem=str(problem))
            else:
                self._say(asked=command["do"], answer=answer)

    def _say(self, **words: object) -> None:
        self._answers.write(json.dumps(words) + "\n")


def _carried_out(job: StreamingJob, command: dict[str, Any]) -> object:
    match command:
        case {"do": "savepoint", "path": path}:
            return job.savepoint(path)
        case {"do": "checkpoint"}:
            return job.checkpoint()
        case {"do": "stop", "path": path, "drain": drain}:
            return job.stopWithSavepoint(path, drain=drain)
        case {"do": "cancel"}:
            job.stop()
            return "canceled"
        case {"do": "status"}:
            return {"status": str(job.status), "missing": job.driver.statistics.missing_slots}
        case _:
            raise AssertionError(f"there is no command {command}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    faulthandler.register(signal.SIGUSR1)
    inject_driver_faults()
    sys.exit(Program(JobSetting.from_json(sys.argv[1]), Path(sys.argv[2])).run())
