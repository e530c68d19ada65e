"""Saves a job before its driver is sent away.

SIGTERM is a fault, not a cancellation: somebody else needs the machine, and the job will go on
elsewhere (spec C12). With time to spare a checkpoint is taken first, so that nothing has to be
repeated; without it the job goes on from the one before (spec R8). How far it came is left behind
for whoever starts it again.
"""

import logging
import os
import signal
import threading
from concurrent.futures import TimeoutError as TooLate
from pathlib import Path
from types import FrameType

from weir.core.action_log import describe_outcome
from weir.core.snapshots import CheckpointKind
from weir.driver.driver_environment import termination_log
from weir.driver.job_report import write_last_report
from weir.spark.streaming_job import StreamingJob

log = logging.getLogger("weir.spark")

GRACE_SECONDS = 20.0
"""Less than the thirty seconds that Kubernetes gives a pod."""

TERMINATED = 128 + signal.SIGTERM


def save_before_eviction(job: StreamingJob) -> None:
    """Only the main thread may say what a signal does; a job started elsewhere just ends."""
    if threading.current_thread() is threading.main_thread():
        place = termination_log(os.environ)
        signal.signal(signal.SIGTERM, lambda number, frame: _evicted(job, place, number, frame))


def _evicted(job: StreamingJob, place: Path | None, number: int, frame: FrameType | None) -> None:
    """A handler must be short, and the main thread may be waiting for the job."""
    del number, frame
    threading.Thread(target=_save_and_exit, args=(job, place), name="weir-eviction").start()


def _save_and_exit(job: StreamingJob, place: Path | None) -> None:
    log.warning("This driver is told to go; taking a checkpoint first.")
    driver = job.driver
    try:
        saved = driver.outcome_of(driver.ask(CheckpointKind.CHECKPOINT))
        assert saved is not None, "what was just asked is known"
        answer = describe_outcome(saved.result(GRACE_SECONDS))
        log.warning("The checkpoint before it goes %s.", answer)
    except TooLate:
        log.warning("There was no time for a checkpoint; the job goes on from the one before.")
    finally:
        _exit(job, place)


def _exit(job: StreamingJob, place: Path | None) -> None:
    try:
        write_last_report(job.report(), place)
    finally:
        os._exit(TERMINATED)
