"""Writes the changelog of one subtask: tails for checkpoints, and what goes up between them.

``weir.core.changelog`` decides; here changes become files. A capture on the mailbox's thread ends
an interval of changes and costs no more than what changed in it; upload threads encode and write.
A segment or a materialization between checkpoints has files that no other subtask shares, so it
belongs to no checkpoint. If it fails, nothing else does: its changes go up with the next.

Uploads may ask at the same time as the mailbox learns of a checkpoint; a lock keeps them apart.
"""

import logging
from dataclasses import dataclass
from threading import Lock

from weir.core.barriers import Barrier
from weir.core.changelog import (
    Changelog,
    ChangelogPolicy,
    Cut,
    LogSize,
    Position,
    Segment,
    files_of,
    size_of,
)
from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import CheckpointKind, KeyedHandle, StateFile
from weir.ports.operators import Captured
from weir.slot.layers import Kept, Put
from weir.slot.row_format import RowFormat

log = logging.getLogger("weir.slot")

LEAST_RATIO, MOST_RATIO = 1 / 16, 4.0
"""Bytes of a segment for each byte of rows that was processed, as far as an estimate goes."""


@dataclass(frozen=True, slots=True)
class SegmentToWrite:
    """A capture between two checkpoints."""

    captured: Captured
    since: Position | None
    """None: the whole state is materialized."""


class StateLog:
    """The changelog of one subtask's keyed state."""

    def __init__(self, policy: ChangelogPolicy, row_format: RowFormat) -> None:
        self._log = Changelog(policy)
        self._format = row_format
        self._lock = Lock()
        self._processed: dict[Position, int] = {}
        """Bytes of rows that had been processed at a capture."""
        self._ratio = 1.0
        self._logged_until = 0
        self.directory = ""
        """Where the files of the log are, once a barrier has said so."""
        self.newest = CheckpointId(0)
        self.materializations = 0
        self.failures = 0

    # -- on the mailbox's thread

    def begun(self) -> None:
        """The subtask begins without state."""
        self._log.begun()

    def restored(
        self, checkpoint: CheckpointId, files: dict[str, list[StateFile]], *, merged: bool
    ) -> None:
        """The subtask begins from these, which its job owns."""
        known = {name: tuple(its) for name, its in files.items()}
        self._log.restored(checkpoint, known, merged=merged)

    def captured(self, position: Position, processed_bytes: int) -> None:
        """The state was captured when so many bytes of rows had been processed."""
        with self._lock:
            oldest = self._log.oldest_position()
            self._processed = {p: n for p, n in self._processed.items() if p >= oldest}
            self._processed[position] = processed_bytes
        self._logged_until = processed_bytes

    def acked(self, checkpoint: CheckpointId) -> None:
        with self._lock:
            self._log.acked(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> tuple[Position, list[str]]:
        """Where the log begins now, and the files that it does not need any more."""
        with self._lock:
            unneeded = self._log.complete(checkpoint)
            return self._log.oldest_position(), unneeded

    def wants_materialization(self, now: Millis) -> bool:
        if not self.directory:
            return False
        with self._lock:
            return self._log.wants_materialization(now)

    def wants_segment(self, processed_bytes: int) -> bool:
        estimated = int((processed_bytes - self._logged_until) * self._ratio)
        if not self.directory or estimated < self._log.policy.preemptive_bytes:
            return False
        with self._lock:
            return self._log.wants_segment(estimated)

    def materialize(self, captured: Captured, now: Millis) -> SegmentToWrite:
        with self._lock:
            self._log.begin_materialization(now)
        return SegmentToWrite(captured, None)

    def log_changes(self, captured: Captured) -> SegmentToWrite:
        with self._lock:
            return SegmentToWrite(captured, self._log.begin_segment())

    def close(self) -> list[str]:
        """The subtask has ended. Returns files that nothing will refer to."""
        with self._lock:
            return self._log.close()

    # -- for merged files and local copies, on any thread

    def size(self) -> LogSize:
        with self._lock:
            return size_of(self._log.newest())

    def paths(self) -> set[str]:
        """All files that a later checkpoint may refer to."""
        with self._lock:
            return {file.path for file in self._log.needed_files()}

    def segments(self) -> frozenset[str]:
        """The same, by the names of their local copies."""
        with self._lock:
            return frozenset(file.segment for file in self._log.needed_files() if file.path)

    def referable(self, base: CheckpointId) -> list[list[StateFile]]:
        """What a checkpoint on this base would refer to in files shared with other subtasks."""
        del base
        with self._lock:
            chain = self._log.newest()
        return [
            [file for file in files if file.path]
            for segment in chain
            if segment.is_merged
            for files in segment.files.values()
        ]

    # -- on upload threads

    def store(
        self, barrier: Barrier, captured: Captured, put: Put, kept: Kept, *, merged: bool
    ) -> tuple[KeyedHandle, ...]:
        """Put up the tail; all that the checkpoint refers to, state by state in order."""
        if not captured.position:
            return ()
        checkpoint = barrier.checkpoint
        with self._lock:
            plan = self._log.plan(
                checkpoint,
                barrier.base,
                Cut(captured.position, captured.known),
                is_full=barrier.kind is not CheckpointKind.CHECKPOINT,
                kept=kept,
            )
        tail = self._segment(captured, plan.since, put, weight=plan.weight, merged=merged)
        with self._lock:
            chain = self._log.stored(checkpoint, tail)
            self.newest = max(self.newest, checkpoint)
        return tuple(
            KeyedHandle(piece.groups, file)
            for piece in captured.keyed
            for file in files_of(chain, piece.name)
        )

    def write(self, start: SegmentToWrite, put: Put) -> list[str]:
        """Put up what no checkpoint asked for; files that the log does not need any more.

        Never raises.
        """
        what = "segment" if start.since is not None else "materialized state"
        try:
            made = self._segment(start.captured, start.since, put, weight=1, merged=False)
        except BaseException as problem:  # noqa: BLE001 - storage, and panics of native code
            log.warning("a %s of the changelog could not be written: %s", what, problem)
            made = None
        with self._lock:
            self.failures += made is None
            if start.since is not None:
                return self._log.logged(made)
            self.materializations += made is not None
            return self._log.materialized(made)

    def given_up(self, checkpoint: CheckpointId) -> list[str]:
        """It will not complete; the files that are lost with it."""
        with self._lock:
            return self._log.given_up(checkpoint)

    def _segment(
        self, captured: Captured, since: Position | None, put: Put, *, weight: int, merged: bool
    ) -> Segment:
        files: dict[str, tuple[StateFile, ...]] = {}
        wholes: set[str] = set()
        for piece in captured.keyed:
            changes = None if since is None else piece.since(CheckpointId(since))
            if changes is None:
                wholes.add(piece.name)
                files[piece.name] = (put(f"{piece.name}-whole", piece.write()),)
            elif not self._format.is_empty(changes):
                files[piece.name] = (put(f"{piece.name}-changes", changes),)
        made = Segment(
            since,
            captured.position,
            files,
            frozenset(wholes),
            weight,
            is_merged=merged and any(f.path for its in files.values() for f in its),
        )
        if since is not None and not wholes:
            self._learn(made)
        return made

    def _learn(self, segment: Segment) -> None:
        """How large the changes of so many rows are."""
        with self._lock:
            begun = self._processed.get(segment.since or Position(0), 0)
            ended = self._processed.get(segment.upto, 0)
            if ended > begun:
                ratio = segment.bytes / (ended - begun)
                self._ratio = min(max(ratio, LEAST_RATIO), MOST_RATIO)
