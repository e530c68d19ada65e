"""Decides which pieces of snapshots share a file, when it is written, and who deletes it.

The subtasks of a slot put their pieces of one checkpoint into few files. An object store cannot
append, so a file is collected first and written once: when it is full, when every subtask of the
slot has given its part of the checkpoint, or when the first piece has waited long enough. A subtask
acks when all its pieces are durable (spec S6).

A file holds pieces of one checkpoint only. So it is dead as soon as one of its subtasks gives that
checkpoint up, and it is shared later only through the checkpoint that it completed. The slot
deletes a file that every subtask has given up; once one has acked, the coordinator owns it.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from weir.core.ids import NO_CHECKPOINT, CheckpointId, Millis, SubtaskId


class FileMergingPolicy(NamedTuple):
    """How pieces are merged."""

    max_file_size: int
    """A file is closed before it grows beyond this; a piece of this size has a separate file."""
    max_space_amplification: float
    """How many bytes of files one byte of state may cost."""
    longest_wait_ms: int | None
    """How long a piece waits for the other subtasks; None: until all of them have come."""


class Part(NamedTuple):
    """One subtask's part of one checkpoint."""

    attempt: int
    checkpoint: CheckpointId
    subtask: SubtaskId


class Piece(NamedTuple):
    """A piece of a snapshot that wants a place."""

    part: Part
    path: str
    """Where it would be if it had a separate file."""
    bytes: int
    is_savepoint: bool = False


class Placement(NamedTuple):
    """Where a piece will be."""

    path: str
    offset: int


class WriteFile(NamedTuple):
    """The file is complete: write it."""

    path: str


class DropFile(NamedTuple):
    """No piece of the file is needed, and it was not written: forget its content."""

    path: str


class DeleteFile(NamedTuple):
    """No piece of the file is needed: delete it."""

    path: str


class ReleaseAck(NamedTuple):
    """All pieces of this part are durable."""

    part: Part


class FailPart(NamedTuple):
    """A piece of this part could not be written."""

    part: Part


class EndPart(NamedTuple):
    """The part was acked or given up: let go what is held for it."""

    part: Part


MergeAction = WriteFile | DropFile | DeleteFile | ReleaseAck | FailPart | EndPart


class _Stage(Enum):
    OPEN = auto()
    WRITING = auto()
    DURABLE = auto()


@dataclass(slots=True)
class PhysicalFile:
    """A file that holds pieces of several subtasks."""

    path: str
    opened_at: Millis
    holders: set[Part] = field(default_factory=set)
    """Those with pieces in it that have neither acked nor given up."""
    bytes: int = 0
    stage: _Stage = _Stage.OPEN
    is_owned: bool = False
    """An ack named it, so the coordinator deletes it."""


@dataclass(slots=True)
class _Group:
    """The files of one checkpoint."""

    is_savepoint: bool | None = None
    """None: no piece has come, which says it."""
    is_late: bool = False
    """Begun when a newer checkpoint was complete, so it may have been forgotten before. Who has
    ended it is not known any more, and none is waited for."""
    files: dict[str, PhysicalFile] = field(default_factory=dict)
    open_files: dict[str, PhysicalFile] = field(default_factory=dict)
    """By directory: what later checkpoints may refer to is apart from what they may not."""
    ended: set[SubtaskId] = field(default_factory=set)
    """Subtasks that put nothing more into it."""
    parts: set[Part] = field(default_factory=set)
    """Those that have begun, with a piece or an ack, and have not ended."""
    acked: set[Part] = field(default_factory=set)
    """Waiting for their pieces to be durable."""
    failed: set[Part] = field(default_factory=set)
    """A piece of theirs is lost, so they must not ack, until they give the checkpoint up."""

    @property
    def is_in_use(self) -> bool:
        return bool(self.files or self.parts)


class NotAMember(Exception):
    """A subtask that has left offers a piece."""


