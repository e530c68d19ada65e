"""Decides what the changelog of a subtask's keyed state uploads, refers to, and leaves behind.

The log is a whole state and, over it, segments of changed keys. Every capture of the state has a
position. A segment holds each key that changed between two positions once, as it is at the later
one, so a segment may overlap those below it, and a lost one is made good by a longer one (spec S5).

Who owns a file decides what may refer to it. A file belongs to the subtask until an ack names it,
and then to the checkpoint of that ack: the coordinator deletes it when that checkpoint aborts. So a
checkpoint refers to files of the newest completed checkpoint, which the coordinator holds until a
later one completes, and to files that no ack has named. What an aborted checkpoint took with it is
logged again by the next. What it had not acked stays in the log.

Segments that are small and of like weight are folded into the next one, as a binary counter
carries, so their number grows with the logarithm of the checkpoints; a segment of the preemptive
size is not written again. A new whole state, written on a separate interval or when the log has
outgrown the old one, replaces all segments up to its position.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import StateFile

Position = NewType("Position", int)
"""Numbers the captures of a subtask's keyed state."""

NO_POSITION = Position(0)

START = Position(1)
"""The state that a subtask begins with."""

MOST_SEGMENTS = 64
"""Over one whole state."""

RETRY_MS = 60_000
"""After a materialization that failed, if its interval is not shorter."""


class ChangelogPolicy(NamedTuple):
    """How the log is written."""

    materialization_interval_ms: int
    preemptive_bytes: int
    """So many bytes of changes are uploaded before a checkpoint asks."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Durable: what changed after one position, as it was at a later one."""

    since: Position | None
    """None: the whole state."""
    upto: Position
    files: Mapping[str, tuple[StateFile, ...]]
    """State by state. A whole state that was restored may have layers over it."""
    whole_states: frozenset[str] = frozenset()
    """States that are in here as a whole, because their changes were not known."""
    weight: int = 1
    """How many captures it stands for."""
    is_merged: bool = False
    """Its files have pieces of other subtasks, so the slot deletes them with their checkpoint."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.all_files())

    def all_files(self) -> Iterable[StateFile]:
        return (file for files in self.files.values() for file in files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Without pieces that travel in the manifest."""
        return tuple(file.path for file in self.all_files() if file.path)


Chain = tuple[Segment, ...]
"""A whole state, and segments over it in the order they are laid."""


class Cut(NamedTuple):
    """A capture of the state."""

    position: Position
    known: Container[int] | None = None
    """The positions since which the backend knows the changes; None: all."""


class Plan(NamedTuple):
    """What a checkpoint refers to, and what it has to add."""

    chain: Chain
    since: Position | None
    """Changes after this position are missing; None: the whole state is."""
    weight: int


class LogSize(NamedTuple):
    """What a restore has to read."""

    base_bytes: int
    log_bytes: int
    segments: int


@dataclass(slots=True)
class _Taken:
    """What a checkpoint that is under way refers to."""

    chain: Chain
    own: Chain = ()
    """The part that no other checkpoint refers to."""
    is_acked: bool = False


