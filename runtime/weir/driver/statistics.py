"""Collects statistics about a job's checkpoints from the steps of its driver.

It decides nothing: an error here shows wrong numbers and breaks no checkpoint. Only the newest
checkpoints are kept in detail; the counts cover the driver's whole run.
"""

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from weir.core.attempt import (
    RecycleSlot,
    ReportRestart,
    ReportStatus,
    ResetSubtasks,
    SubtaskFailed,
)
from weir.core.coordinator import actions, events
from weir.core.ids import CheckpointId, Millis, SubtaskId
from weir.core.job_master import Action, Event, Job, Launch
from weir.core.lifecycle import JobStatus, TimePassed
from weir.core.phases import Ended, Phase
from weir.core.snapshots import CheckpointKind, Manifest

KEPT = 50
"""Checkpoints whose details are remembered."""


class Fate(StrEnum):
    """The status of a checkpoint, as Flink names it."""

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
    """Of the wall clock at its trigger: all its timestamps use it, so they are comparable."""
    subtasks: dict[SubtaskId, SubtaskRecord] = field(default_factory=dict)


@dataclass(slots=True)
class Counts:
    """Over the life of this driver."""

    restored: int = 0
    completed: int = 0
    failed: int = 0
    restarts: int = 0


class Statistics:
    """Listens to every step; readers on other threads take copies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[CheckpointId, CheckpointRecord] = {}
        self._order: deque[CheckpointId] = deque()
        self._now = Millis(0)
        self._ahead = 0
        """How far the wall clock is ahead of ``_now``."""
        self.counts = Counts()
        self.status = JobStatus.CREATED
        self.missing_slots = 0
        self.restored: Manifest | None = None
        self.restored_at = Millis(0)
        self.last_failure = ""
        self.failed_subtask: SubtaskFailed | None = None
        """What the last failure was decided on, if a subtask reported it."""
        self._failed_attempt: actions.FailAttempt | None = None
        self.newest: CheckpointRecord | None = None
        """The newest completed checkpoint that the job can restore, however old."""

    def on_step(self, event: Event, job: Job, actions_taken: tuple[Action, ...]) -> None:
        with self._lock:
            if isinstance(event, TimePassed):
                self._now, self._ahead = event.now, event.ahead
            elif isinstance(event, events.SubtaskAcked):
                self._acked(event)
            for action in actions_taken:
                self._record(action)
                has_failed = isinstance(action, ReportStatus) and action.status is JobStatus.FAILED
                if has_failed:
                    self._failed(job.attempt.phase)
                if has_failed or isinstance(action, ReportRestart):
                    self.failed_subtask = event if isinstance(event, SubtaskFailed) else None

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
        """Add the cause, which the log gives with the failed checkpoint and a status does not."""
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

    def _record(self, action: Action) -> None:  # noqa: C901 - one case for each action
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
            case (
                Launch()
                | ResetSubtasks()
                | RecycleSlot()
                | actions.SnapshotOperators()
                | actions.PrepareLocation()
                | actions.Trigger()
                | actions.SendToSubtask()
                | actions.NotifyAborted()
                | actions.NotifyCompleted()
                | actions.WriteManifest()
                | actions.CreateEntry()
                | actions.LookForSuccessor()
                | actions.TruncateLog()
                | actions.DeleteFiles()
                | actions.CommitTransactions()
                | actions.ResolveTransactions()
                | actions.CompleteRequest()
                | actions.EndDriver()
            ):
                pass  # no statistic counts them
            case _:
                assert_never(action)

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
    """For a reader on another thread, because the loop changes the record."""
    return replace(record, subtasks=dict(record.subtasks))
