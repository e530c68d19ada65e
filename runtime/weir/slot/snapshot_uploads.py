"""The asynchronous part of a snapshot: files go up beside the mailbox, handles come back.

A failed upload is a decline and nothing worse, whatever it raised: an upload that ended without a
word would leave every checkpoint to its timeout. Whoever uploaded the files of a checkpoint that
will not be used deletes them, unless the coordinator was told of them (spec C7, C18). The mailbox
hears of an upload's end in its own turn, through the ``settle`` it hands in.
"""

import logging
import time
from collections.abc import Callable, Container, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.core.barriers import Barrier
from weir.core.coordinator.events import Timings
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import (
    InFlightHandle,
    KeyedHandle,
    ListHandle,
    Side,
    StateFile,
    SubtaskSnapshot,
)
from weir.core.task import Task, TaskAction
from weir.exchange.batch_sizes import size_of
from weir.ports.operators import Captured, KeyedSnapshot
from weir.ports.user_code_errors import describe_error
from weir.slot.in_flight import write_in_flight
from weir.slot.layers import Layers
from weir.slot.snapshot_storage import SnapshotStorage
from weir.state.snapshot_files import write_list
from weir.storage.local_copies import Owner

log = logging.getLogger("weir.slot")

Settle = Callable[[Callable[[Task], list[TaskAction]], str], None]
"""Hands what the task is to be told to the mailbox, with words if something went wrong."""

SHARED = "shared"
"""The directory, beside the checkpoints, of files that several of them refer to."""

MOST_UPLOADS = 4
"""Of one subtask at a time."""

UNSAVED_LIMIT = 1 << 30
"""So many bytes of earlier checkpoints a slot may hold when it takes the next."""

InFlight = tuple[tuple[ChannelId, Side, tuple[object, ...]], ...]


@dataclass(slots=True)
class Upload:
    """What one checkpoint of one subtask puts into storage."""

    barrier: Barrier
    sync_ms: int
    held_bytes: int = 0
    """Of memory, until it is durable, as far as one can tell beforehand."""
    began: float = field(default_factory=time.monotonic)
    own: list[str] = field(default_factory=list)
    is_busy: bool = True
    is_discarded: bool = False
    async_ms: int = 0
    written_bytes: int = 0


