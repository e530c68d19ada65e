"""Takes a checkpoint when the driver is evicted.

SIGTERM is a fault, not a cancellation: the machine is needed for something else, and the job
continues elsewhere (spec C12). If there is time, the driver takes a checkpoint first, so that no
work is repeated; otherwise the job continues from the one before (spec R8). The driver writes a
final report for the process that starts the job again.
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
    """Handle SIGTERM. Only the main thread can; a job started in another thread ends at once."""
    if threading.current_thread() is threading.main_thread():
        place = termination_log(os.environ)
        signal.signal(signal.SIGTERM, lambda number, frame: _evicted(job, place, number, frame))


def _evicted(job: StreamingJob, place: Path | None, number: int, frame: FrameType | None) -> None:
    """Start a thread: a handler must be short, and the main thread may be waiting for the job."""
    del number, frame
    threading.Thread(target=_save_and_exit, args=(job, place), name="weir-eviction").start()


def _save_and_exit(job: StreamingJob, place: Path | None) -> None:
    log.warning("The driver received SIGTERM and takes a checkpoint before it ends.")
    driver = job.driver
    try:
        saved = driver.outcome_of(driver.ask(CheckpointKind.CHECKPOINT))
        assert saved is not None, "what was just asked is known"
        answer = describe_outcome(saved.result(GRACE_SECONDS))
        log.warning("The checkpoint before its end %s.", answer)
    except TooLate:
        log.warning("The checkpoint timed out; the job continues from the one before.")
    finally:
        _exit(job, place)


def _exit(job: StreamingJob, place: Path | None) -> None:
    try:
        write_last_report(job.report(), place)
    finally:
        os._exit(TERMINATED)
