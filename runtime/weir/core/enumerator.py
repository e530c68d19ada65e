"""Keeps the splits of one source: which are still free, and which went to whom since when.

The enumerator lives in the driver, the readers in slots, so a split is in exactly one of two
places in every checkpoint: in the enumerator's snapshot while it is free, or in a reader's state
once it was assigned before the trigger. What was assigned after a checkpoint's snapshot returns to
the pool when its reader is reset to that checkpoint (Flink's SplitAssignmentTracker).
"""

from dataclasses import dataclass, replace

from weir.core.ids import NO_CHECKPOINT, CheckpointId, SplitId, SubtaskId


@dataclass(frozen=True, slots=True)
class AssignSplit:
    """Read this one."""

    split: SplitId


@dataclass(frozen=True, slots=True)
class NoMoreSplits:
    """Everything has been handed out, for good."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A split handed out after the snapshot of that checkpoint and before the next one's."""

    split: SplitId
    reader: SubtaskId
    after: CheckpointId


@dataclass(frozen=True, slots=True)
class Splits:
    """The pool and its recent history."""

    free: tuple[SplitId, ...]
    assigned: tuple[Assigned, ...] = ()
    snapshotted: CheckpointId = NO_CHECKPOINT

    def give(self, reader: SubtaskId) -> tuple["Splits", AssignSplit | NoMoreSplits]:
        """The next split for a reader that asks."""
        if not self.free:
            return self, NoMoreSplits()
        split, *rest = self.free
        given = Assigned(split, reader, self.snapshotted)
        after = replace(self, free=tuple(rest), assigned=(*self.assigned, given))
        return after, AssignSplit(split)

    def snapshot(self, checkpoint: CheckpointId) -> "Splits":
        """Remember that this checkpoint holds the pool as it is now."""
        return replace(self, snapshotted=checkpoint)

    def completed(self, checkpoint: CheckpointId) -> "Splits":
        """What was assigned before a completed checkpoint is in its readers' state for good."""
        recent = tuple(a for a in self.assigned if a.after >= checkpoint)
        return replace(self, assigned=recent)

    def reset(self, readers: frozenset[SubtaskId], checkpoint: CheckpointId) -> "Splits":
        """Those readers go back to that checkpoint: what they got since returns to the pool."""
        lost = tuple(a for a in self.assigned if a.reader in readers and a.after >= checkpoint)
        free = tuple(sorted((*self.free, *(a.split for a in lost))))
        kept = tuple(a for a in self.assigned if a not in lost)
        return replace(self, free=free, assigned=kept)