@dataclass(slots=True)
class FilePool:
    """The merged files of one slot that no coordinator owns yet."""

    policy: FileMergingPolicy
    members: dict[SubtaskId, int] = field(default_factory=dict)
    """The subtasks that run in this slot, and the attempt of each."""
    groups: dict[CheckpointId, _Group] = field(default_factory=dict)
    newest: CheckpointId = NO_CHECKPOINT
    """That is complete."""

    # -- subtasks come and go

    def joined(self, attempt: int, subtask: SubtaskId) -> None:
        self.members[subtask] = attempt

    def left(self, attempt: int, subtask: SubtaskId) -> list[MergeAction]:
        """The subtask gives up all that it has not acked, and no file waits for it."""
        if self.members.get(subtask) == attempt:
            del self.members[subtask]
        actions: list[MergeAction] = []
        for checkpoint in list(self.groups):
            actions += self.discarded(Part(attempt, checkpoint, subtask))
        return actions

    # -- pieces

    def offered(self, piece: Piece, now: Millis) -> tuple[Placement, list[MergeAction]]:
        part = piece.part
        if self.members.get(part.subtask) != part.attempt:
            raise NotAMember(f"{part.subtask} does not run here any more")
        group = self._group(part.checkpoint)
        group.is_savepoint = piece.is_savepoint
        group.parts.add(part)
        directory, _, name = piece.path.rpartition("/")
        actions: list[MergeAction] = []
        most = self.policy.max_file_size
        file = group.open_files.get(directory) if piece.bytes < most else None
        if file is not None and file.bytes + piece.bytes > most:
            actions.append(self._close(group, file))
            file = None
        if file is None:
            file = PhysicalFile(f"{directory}/merged-{name}", now)
            group.files[file.path] = file
            if piece.bytes < most:
                group.open_files[directory] = file
        place = Placement(file.path, file.bytes)
        file.bytes += piece.bytes
        file.holders.add(part)
        if file.bytes >= most:
            actions.append(self._close(group, file))
        return place, actions

    def acked(self, part: Part) -> list[MergeAction]:
        """The subtask puts nothing more into this checkpoint, and wants to ack it."""
        group = self._group(part.checkpoint)
        group.ended.add(part.subtask)
        group.parts.add(part)
        if part not in group.failed:
            group.acked.add(part)
        released = self._release(group)
        return [*released, *self._close_complete(part.checkpoint)]

    def reported(self, part: Part) -> list[MergeAction]:
        """The ack is on its way: the coordinator owns the files that it names."""
        group = self.groups.get(part.checkpoint)
        if group is None:
            return []
        actions = self._end(group, part)
        for file in list(group.files.values()):
            if part in file.holders:
                file.is_owned = True
                self._let_go(group, file, part)
        self._forget_ended(part.checkpoint)
        return actions

    def discarded(self, part: Part) -> list[MergeAction]:
        """The subtask gives this checkpoint up; nothing happens if it has acked it."""
        group = self.groups.get(part.checkpoint)
        if group is None:
            return []
        group.ended.add(part.subtask)
        actions = self._end(group, part)
        for file in list(group.files.values()):
            if part in file.holders:
                actions += self._let_go(group, file, part)
        return [*actions, *self._close_complete(part.checkpoint)]

    def completed(
        self, attempt: int, subtask: SubtaskId, newest: CheckpointId
    ) -> list[MergeAction]:
        """A checkpoint is complete: older ones never will be, except savepoints.

        An aborted checkpoint is not given up by a subtask that has not seen it. So the groups that
        nothing is left of are forgotten here.
        """
        self.newest = max(self.newest, newest)
        actions: list[MergeAction] = []
        for checkpoint in [c for c in self.groups if c < newest]:
            if self.groups[checkpoint].is_savepoint is False:
                actions += self.discarded(Part(attempt, checkpoint, subtask))
        self.groups = {
            c: group for c, group in self.groups.items() if c >= newest or group.is_in_use
        }
        return actions

    # -- files

    def written(self, path: str) -> list[MergeAction]:
        checkpoint, file = self._find(path)
        group = self.groups[checkpoint]
        file.stage = _Stage.DURABLE
        if not file.holders:
            del group.files[path]
            self._forget_ended(checkpoint)
            return [] if file.is_owned else [DeleteFile(path)]
        return self._release(group)

    def not_written(self, path: str) -> list[MergeAction]:
        """Every part that needs the file fails; a part of the file may be there all the same."""
        checkpoint, file = self._find(path)
        group = self.groups[checkpoint]
        del group.files[path]
        failed = sorted(file.holders)
        group.acked.difference_update(failed)
        group.failed.update(failed)
        self._forget_ended(checkpoint)
        return [DeleteFile(path), *(FailPart(part) for part in failed)]

    def pass_time(self, now: Millis) -> list[MergeAction]:
        """Write what has waited too long for other subtasks."""
        actions: list[MergeAction] = []
        for group in self.groups.values():
            for file in list(group.open_files.values()):
                due = self._due(file)
                if due is not None and due <= now:
                    actions.append(self._close(group, file))
        return actions

    def next_deadline(self) -> Millis | None:
        files = (file for group in self.groups.values() for file in group.open_files.values())
        return min((due for file in files if (due := self._due(file)) is not None), default=None)

    # -- within

    def _due(self, file: PhysicalFile) -> Millis | None:
        wait = self.policy.longest_wait_ms
        return None if wait is None else Millis(file.opened_at + wait)

    def _group(self, checkpoint: CheckpointId) -> _Group:
        return self.groups.setdefault(checkpoint, _Group(is_late=checkpoint < self.newest))

    def _find(self, path: str) -> tuple[CheckpointId, PhysicalFile]:
        return next(
            (c, group.files[path]) for c, group in self.groups.items() if path in group.files
        )

    def _close(self, group: _Group, file: PhysicalFile) -> WriteFile:
        file.stage = _Stage.WRITING
        group.open_files = {d: other for d, other in group.open_files.items() if other is not file}
        return WriteFile(file.path)

    def _close_complete(self, checkpoint: CheckpointId) -> list[MergeAction]:
        """Write what is open if no subtask of the slot can add to it any more."""
        group, actions = self.groups[checkpoint], list[MergeAction]()
        if self._is_complete(checkpoint):
            actions += [self._close(group, file) for file in list(group.open_files.values())]
        self._forget_ended(checkpoint)
        return actions

    def _is_complete(self, checkpoint: CheckpointId) -> bool:
        group = self.groups[checkpoint]
        return group.is_late or all(subtask in group.ended for subtask in self.members)

    def _release(self, group: _Group) -> list[MergeAction]:
        waiting = {
            part
            for file in group.files.values()
            if file.stage is not _Stage.DURABLE
            for part in file.holders
        }
        durable = sorted(group.acked - waiting)
        group.acked.difference_update(durable)
        return [ReleaseAck(part) for part in durable]

    def _end(self, group: _Group, part: Part) -> list[MergeAction]:
        if part not in group.parts:
            return []
        for parts in (group.parts, group.acked, group.failed):
            parts.discard(part)
        return [EndPart(part)]

    def _let_go(self, group: _Group, file: PhysicalFile, part: Part) -> list[MergeAction]:
        """The part needs the file no more; the last one decides what becomes of it."""
        file.holders.discard(part)
        if file.holders or file.stage is _Stage.WRITING:
            return []
        del group.files[file.path]
        if file.stage is _Stage.OPEN:
            del group.open_files[file.path.rpartition("/")[0]]
            return [DropFile(file.path)]
        return [] if file.is_owned else [DeleteFile(file.path)]

    def _forget_ended(self, checkpoint: CheckpointId) -> None:
        group = self.groups.get(checkpoint)
        if group is not None and not group.is_in_use and self._is_complete(checkpoint):
            del self.groups[checkpoint]
