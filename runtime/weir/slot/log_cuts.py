"""Cuts the changelog of a subtask: at barriers, and after turns that changed much.

A completed checkpoint truncates it, and ends what only older checkpoints needed.
"""

from weir.core.barriers import Barrier
from weir.core.ids import CheckpointId, Millis
from weir.core.task import Task
from weir.ports.operators import Captured, Operator
from weir.slot.effects import DeleteUnneeded, DropLocalCopies, Effect, WriteSegment
from weir.slot.snapshot_uploads import SnapshotUploads
from weir.slot.snapshot_writer import shared_directory
from weir.slot.state_log import StateLog
from weir.storage.local_copies import Owner


class LogCuts:
    """On the mailbox's thread; does nothing where nothing is logged."""

    def __init__(self, operator: Operator, uploads: SnapshotUploads, task: Task) -> None:
        self._operator = operator
        self._uploads = uploads
        self._log = uploads.log
        self._task = task

    def due(self, now: Millis) -> list[Effect]:
        """At most one at a time: a capture costs a turn what changed since the last."""
        log = self._log
        if log is None:
            return []
        if log.wants_materialization(now):
            return [WriteSegment(log.materialize(self._cut(log), now))]
        if log.wants_segment(self._task.processed_bytes):
            return [WriteSegment(log.log_changes(self._cut(log)))]
        return []

    def captured(self, barrier: Barrier, captured: Captured) -> None:
        """A savepoint's capture is not of the log, and neither are states without keys."""
        if self._log is not None and captured.position and not barrier.kind.is_savepoint:
            self._log.captured(captured.position, self._task.processed_bytes)
            self._log.directory = shared_directory(barrier)

    def acked(self, checkpoint: CheckpointId) -> None:
        if self._log is not None:
            self._log.acked(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> list[Effect]:
        """What nothing needs any more: local copies, and files of the log."""
        effects: list[Effect] = []
        if self._log is not None:
            oldest, unneeded = self._log.completed(checkpoint)
            self._operator.truncated(oldest)
            if unneeded:
                effects.append(DeleteUnneeded(tuple(unneeded)))
        referenced = self._uploads.completed(checkpoint)
        if referenced is not None:
            owner = Owner(self._task.subtask, checkpoint)
            effects.append(DropLocalCopies(owner, referenced))
        return effects

    def _cut(self, log: StateLog) -> Captured:
        captured = self._operator.cut()
        log.captured(captured.position, self._task.processed_bytes)
        return captured
