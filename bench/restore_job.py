"""One measured run of a job with much state that loses a slot: how long it takes to restore.

Options give the storage of checkpoints, and whether the machine's disk holds copies. All subtasks
are connected, so when a slot is killed all of the state is read again.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time

from weir import JobStatus, Stream, StreamingJob, WeirSession
from weir import functions as F  # noqa: N812 - as PySpark's users write it

KEYED = "wide"
COLUMNS = 8
"""Aggregated columns; each has a sum, a least, a greatest and a count."""
BYTES_PER_KEY = 8 + 4 + COLUMNS * 4 * 8
ROWS_PER_KEY = 3
TRICKLE = 100
"""Rows a second that keep the job alive once all keys are there."""


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory() as local:
        os.environ["WEIR_LOCAL_DIR"] = local
        session = (
            WeirSession.builder.appName("restore")
            .config("weir.parallelism", 2)
            .config("weir.checkpointing.storage", given.storage)
            .config("weir.checkpointing.interval", "10 h")
            .config("weir.state.localRecovery", given.local)
            .config("weir.restart.initialBackoff", "50 ms")
            .getOrCreate()
        )
        keys = int(given.megabytes * 1_000_000 / BYTES_PER_KEY)
        job = _wide(session, keys).uid(KEYED).writeStream.format("noop").start()
        figures = _measure(job, keys * ROWS_PER_KEY, given.times)
        job.stop()
        session.stop()
    _say(json.dumps(figures))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--storage", required=True)
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    return parser.parse_args()


def _wide(session: WeirSession, keys: int) -> Stream:
    """Every key with as many numbers as make a wide row."""
    generator = session.readStream.format("generator").options(
        splits=2, keys=keys, sparseKeys=True, columns="key,value"
    )
    everything = generator.option("rows", keys * ROWS_PER_KEY).load()
    trickle = generator.option("rowsPerSecond", TRICKLE).load()
    more = [f"value + {number} AS v{number}" for number in range(COLUMNS)]
    wide = everything.union(trickle).selectExpr("key", *more)
    return wide.groupBy("key").agg(
        *(
            function(f"v{number}").alias(f"{function.__name__}{number}")
            for number in range(COLUMNS)
            for function in (F.sum, F.min, F.max, F.count)
        )
    )


def _measure(job: StreamingJob, rows: int, times: int) -> dict[str, object]:
    _await_running(job)
    while (taken := _rows(job)) < rows:
        _say(f"{taken:,} of {rows:,} rows")
        _still_there(job)
        time.sleep(1.0)
    _say("the checkpoint")
    job.checkpoint()
    newest = next(record for record in job.driver.statistics.history() if record.location)
    restores: list[float] = []
    recoveries: list[float] = []
    for number in range(times):
        _say(f"loss of a slot, {number + 1} of {times}")
        restore, recovery = _restore(job)
        restores.append(restore)
        recoveries.append(recovery)
    return {
        "bytes": newest.bytes,
        "checkpoint_ms": newest.duration_ms,
        "restore_s": round(statistics.median(restores), 3),
        "recovery_s": round(statistics.median(recoveries), 3),
    }


def _restore(job: StreamingJob) -> tuple[float, float]:
    """Seconds in which every subtask read its state, and seconds since the slot was killed."""
    victim, _ = next(iter(job.driver.slots.heartbeats().values()))
    os.kill(victim.pid, signal.SIGKILL)
    killed = time.monotonic()
    while job.status is not JobStatus.DEPLOYING:
        _still_there(job)
        time.sleep(0.001)
    deployed = time.monotonic()
    _await_running(job)
    running = time.monotonic()
    time.sleep(2.0)
    return running - deployed, running - killed


def _await_running(job: StreamingJob) -> None:
    while job.status is not JobStatus.RUNNING:
        _still_there(job)
        time.sleep(0.001)


def _still_there(job: StreamingJob) -> None:
    assert job.isActive, job.exception()


def _rows(job: StreamingJob) -> int:
    """What the keyed operator has taken in so far."""
    heartbeats = job.driver.slots.heartbeats().values()
    gauges = [gauge for _, pulse in heartbeats for gauge in pulse.gauges]
    return sum(gauge.rows_in for gauge in gauges if gauge.subtask.operator == KEYED)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