@dataclass(slots=True)
class Changelog:
    """The log of one subtask."""

    policy: ChangelogPolicy
    free: Chain = ()
    """Durable, and named by no ack."""
    taken: dict[CheckpointId, _Taken] = field(default_factory=dict)
    completed: dict[CheckpointId, Chain] = field(default_factory=dict)
    """Of the newest completed checkpoint."""
    unclaimed: CheckpointId | None = None
    """The restored checkpoint, until a trigger shows that the coordinator holds its files."""
    is_logging: bool = False
    """A segment is under way that no checkpoint has asked for; one at a time."""
    is_materializing: bool = False
    due_at: Millis | None = None
    """When the next materialization is due, however small the log is."""
    not_before: Millis = Millis(0)
    is_closed: bool = False

    # -- the beginning and the end

    def begun(self) -> None:
        """The subtask begins without state."""
        self.free = (Segment(None, START, {}),)

    def restored(
        self, checkpoint: CheckpointId, files: Mapping[str, tuple[StateFile, ...]], *, merged: bool
    ) -> None:
        """The subtask begins from these, which its job owns."""
        self.completed[checkpoint] = (Segment(None, START, files, is_merged=merged),)
        self.unclaimed = checkpoint

    def close(self) -> list[str]:
        """The subtask has ended. Returns the files that nothing will refer to."""
        self.is_closed = True
        unneeded, self.free = self.free, ()
        return _deletable(unneeded)

    # -- checkpoints

    def plan(
        self,
        checkpoint: CheckpointId,
        base: CheckpointId,
        cut: Cut,
        *,
        is_full: bool = False,
        kept: frozenset[str] | None = None,
    ) -> Plan:
        """What the checkpoint refers to; of merged files, only to those kept, or to all."""
        self._confirm(base)
        usable = [
            segment
            for segment in (*self._held(checkpoint), *self.free)
            if segment.upto <= cut.position and not is_full and _is_within(segment, kept)
        ]
        chain, weight = _folded(usable, self.policy.preemptive_bytes, cut.known)
        own = tuple(segment for segment in chain if segment in self.free)
        self.free = tuple(segment for segment in self.free if segment not in own)
        self.taken[checkpoint] = _Taken(chain, own)
        return Plan(chain, chain[-1].upto if chain else None, weight)

    def stored(self, checkpoint: CheckpointId, segment: Segment) -> Chain:
        """The tail is durable. Returns all that the checkpoint refers to."""
        taken = self.taken[checkpoint]
        taken.chain = (*taken.chain, segment)
        taken.own = (*taken.own, segment)
        return taken.chain

    def acked(self, checkpoint: CheckpointId) -> None:
        """The coordinator owns what the checkpoint refers to."""
        if checkpoint in self.taken:
            self.taken[checkpoint].is_acked = True

    def given_up(self, checkpoint: CheckpointId) -> list[str]:
        """It will not complete. Returns the files that are lost with it."""
        taken = self.taken.pop(checkpoint, None)
        if taken is None:
            return []
        stays = [
            segment
            for segment in taken.own
            if not segment.paths or not (taken.is_acked or segment.is_merged)
        ]
        lost = _deletable(segment for segment in taken.own if segment not in stays)
        self.free = (*self.free, *stays)
        return lost + (self.close() if self.is_closed else self._collect())

    def complete(self, checkpoint: CheckpointId) -> list[str]:
        """Returns the files that nothing will refer to."""
        self._confirm(checkpoint)
        return self._collect()

    # -- between checkpoints

    def wants_segment(self, estimated_bytes: int) -> bool:
        """Whether changes should go up before a checkpoint asks."""
        can = not self.is_logging and not self.is_closed and bool(self.newest())
        return can and estimated_bytes >= self.policy.preemptive_bytes

    def begin_segment(self) -> Position:
        """The position that the segment begins at, if all pending checkpoints complete."""
        self.is_logging = True
        return max(segment.upto for segment in self._known())

    def logged(self, segment: Segment | None) -> list[str]:
        """It is durable, or None: it was not written, so the next one holds its changes too."""
        self.is_logging = False
        return [] if segment is None else self._free(segment)

    def wants_materialization(self, now: Millis) -> bool:
        chain = self.newest()
        if not chain or self.is_materializing or self.is_closed or now < self.not_before:
            return False
        if any(segment.since is None and segment.upto > chain[0].upto for segment in self.free):
            return False
        size = size_of(chain)
        if self.due_at is None:
            self.due_at = Millis(now + self.policy.materialization_interval_ms)
        is_long = size.log_bytes > max(size.base_bytes, self.policy.preemptive_bytes)
        is_due = now >= self.due_at and size.log_bytes > 0
        return is_long or is_due or size.segments >= MOST_SEGMENTS

    def begin_materialization(self, now: Millis) -> None:
        self.is_materializing = True
        self.due_at = Millis(now + self.policy.materialization_interval_ms)
        self.not_before = Millis(now + min(RETRY_MS, self.policy.materialization_interval_ms))

    def materialized(self, whole: Segment | None) -> list[str]:
        """It is durable, or None: it was not written, and is tried again later."""
        self.is_materializing = False
        if whole is None:
            return []
        self.not_before = Millis(0)
        return self._free(whole)

    # -- what is needed

    def newest(self) -> Chain:
        """What the newest checkpoint refers to, whether it has completed or not."""
        for known in (self.taken, self.completed):
            if known:
                newest = known[max(known)]
                chain = newest.chain if isinstance(newest, _Taken) else newest
                if chain:
                    return chain
        return _linked(self.free)

    def oldest_position(self) -> Position:
        """No segment will begin before."""
        if not self.completed:
            return START
        chain = self.completed[max(self.completed)]
        position = chain[-1].upto
        for segment in reversed(chain):
            if segment.since is None or segment.bytes >= self.policy.preemptive_bytes:
                break
            position = min(position, segment.since)
        return position

    def needed_files(self) -> list[StateFile]:
        """All that a later checkpoint may refer to."""
        return [file for segment in self._known() for file in segment.all_files()]

    # -- within

    def _held(self, checkpoint: CheckpointId) -> Chain:
        """What the coordinator holds at least until a checkpoint after this one completes."""
        older = [c for c in self.completed if c < checkpoint and c != self.unclaimed]
        return self.completed[max(older)] if older else ()

    def _known(self) -> Chain:
        chains = [taken.chain for taken in self.taken.values()] + list(self.completed.values())
        return (*self.free, *(segment for chain in chains for segment in chain))

    def _confirm(self, checkpoint: CheckpointId) -> None:
        """It has completed; older ones that were acked are the coordinator's."""
        if checkpoint == self.unclaimed:
            self.unclaimed = None
        taken = self.taken.pop(checkpoint, None)
        if taken is None:
            return
        self.completed, self.unclaimed = {checkpoint: taken.chain}, None
        self.taken = {
            c: other for c, other in self.taken.items() if c > checkpoint or not other.is_acked
        }

    def _free(self, segment: Segment) -> list[str]:
        self.free = (*self.free, segment)
        return self.close() if self.is_closed else self._collect()

    def _collect(self) -> list[str]:
        """Forget the segments that newer ones replace, and return their files."""
        chain = self.completed[max(self.completed)] if self.completed else ()
        wholes = [segment.upto for segment in self.free if segment.since is None]
        newest_whole = max(wholes, default=Position(0))
        base = chain[0].upto if chain else Position(0)
        covered = max(newest_whole, chain[-1].upto if chain else Position(0))
        needed = tuple(
            segment
            for segment in self.free
            if (
                base < segment.upto == newest_whole
                if segment.since is None
                else segment.upto > covered
            )
        )
        unneeded = [segment for segment in self.free if segment not in needed]
        self.free = needed
        return _deletable(unneeded)


