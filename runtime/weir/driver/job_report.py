"""Makes the report of a driver for the operator, and writes the last one before the driver ends.

The reader limits the size of what it reads, so the report stays within those limits: a value that
would mislead if it were cut, such as a path, is left out.
"""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from weir.api.report import (
    LONGEST_PATH,
    CheckpointReport,
    JobPhase,
    JobReport,
    Outcome,
    RequestReport,
)
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.driver.statistics import CheckpointRecord, Statistics
from weir.rest.commands import RequestState

log = logging.getLogger("weir.driver")

LARGEST_LAST_REPORT = 4_096
"""Bytes that Kubernetes keeps of a container's termination message."""

SHORTENED = 256
"""Characters of a sentence that are left where room is short."""


class ManagedJob(Protocol):
    """What was submitted, as far as its manager sees it."""

    @property
    def attempt(self) -> int | None: ...
    @property
    def policy(self) -> Policy: ...


class ReportedDriver(Protocol):
    """The driver, as far as the report needs it."""

    @property
    def statistics(self) -> Statistics: ...
    @property
    def why(self) -> str: ...


def report_of(
    submission: ManagedJob, driver: ReportedDriver, requests: Iterable[RequestState]
) -> JobReport:
    statistics = driver.statistics
    status, newest = statistics.status, statistics.newest
    return JobReport(
        attempt=submission.attempt or 0,
        phase=JobPhase[status.name],
        newest=None if newest is None else _checkpoint(newest),
        completed=statistics.counts.completed,
        restarts=statistics.counts.restarts,
        why=driver.why,
        scheduler_running=submission.policy.is_periodic and status is JobStatus.RUNNING,
        slots_missing=statistics.missing_slots,
        requests=tuple(_request(request, statistics) for request in requests),
    )


def _checkpoint(record: CheckpointRecord) -> CheckpointReport:
    return CheckpointReport(
        id=record.checkpoint,
        path=_whole(record.location),
        completed_at_ms=record.ended_at,
        size_bytes=record.bytes,
        duration_ms=record.duration_ms,
    )


def _request(state: RequestState, statistics: Statistics) -> RequestReport:
    made = None if state.checkpoint is None else statistics.find(state.checkpoint)
    return RequestReport(
        id=state.id,
        outcome=Outcome(state.status.value),
        path=_whole(state.location or ""),
        checkpoint=state.checkpoint,
        size_bytes=None if made is None else made.bytes,
        message=": ".join(filter(None, (state.reason, state.message))),
    )


def _whole(path: str) -> str | None:
    """A path that is cut leads elsewhere."""
    return path if path and len(path) <= LONGEST_PATH else None


def write_last_report(report: JobReport, place: Path | None) -> None:
    """The driver ends: write its last report where a place was named for it.

    The file is written in place, because Kubernetes owns it. Without it only the exit code tells
    how the driver ended, so a failure to write it is only logged.
    """
    if place is None:
        return
    try:
        place.write_bytes(trimmed(report))
    except OSError as problem:
        log.warning("The last report could not be left at %s: %s", place, problem.strerror)


def trimmed(report: JobReport) -> bytes:
    """The report as JSON, or as much of it as fits."""
    texts = (shorter.model_dump_json().encode() for shorter in _ever_shorter(report))
    return next(text for text in texts if len(text) <= LARGEST_LAST_REPORT)


def _ever_shorter(report: JobReport) -> Iterator[JobReport]:
    """The ends of long sentences go first, then old requests, and last what is known elsewhere."""
    yield report
    requests = tuple(
        request.model_copy(update={"message": request.message[:SHORTENED]})
        for request in report.requests
    )
    report = report.model_copy(update={"why": report.why[:SHORTENED], "requests": requests})
    yield report
    while report.requests:
        report = report.model_copy(update={"requests": report.requests[1:]})
        yield report
    yield report.model_copy(update={"newest": None})
