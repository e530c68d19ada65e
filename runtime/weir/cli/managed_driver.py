"""Runs a user's script as the driver of a job that a manager started, such as an operator.

It does what ``weir run`` does, for a reader of logs and exit codes instead of a person: no live
view, one log line for each event, and a final report of the job's state when the process ends. If
the script does not wait for its job, this module does. It does not know what the manager does next.
"""

import logging
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from weir.api.report import JobPhase, JobReport
from weir.cli.script_download import local_script
from weir.cli.script_runner import as_python_would
from weir.driver.driver_environment import driver_environment_of, termination_log
from weir.driver.job_report import write_last_report
from weir.driver.started_jobs import STARTED
from weir.errors import JobRejected, WeirError

log = logging.getLogger("weir.cli")

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"

DONE, AGAIN, GIVEN_UP = 0, 1, 2
"""Exit codes: the job is over and well, may be tried again, or needs a person first."""


class TerminatedEarly(SystemExit):
    """SIGTERM arrived before the script had started a job."""


def drive(script: str, arguments: list[str]) -> int:
    """Run the script; returns the exit code. A job that still runs then ends with the process."""
    logging.basicConfig(stream=sys.stderr, format=LINE)
    logging.getLogger("weir").setLevel(logging.INFO)
    place = termination_log(os.environ)
    report = _final_report(_run(script, arguments))
    write_last_report(report, place)
    log.info("The driver ends, and its job is %s.", report.phase)
    if any(job.is_active for job in STARTED.all()):
        sys.stdout.flush()
        os._exit(exit_code(report))
    return exit_code(report)


def exit_code(report: JobReport) -> int:
    if not report.phase.is_over:
        return AGAIN
    return GIVEN_UP if report.phase is JobPhase.FAILED else DONE


def _run(script: str, arguments: list[str]) -> BaseException | None:
    """Run the script; returns the error that ended it, or None."""
    try:
        with _ending_on_sigterm(), tempfile.TemporaryDirectory(prefix="weir-") as folder:
            _run_to_its_end(local_script(script, Path(folder)), arguments)
    except WeirError as problem:
        log.error("%s", problem)  # noqa: TRY400 - the message has the cause and the remedy
        return problem
    except (Exception, SystemExit) as problem:
        log.exception("The script %s failed.", script)
        return problem
    return None


def _run_to_its_end(script: Path, arguments: list[str]) -> None:
    with as_python_would(script, arguments, {}):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        jobs = STARTED.all()
        if not jobs:
            raise JobRejected(
                f"the script {script.name} has ended and started no job",
                "no query was started before its last line",
                "call start() on what it writes",
            )
        for job in jobs:
            job.wait()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """End the script on SIGTERM until it starts a job; the job's own handler saves it first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise TerminatedEarly("the driver received SIGTERM before its script had started a job")


def _final_report(problem: BaseException | None) -> JobReport:
    """The state of the job, or why there is none; of several jobs, the one in the worst state."""
    reports = [job.report() for job in STARTED.all()]
    nothing = JobReport(attempt=_attempt(), phase=JobPhase.CREATED)
    report = max(reports, key=exit_code, default=nothing)
    if problem is None or report.phase.is_over:
        return report
    return report.as_over(_reason(problem), is_rejected=isinstance(problem, JobRejected))


def _reason(problem: BaseException) -> str:
    if isinstance(problem, WeirError | TerminatedEarly):
        return str(problem)
    return f"the script failed, {type(problem).__name__}: {problem}"


def _attempt() -> int:
    """The attempt in the environment, also if the rest of the assignment is invalid."""
    try:
        return driver_environment_of(os.environ).attempt or 0
    except JobRejected:
        return 0
