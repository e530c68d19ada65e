"""The asynchronous part of a snapshot: files go up, handles come back, aborted ones are removed.

Keyed state goes up in one file for each key group, so that an increment uploads only the groups
that changed since its base. A failed upload is a decline; the files of a checkpoint that will not
be used are deleted by whoever uploaded them, unless the coordinator was told of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from simulation.operators import Captured
from simulation.store import OK, Store
from weir.core.barriers import Barrier
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Epoch, Millis, SubtaskId
from weir.core.incremental_snapshots import Increments
from weir.core.reasons import Reason
from weir.core.snapshots import (
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Side,
    StateFile,
    SubtaskSnapshot,
)
from weir.core.task import Task, TaskAction

Settle = Callable[[SubtaskId, tuple[int, int], Callable[[Task], list[TaskAction]]], None]


@dataclass
class Upload:
    """What one checkpoint of one subtask puts into storage."""

    barrier: Barrier
    snapshot: SubtaskSnapshot
    waiting: int = 0
    failed: bool = False
    discarded: bool = False
    own: list[str] = field(default_factory=list)


class Uploads:
    """All uploads of one subtask."""

    def __init__(
        self, store: Store, run: tuple[int, int], subtask: SubtaskId, settle: Settle
    ) -> None:
        self.store = store
        self.run = run
        self.subtask = subtask
        self.settle = settle
        self.increments = Increments()
        self.contents: dict[str, object] = {}
        self.uploads: dict[CheckpointId, Upload] = {}

    @property
    def epoch(self) -> Epoch:
        return Epoch(self.run[0])

    def start(self, barrier: Barrier, captured: Captured, *, incremental: bool) -> None:
        checkpoint = barrier.checkpoint
        upload = Upload(barrier, SubtaskSnapshot(self.subtask, transactions=captured.transactions))
        self.uploads[checkpoint] = upload
        shares = incremental and not barrier.kind.is_savepoint
        keyed, fresh = self._keyed(barrier, captured, shares=shares)
        lists = []
        for name, (redistribution, items) in captured.lists.items():
            if items:
                file = StateFile(self._path(barrier, name), len(items))
                lists.append(ListHandle(name, redistribution, file, len(items)))
                fresh.append((file.path, items))
        upload.snapshot = replace(upload.snapshot, keyed=tuple(keyed), lists=tuple(lists))
        if shares:
            self.increments.took(checkpoint, {h.groups.first: h.file for h in keyed})
        self._put_all(upload, fresh)

    def decorate(
        self,
        checkpoint: CheckpointId,
        watermarks: tuple[tuple[EdgeId, Millis], ...],
        *,
        reached_end: bool,
    ) -> None:
        upload = self.uploads[checkpoint]
        upload.snapshot = replace(upload.snapshot, watermarks=watermarks, reached_end=reached_end)
        if not upload.waiting:
            self._over(upload)

    def _keyed(
        self, barrier: Barrier, captured: Captured, *, shares: bool
    ) -> tuple[list[KeyedHandle], list[tuple[str, object]]]:
        base = self.increments.base(barrier.base) if shares else {}
        handles: list[KeyedHandle] = []
        fresh: list[tuple[str, object]] = []
        for group in sorted(captured.keyed):
            content = captured.keyed[group]
            file = base.get(group)
            if file is None or self.contents.get(file.path) != content:
                path = self._path(barrier, f"group-{group}", shared=shares)
                file = StateFile(path, len(content), shared=shares)
                fresh.append((path, content))
            if shares:
                self.contents[file.path] = content
            handles.append(KeyedHandle(KeyGroupRange(group, group), file))
        return handles, fresh

    def _path(self, barrier: Barrier, what: str, *, shared: bool = False) -> str:
        place = f"{barrier.location.rpartition('/')[0]}/shared" if shared else barrier.location
        epoch, attempt = self.run
        return f"{place}/e{epoch}-a{attempt}-c{barrier.checkpoint}-{self.subtask}-{what}"

    def _put_all(self, upload: Upload, fresh: list[tuple[str, object]]) -> None:
        upload.waiting = len(fresh)
        for path, content in fresh:
            upload.own.append(path)
            self.store.put(path, content, self.epoch, self._done(upload))

    def _done(self, upload: Upload) -> Callable[[str], None]:
        def done(outcome: str) -> None:
            upload.waiting -= 1
            upload.failed |= outcome != OK
            if not upload.waiting:
                self._over(upload)

        return done

    def _over(self, upload: Upload) -> None:
        checkpoint = upload.barrier.checkpoint
        if upload.discarded:
            self._remove(upload)
        elif upload.failed:
            reason = Reason.CHECKPOINT_ASYNC_EXCEPTION
            self.settle(self.subtask, self.run, lambda task: task.fail(checkpoint, reason))
        else:
            snapshot = upload.snapshot
            self.settle(self.subtask, self.run, lambda task: task.captured(checkpoint, snapshot))

    def persist_in_flight(
        self,
        checkpoint: CheckpointId,
        rows: tuple[tuple[ChannelId, Side, tuple[object, ...]], ...],
    ) -> None:
        upload = self.uploads[checkpoint]
        barrier = upload.barrier
        handles = tuple(
            InFlightHandle(c, side, StateFile(self._path(barrier, f"{c}-{side}"), len(batches)))
            for c, side, batches in rows
        )
        failed: list[str] = []
        waiting = [len(rows)]

        def done(outcome: str) -> None:
            waiting[0] -= 1
            if outcome != OK:
                failed.append(outcome)
            if waiting[0]:
                return
            if upload.discarded:
                self._remove(upload)
            elif failed:
                reason = Reason.CHANNEL_STATE_SHARED_STREAM_EXCEPTION
                self.settle(self.subtask, self.run, lambda task: task.fail(checkpoint, reason))
            else:
                self.settle(self.subtask, self.run, lambda t: t.persisted(checkpoint, handles))

        for handle, (_, _, batches) in zip(handles, rows, strict=True):
            upload.own.append(handle.file.path)
            self.store.put(handle.file.path, batches, self.epoch, done)

    def discard(self, checkpoint: CheckpointId) -> None:
        upload = self.uploads.get(checkpoint)
        if upload is not None and not upload.discarded:
            upload.discarded = True
            if not upload.waiting:
                self._remove(upload)

    def _remove(self, upload: Upload) -> None:
        if upload.own:
            self.store.delete(tuple(upload.own), lambda _: None)
