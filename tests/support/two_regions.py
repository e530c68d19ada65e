"""A real job of two regions, as a program that hurts itself: user code stumbles, a slot is killed.

Two readers and three writers are joined by a rescaled edge: reader 0 has writers 0 and 1, reader 1
has writer 2, and nothing joins the two groups. A slot hosts one index of each operator, so slot 1
has reader 1 of the one region and writer 1 of the other.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from job_setting import QUICK_RESTARTS, SHORT_LIVED_JVM
from wait_until import until
from weir import StreamingJob, WeirSession
from weir.core.ids import OperatorId, SubtaskId

NAME = "regions"
READERS, WRITERS = 2, 3
ROWS, SECONDS = 80_000, 7
READ = OperatorId("rows")


@dataclass(frozen=True, slots=True)
class FailureLog:
    """What the reading processes did, as files that user code writes and the test reads."""

    home: Path

    def order_stumble(self, pid: int) -> None:
        self._order(pid).touch()

    def may_go_on(self) -> bool:
        """Whether this process does not have to fail; it has to once."""
        if not self._order(os.getpid()).exists():
            return True
        self._order(os.getpid()).unlink()
        return False

    def note(self, batch: pa.RecordBatch) -> None:
        split, offsets = batch.column("split")[0].as_py(), batch.column("offset")
        with (self.home / f"read-by-{os.getpid()}").open("a") as file:
            file.write(f"{split} {offsets[0].as_py()} {offsets[-1].as_py()}\n")

    def close_chapter(self, name: str) -> None:
        """Keep what was noted so far under this name."""
        chapter = self.home / name
        chapter.mkdir()
        for page in self.home.glob("read-by-*"):
            (chapter / page.name).write_bytes(page.read_bytes())

    def read_by(self, chapter: str, pid: int) -> list[tuple[int, int, int]]:
        """Split, first offset and last of each batch, in order; a line under way is left out."""
        whole, _, _ = (self.home / chapter / f"read-by-{pid}").read_text().rpartition("\n")
        lines = [line.split() for line in whole.splitlines()]
        return [(int(split), int(first), int(last)) for split, first, last in lines]

    def _order(self, pid: int) -> Path:
        return self.home / f"stumble-{pid}"


def noted(
    home: str,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that passes rows on and records them, or fails on request."""

    def note(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failure_log = FailureLog(Path(home))
        for batch in batches:
            if not failure_log.may_go_on():
                raise ValueError("this process has to fail")
            failure_log.note(batch)
            yield batch

    return note


def main(home: str) -> None:
    session = _session(home)
    job = _submit(session, home)
    failure_log = FailureLog(Path(home))
    _until_checkpoints(job, 2)
    failure_log.order_stumble(_process_of(job, SubtaskId(READ, 0)))
    until("a restart", lambda: job.driver.statistics.counts.restarts == 1, str)
    _until_checkpoints(job, 2)
    failure_log.close_chapter("before-the-kill")
    os.kill(_process_of(job, SubtaskId(READ, 1)), signal.SIGKILL)
    job.awaitTermination()
    session.stop()


def _session(home: str) -> WeirSession:
    builder = (
        WeirSession.builder.appName(NAME)
        .config("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
        .config("weir.parallelism", WRITERS)
        .config("weir.checkpointing.interval", "300 ms")
        .config("weir.checkpointing.storage", f"file://{home}/checkpoints")
    )
    for key, value in QUICK_RESTARTS:
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _submit(session: WeirSession, home: str) -> StreamingJob:
    source = session.readStream.format("generator").option("splits", READERS).option("rows", ROWS)
    rows = source.option("rowsPerSecond", ROWS // SECONDS).load().uid(READ).setParallelism(READERS)
    passed = rows.select("split", "offset").mapInArrow(noted(home), "split int, offset long")
    written = passed.rescale().writeStream.format("parquet").uid("files").setParallelism(WRITERS)
    job = written.start(f"file://{home}/output")
    assert isinstance(job, StreamingJob), "what was started is a job of this session"
    return job


def _process_of(job: StreamingJob, subtask: SubtaskId) -> int:
    """The process that hosts the subtask, as soon as it has reported it."""

    def look() -> int:
        for registered, heartbeat in job.driver.slots.heartbeats().values():
            if subtask in [gauge.subtask for gauge in heartbeat.gauges]:
                return registered.pid
        return 0

    return until(f"a slot with {subtask}", look, str)


def _until_checkpoints(job: StreamingJob, more: int) -> None:
    counts = job.driver.statistics.counts
    goal = counts.completed + more
    until(f"checkpoint number {goal}", lambda: counts.completed >= goal, lambda: str(counts))


if __name__ == "__main__":
    main(sys.argv[1])