def files_of(chain: Chain, state: str) -> list[StateFile]:
    """The files of one state, in the order they are laid."""
    files: list[StateFile] = []
    for segment in chain:
        if state in segment.whole_states:
            files = []
        files += segment.files.get(state, ())
    return files


def size_of(chain: Chain) -> LogSize:
    """Of the whole state, and of what is laid over it."""
    if not chain:
        return LogSize(0, 0, 0)
    base = sum(files[0].bytes for files in chain[0].files.values() if files)
    layers = max((len(files) - 1 for files in chain[0].files.values()), default=0)
    total = sum(segment.bytes for segment in chain)
    return LogSize(base, total - base, max(layers, 0) + len(chain) - 1)


def _linked(usable: Iterable[Segment]) -> Chain:
    """The newest whole state with segments over it, none of which leaves a gap."""
    known = tuple(usable)
    wholes = [segment for segment in known if segment.since is None]
    if not wholes:
        return ()
    chain = [max(wholes, key=lambda segment: segment.upto)]
    while True:
        end = chain[-1].upto
        later = [s for s in known if s.since is not None and s.since <= end < s.upto]
        if not later:
            return tuple(chain)
        chain.append(max(later, key=lambda segment: segment.upto))


def _folded(
    usable: Sequence[Segment], preemptive_bytes: int, known: Container[int] | None
) -> tuple[Chain, int]:
    """Linked without the segments that the next one replaces, and the weight of that one.

    A segment that is folded may have stood in the way of a larger one, so the rest is linked again.
    """
    weight = 1
    left = list(usable)
    while chain := _linked(left):
        last = chain[-1]
        is_small = last.since is not None and last.bytes < preemptive_bytes
        is_known = known is None or last.upto in known
        if is_known and (not is_small or last.weight > weight):
            return chain, weight
        left.remove(last)
        weight += last.weight
    return (), weight


def _is_within(segment: Segment, kept: frozenset[str] | None) -> bool:
    return kept is None or not segment.is_merged or all(path in kept for path in segment.paths)


def _deletable(segments: Iterable[Segment]) -> list[str]:
    return [path for segment in segments if not segment.is_merged for path in segment.paths]