class SnapshotUploads:
    """All uploads of one subtask. The mailbox calls it; its work runs on the executor."""

    def __init__(
        self, subtask: SubtaskId, run: tuple[int, int], files: SnapshotStorage, executor: Executor
    ) -> None:
        self._subtask = subtask
        self._run = run
        self._files = files
        self._executor = executor
        self._uploads: dict[CheckpointId, Upload] = {}
        self._under_way: list[Upload] = []
        self._state_bytes = 0
        """Of the snapshot written last: the next will hold about as much."""
        self.layers = Layers()
        self._referred: dict[CheckpointId, frozenset[str]] = {}
        """The files that each snapshot is made of, as far as copies of them may be kept."""

    @property
    def is_full(self) -> bool:
        """Storage is too slow for this pace: uploads, also of dead checkpoints, pile up.

        Each holds a version of the state, so another snapshot would cost memory without end.
        """
        return len(self._busy()) >= MOST_UPLOADS

    @property
    def is_busy(self) -> bool:
        return bool(self._busy())

    def unsaved_bytes(self, before: CheckpointId) -> int:
        """What uploads of older checkpoints hold.

        A version of the state costs memory as it is changed and as it is written, which nobody
        knows beforehand; it is reckoned at the size that the state had in the last snapshot.
        """
        return sum(u.held_bytes for u in self._busy() if u.barrier.checkpoint < before)

    def _busy(self) -> list[Upload]:
        self._under_way = [upload for upload in self._under_way if upload.is_busy]
        return self._under_way

    def start(
        self,
        barrier: Barrier,
        captured: Captured,
        snapshot: SubtaskSnapshot,
        *,
        sync_ms: int,
        settle: Settle,
    ) -> None:
        upload = Upload(barrier, sync_ms, self._state_bytes)
        self._uploads[barrier.checkpoint] = upload
        self._under_way.append(upload)
        self._executor.submit(self._upload, upload, captured, snapshot, settle)

    def persist_in_flight(self, checkpoint: CheckpointId, rows: InFlight, settle: Settle) -> None:
        upload = self._uploads[checkpoint]
        self._under_way = [*self._busy(), upload]
        upload.is_busy = True
        batches = (batch for _, _, caught in rows for batch in caught)
        upload.held_bytes = sum(size_of(b) for b in batches if isinstance(b, pa.RecordBatch))
        self._executor.submit(self._upload_in_flight, upload, rows, settle)

    def discard(self, checkpoint: CheckpointId) -> None:
        """Delete what went up, now or when the upload under way has ended."""
        upload = self._uploads.pop(checkpoint, None)
        if upload is not None:
            upload.is_discarded = True
            if not upload.is_busy:
                self._executor.submit(self._remove, upload)

    def keep_only(self, pending: Container[CheckpointId]) -> None:
        """The coordinator has the files of all others, or they are gone."""
        self._uploads = {c: upload for c, upload in self._uploads.items() if c in pending}

    def restored(self, checkpoint: CheckpointId, files: Iterable[StateFile]) -> None:
        known = list(files)
        self._state_bytes = sum(file.bytes for file in known)
        self._referred[checkpoint] = frozenset(file.path for file in known if file.path)

    def on_completed(self, checkpoint: CheckpointId) -> None:
        """Copies of what only older snapshots refer to are of no use any more.

        A plain savepoint has none and ends none: nobody restarts from it by himself.
        """
        self.layers.on_completed(checkpoint)
        if checkpoint not in self._referred:
            return
        for older in [c for c in list(self._referred) if c < checkpoint]:
            del self._referred[older]
        still = frozenset[str]().union(*list(self._referred.values()))
        owner = Owner(self._subtask, checkpoint)
        self._executor.submit(self._files.completed, owner, still)

    def timings(self, checkpoint: CheckpointId) -> Timings:
        upload = self._uploads.get(checkpoint)
        if upload is None:
            return Timings()
        return Timings(
            sync_ms=upload.sync_ms, async_ms=upload.async_ms, written_bytes=upload.written_bytes
        )

    # -- beside the mailbox

    def _upload(
        self, upload: Upload, captured: Captured, snapshot: SubtaskSnapshot, settle: Settle
    ) -> None:
        checkpoint = upload.barrier.checkpoint
        try:
            whole = self._write(upload, captured, snapshot)
        except BaseException as problem:  # noqa: BLE001 - a panic of native code declines too
            self._failed(upload, Reason.CHECKPOINT_ASYNC_EXCEPTION, problem, settle)
        else:
            self._done(upload)
            settle(lambda task: task.captured(checkpoint, whole), "")
        finally:
            captured.release()

    def _write(
        self, upload: Upload, captured: Captured, snapshot: SubtaskSnapshot
    ) -> SubtaskSnapshot:
        keyed = tuple(
            KeyedHandle(piece.groups, file)
            for number, piece in enumerate(captured.keyed)
            for file in self._keyed_files(upload, piece, number)
        )
        lists = tuple(
            ListHandle(
                piece.name,
                piece.redistribution,
                self._put(upload, f"list-{piece.name}", write_list(piece.items)),
                len(piece.items),
            )
            for piece in captured.lists
            if piece.items
        )
        for make_durable in captured.before_ack:
            make_durable()
        whole = replace(snapshot, keyed=keyed, lists=lists, transactions=captured.transactions)
        self._state_bytes = whole.bytes
        if upload.barrier.kind.commits:
            self._referred[upload.barrier.checkpoint] = frozenset(f.path for f in whole.files())
        return whole

    def _keyed_files(self, upload: Upload, piece: KeyedSnapshot, number: int) -> list[StateFile]:
        """A savepoint stands alone, and so does a checkpoint where nothing is shared."""
        if not self._files.is_incremental or upload.barrier.kind.is_savepoint:
            return [self._put(upload, f"keyed-{number}", piece.write())]

        def put(what: str, content: pa.Buffer) -> StateFile:
            place = f"{upload.barrier.location.rpartition('/')[0]}/{SHARED}"
            name = f"{what}-c{upload.barrier.checkpoint}"
            return self._put(upload, name, content, place=place)

        return self.layers.store(upload.barrier, piece, put)

    def _upload_in_flight(self, upload: Upload, rows: InFlight, settle: Settle) -> None:
        checkpoint = upload.barrier.checkpoint
        try:
            handles = tuple(
                InFlightHandle(
                    channel,
                    side,
                    self._put(upload, f"in-flight-{channel}-{side}", write_in_flight(batches)),
                )
                for channel, side, batches in rows
            )
        except BaseException as problem:  # noqa: BLE001 - a panic of native code declines too
            self._failed(upload, Reason.CHANNEL_STATE_SHARED_STREAM_EXCEPTION, problem, settle)
        else:
            self._done(upload)
            settle(lambda task: task.persisted(checkpoint, handles), "")

    def _put(self, upload: Upload, what: str, content: pa.Buffer, *, place: str = "") -> StateFile:
        epoch, attempt = self._run
        name = f"{self._subtask}-{what}-e{epoch}-a{attempt}"
        path = f"{place or upload.barrier.location}/{name}"
        upload.own.append(path)
        upload.written_bytes += content.size
        barrier = upload.barrier
        owner = Owner(self._subtask, barrier.checkpoint) if barrier.kind.commits else None
        return self._files.put(path, content, owner=owner, shared=bool(place))

    def _done(self, upload: Upload) -> None:
        upload.async_ms = int((time.monotonic() - upload.began) * 1000)
        upload.is_busy = False
        if upload.is_discarded:
            self._remove(upload)

    def _failed(
        self, upload: Upload, reason: Reason, problem: BaseException, settle: Settle
    ) -> None:
        checkpoint, words = upload.barrier.checkpoint, describe_error(problem)
        # The driver warns of it, with this cause, when it aborts the checkpoint.
        log.info("%s could not upload checkpoint %s: %s", self._subtask, checkpoint, words)
        self._done(upload)
        settle(lambda task: task.fail(checkpoint, reason), words)

    def _remove(self, upload: Upload) -> None:
        try:
            self._files.delete(upload.own)
        except Exception as problem:  # noqa: BLE001 - garbage collection will find what is left
            log.warning("files of %s could not be deleted: %s", upload.barrier.location, problem)


def bare_snapshot(
    subtask: SubtaskId, watermarks: tuple[tuple[EdgeId, Millis], ...], *, reached_end: bool
) -> SubtaskSnapshot:
    """A snapshot before its state has gone up."""
    return SubtaskSnapshot(subtask, watermarks=watermarks, reached_end=reached_end)
