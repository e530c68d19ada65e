"""Tracks the splits of one source: the free ones, and which reader got which split when.

The enumerator lives in the driver, the readers in slots, so a split is in exactly one of two
places in every checkpoint: in the enumerator's snapshot while it is free, or in a reader's state
once it was assigned before the trigger. What was assigned after a checkpoint's snapshot returns to
the pool when its reader is reset to that checkpoint (Flink's SplitAssignmentTracker).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from weir.core.ids import NO_CHECKPOINT, CheckpointId, SplitId, SubtaskId


@dataclass(frozen=True, slots=True)
class AssignSplit:
    """Read this one."""

    split: SplitId


@dataclass(frozen=True, slots=True)
class NoSplitsYet:
    """Nothing is free now; the reader need not ask again, and gets the next split that is found."""


@dataclass(frozen=True, slots=True)
class NoMoreSplits:
    """All splits are assigned, and no more will come."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A split handed out after the snapshot of that checkpoint and before the next one's."""

    split: SplitId
    reader: SubtaskId
    after: CheckpointId


Message = AssignSplit | NoSplitsYet | NoMoreSplits


def shown(split: str) -> str:
    """A split's id as people may see it: a URL whole, of any other what comes before a first dot.

    Behind the dot a source may keep what only it should read (spec X4).
    """
    return split if "://" in split else split.partition(".")[0]


class Pool(NamedTuple):
    """What a checkpoint keeps of an enumerator."""

    free: tuple[SplitId, ...]
    seen: str


@dataclass(frozen=True, slots=True)
class Splits:
    """The pool and its recent history."""

    free: tuple[SplitId, ...]
    assigned: tuple[Assigned, ...] = ()
    snapshotted: CheckpointId = NO_CHECKPOINT
    seen: str = ""
    """The position of discovery, in the source's own format."""
    is_final: bool = True
    """Discovery is over: what is free now is all that is left."""
    waiting: tuple[SubtaskId, ...] = ()
    """Readers that asked while nothing was free."""

    @property
    def pool(self) -> Pool:
        return Pool(self.free, self.seen)

    def give(self, reader: SubtaskId) -> tuple["Splits", Message]:
        """The next split for a reader that asks, or the news that it has to wait for one."""
        if not self.free and not self.is_final:
            return replace(self, waiting=(*self.waiting, reader)), NoSplitsYet()
        if not self.free:
            return self, NoMoreSplits()
        split, *rest = self.free
        given = Assigned(split, reader, self.snapshotted)
        after = replace(self, free=tuple(rest), assigned=(*self.assigned, given))
        return after, AssignSplit(split)

    def find(
        self, found: tuple[SplitId, ...], seen: str, *, is_final: bool
    ) -> tuple["Splits", tuple[tuple[SubtaskId, Message], ...]]:
        """Add discovered splits; readers that wait are served first."""
        splits = replace(self, free=(*self.free, *found), seen=seen, is_final=is_final, waiting=())
        messages: list[tuple[SubtaskId, Message]] = []
        for reader in self.waiting:
            splits, message = splits.give(reader)
            if not isinstance(message, NoSplitsYet):
                messages.append((reader, message))
        return splits, tuple(messages)

    def snapshot(self, checkpoint: CheckpointId) -> "Splits":
        """Remember that this checkpoint holds the pool as it is now."""
        return replace(self, snapshotted=checkpoint)

    def completed(self, checkpoint: CheckpointId) -> "Splits":
        """Forget splits assigned before a completed checkpoint: the readers' state has them."""
        recent = tuple(a for a in self.assigned if a.after >= checkpoint)
        return replace(self, assigned=recent)

    def reset(self, readers: frozenset[SubtaskId], checkpoint: CheckpointId) -> "Splits":
        """Those readers go back to that checkpoint: what they got since returns to the pool."""
        lost = tuple(a for a in self.assigned if a.reader in readers and a.after >= checkpoint)
        free = tuple(sorted((*self.free, *(a.split for a in lost))))
        kept = tuple(a for a in self.assigned if a not in lost)
        waiting = tuple(reader for reader in self.waiting if reader not in readers)
        return replace(self, free=free, assigned=kept, waiting=waiting)
