"""What people want to know about a job's checkpoints, gathered from the steps of its driver.

It watches and decides nothing: if it were wrong, a page would be wrong and no checkpoint. Only the
newest are kept in detail; the counts are of the driver's whole life.
"""

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum

from weir.core.attempt import ReportRestart, ReportStatus
from weir.core.coordinator import actions, events
from weir.core.ids import CheckpointId, Millis, SubtaskId
from weir.core.job_master import Action, Event, Job, Launch
from weir.core.lifecycle import JobStatus, TimePassed
from weir.core.phases import Ended, Phase
from weir.core.snapshots import CheckpointKind, Manifest

KEPT = 50
"""Checkpoints whose details are remembered."""


class Fate(StrEnum):
    """Flink's words for how a checkpoint stands."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(slots=True)
class SubtaskRecord:
    """One subtask's part in a checkpoint."""

    acked_at: Millis
    bytes: int
    in_flight_bytes: int
    timings: events.Timings


@dataclass(slots=True)
class CheckpointRecord:
    """One checkpoint, from its trigger to its end."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    triggered_at: Millis
    fate: Fate = Fate.IN_PROGRESS
    ended_at: Millis = Millis(0)
    duration_ms: int = 0
    location: str = ""
    bytes: int = 0
    reason: str = ""
    ahead: int = 0
    """Of the clock when it was triggered: all its stamps are by that, so they can be compared."""
    subtasks: dict[SubtaskId, SubtaskRecord] = field(default_factory=dict)


@dataclass(slots=True)
class Counts:
    """Over the life of this driver."""

    restored: int = 0
    completed: int = 0
    failed: int = 0
    restarts: int = 0


class Statistics:
    """A on_step of every step; readers on other threads take copies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[CheckpointId, CheckpointRecord] = {}
        self._order: deque[CheckpointId] = deque()
        self._now = Millis(0)
        self._ahead = 0
        """How far the wall clock is ahead of that."""
        self.counts = Counts()
        self.status = JobStatus.CREATED
        self.missing_slots = 0
        self.restored: Manifest | None = None
        self.restored_at = Millis(0)
        self.last_failure = ""
        self._failed_attempt: actions.FailAttempt | None = None
        self.newest: CheckpointRecord | None = None
        """The newest completed one that the job can go on from, however long ago."""

    def on_step(self, event: Event, job: Job, said: tuple[Action, ...]) -> None:
        with self._lock:
            match event:
                case TimePassed(now, ahead=ahead):
                    self._now, self._ahead = now, ahead
                case events.SubtaskAcked():
                    self._acked(event)
                case _:
                    pass
            for action in said:
                self._see(action)
                if isinstance(action, ReportStatus) and action.status is JobStatus.FAILED:
                    self._failed(job.attempt.phase)

    def history(self) -> list[CheckpointRecord]:
        """The newest first."""
        with self._lock:
            return [_copy(self._records[checkpoint]) for checkpoint in reversed(self._order)]

    def find(self, checkpoint: int) -> CheckpointRecord | None:
        with self._lock:
            record = self._records.get(CheckpointId(checkpoint))
            return None if record is None else _copy(record)

    def _failed(self, phase: Phase) -> None:
        assert isinstance(phase, Ended), "a job that has failed is over"
        self.last_failure = self._with_cause(phase.why)

    def _with_cause(self, why: str) -> str:
        """The log has told the cause with the failed checkpoint; a status stands alone."""
        failed = self._failed_attempt
        if failed is None or not failed.cause or not why.startswith(failed.why):
            return why
        return f"{why}: {failed.cause}"

    def _acked(self, event: events.SubtaskAcked) -> None:
        record = self._records.get(event.checkpoint)
        if record is not None and event.subtask not in record.subtasks:
            snapshot = event.snapshot
            record.subtasks[event.subtask] = SubtaskRecord(
                self._stamp(record), snapshot.bytes, snapshot.in_flight_bytes, event.timings
            )

    def _see(self, action: Action) -> None:
        match action:
            case ReportStatus(status, missing):
                self.status, self.missing_slots = status, missing
            case actions.FailAttempt():
                self._failed_attempt = action
            case ReportRestart(why=why):
                self.counts.restarts += 1
                self.last_failure = self._with_cause(why)
            case Launch(_, actions.RestoreManifest(manifest, _), _):
                self.counts.restored += 1
                self.restored, self.restored_at = manifest, Millis(self._now + self._ahead)
            case actions.ReportTriggered(checkpoint, kind, at):
                self._begin(CheckpointRecord(checkpoint, kind, at, ahead=self._ahead))
            case actions.ReportCompleted():
                self._completed(action)
            case actions.ReportAborted():
                self._aborted(action)
            case _:
                pass

    def _stamp(self, record: CheckpointRecord) -> Millis:
        return Millis(self._now + record.ahead)

    def _begin(self, record: CheckpointRecord) -> None:
        self._records[record.checkpoint] = record
        self._order.append(record.checkpoint)
        if len(self._order) > KEPT:
            del self._records[self._order.popleft()]

    def _completed(self, report: actions.ReportCompleted) -> None:
        self.counts.completed += 1
        record = self._records.get(report.manifest.checkpoint)
        if record is not None:
            record.fate, record.ended_at = Fate.COMPLETED, self._stamp(record)
            record.duration_ms = report.duration_ms
            record.location, record.bytes = report.manifest.location, report.manifest.bytes
            if record.kind.commits:
                self.newest = _copy(record)

    def _aborted(self, report: actions.ReportAborted) -> None:
        if not report.checkpoint:
            return
        self.counts.failed += 1
        record = self._records.get(report.checkpoint)
        if record is not None:
            record.fate, record.ended_at = Fate.FAILED, self._stamp(record)
            record.reason = f"{report.reason.name}: {report.message}"


def _copy(record: CheckpointRecord) -> CheckpointRecord:
    """For a reader beside the loop, under whose eyes the record would change."""
    return replace(record, subtasks=dict(record.subtasks))
