"""Collects the pieces of a slot's snapshots into few files, and holds acks back until they last.

``weir.core.file_pool`` decides; here are the contents, the writes on upload threads, and the
acks. Upload threads offer pieces while the mailbox acks and discards, so a lock keeps them apart;
what a decision asks for is done by an upload thread or comes back to the mailbox as mail.

What a file holds is held in memory until it is written. Its uploads count as unsaved until then, so
the budget of the slot bounds it (spec R7).
"""

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol, assert_never

from weir.core.barriers import Barrier
from weir.core.coordinator.events import SubtaskAcked
from weir.core.file_pool import (
    DeleteFile,
    DropFile,
    EndPart,
    FailPart,
    FilePool,
    MergeAction,
    Part,
    Piece,
    ReleaseAck,
    WriteFile,
)
from weir.core.ids import CheckpointId, Millis, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import StateFile
from weir.core.space_amplification import kept_files
from weir.exchange import Run
from weir.ports.user_code_errors import describe_error
from weir.slot.file_storage import FileStorage, Segment
from weir.slot.snapshot_uploads import Upload, UploadEnded, UploadFailed

log = logging.getLogger("weir.slot")

MOST_PLANS = 16
"""Checkpoints that may be under way at once, and more."""


_Work = list[tuple[Callable[..., None], tuple[object, ...]]]
"""What upload threads have to do."""


@dataclass(frozen=True, slots=True)
class AckReleased:
    """Mail: all that this ack names is durable."""

    run: Run
    event: SubtaskAcked


@dataclass(slots=True)
class _Held:
    """What a part of a checkpoint that has begun and not ended leaves here."""

    run: Run
    upload: Upload | None = None
    ack: SubtaskAcked | None = None


class ReferredFiles(Protocol):
    """What the later checkpoints of a subtask may refer to."""

    def paths(self) -> set[str]: ...
    def referable(self, base: CheckpointId) -> list[list[StateFile]]:
        """What a checkpoint on this base would refer to, state by state."""


class MergedFiles:
    """The merged files of one slot."""

    def __init__(
        self,
        storage: FileStorage,
        uploading: Executor,
        post: Callable[[object], None],
        now: Callable[[], Millis],
    ) -> None:
        assert storage.merging is not None, "merging is on"
        self._pool = FilePool(storage.merging)
        self._storage = storage
        self._uploading = uploading
        self._post = post
        self._now = now
        self._lock = Lock()
        self._contents: dict[str, list[Segment]] = {}
        self._held: dict[Part, _Held] = {}
        self._layers: dict[SubtaskId, ReferredFiles] = {}
        self._sizes: dict[str, int] = {}
        """Of the files that this slot wrote or restored from."""
        self._kept: dict[CheckpointId, frozenset[str]] = {}

    # -- on the mailbox's thread

    def joined(self, run: Run, subtask: SubtaskId, layers: ReferredFiles) -> None:
        with self._lock:
            self._layers[subtask] = layers
            self._pool.joined(run[1], subtask)

    def left(self, run: Run, subtask: SubtaskId) -> None:
        with self._lock:
            if self._pool.members.get(subtask) == run[1]:
                del self._layers[subtask]
            work = self._carry_out(self._pool.left(run[1], subtask))
        self._submit(work)

    def ack(self, run: Run, event: SubtaskAcked) -> None:
        """Report this when all that it names is durable."""
        part = Part(run[1], event.checkpoint, event.subtask)
        with self._lock:
            self._held.setdefault(part, _Held(run)).ack = event
            work = self._carry_out(self._pool.acked(part))
        self._submit(work)

    def reported(self, released: AckReleased) -> bool:
        """Whether the ack may go: the coordinator owns what it names from now on."""
        event = released.event
        part = Part(released.run[1], event.checkpoint, event.subtask)
        with self._lock:
            if part not in self._held:
                return False
            work = self._carry_out(self._pool.reported(part))
        self._submit(work)
        return True

    def completed(self, run: Run, subtask: SubtaskId, checkpoint: CheckpointId) -> None:
        with self._lock:
            work = self._carry_out(self._pool.completed(run[1], subtask, checkpoint))
        self._submit(work)

    def pass_time(self) -> None:
        with self._lock:
            work = self._carry_out(self._pool.pass_time(self._now()))
        self._submit(work)

    def next_deadline(self) -> Millis | None:
        with self._lock:
            return self._pool.next_deadline()

    # -- on any thread

    def offer(self, run: Run, subtask: SubtaskId, upload: Upload, segment: Segment) -> StateFile:
        """Where the piece will be; it is durable when the ack that names it is reported."""
        barrier = upload.barrier
        part = Part(run[1], barrier.checkpoint, subtask)
        file = segment.file
        piece = Piece(part, file.path, file.bytes, barrier.kind.is_savepoint)
        with self._lock:
            place, actions = self._pool.offered(piece, self._now())
            file = file._replace(path=place.path, offset=place.offset)
            self._contents.setdefault(place.path, []).append(segment._replace(file=file))
            self._held.setdefault(part, _Held(run)).upload = upload
            upload.is_held = True
            work = self._carry_out(actions)
        self._submit(work)
        return file

    def discarded(self, run: Run, subtask: SubtaskId, checkpoint: CheckpointId) -> None:
        part = Part(run[1], checkpoint, subtask)
        with self._lock:
            work = self._carry_out(self._pool.discarded(part))
        self._do(work)

    def restored(self, files: Iterable[StateFile]) -> None:
        """The next checkpoint may refer to these, of which each may share its file."""
        for path in sorted({file.path for file in files if file.path and file.shared}):
            size = self._storage.size(path)
            with self._lock:
                self._sizes[path] = size

    def kept(self, barrier: Barrier) -> frozenset[str]:
        """The files that this checkpoint may refer to; the same for all subtasks of the slot."""
        checkpoint = barrier.checkpoint
        with self._lock:
            if checkpoint not in self._kept:
                recent = sorted(self._kept)[-MOST_PLANS:]
                self._kept = {c: self._kept[c] for c in recent}
                self._kept[checkpoint] = self._plan(barrier.base)
            return self._kept[checkpoint]

    # -- within, under the lock

    def _plan(self, base: CheckpointId) -> frozenset[str]:
        members = list(self._layers.values())
        known = set[str]().union(*(layers.paths() for layers in members))
        self._sizes = {p: n for p, n in self._sizes.items() if p in known or p in self._contents}
        states = [state for layers in members for state in layers.referable(base)]
        sized = [state for state in states if all(file.path in self._sizes for file in state)]
        return kept_files(sized, self._sizes, self._pool.policy.max_space_amplification)

    def _carry_out(self, actions: list[MergeAction]) -> _Work:
        """Do what can be done at once; the rest, for an upload thread."""
        work: _Work = []
        for action in actions:
            match action:
                case WriteFile(path):
                    work.append((self._write, (path, tuple(self._contents[path]))))
                case DropFile(path):
                    del self._contents[path]
                case DeleteFile(path):
                    work.append((self._delete, (path,)))
                case ReleaseAck(part):
                    self._release(part)
                case FailPart(part):
                    self._fail(part)
                case EndPart(part):
                    self._let_go(part)
                case _:
                    assert_never(action)
        return work

    def _release(self, part: Part) -> None:
        held = self._held[part]
        assert held.ack is not None, "a part without an ack is not released"
        timings = held.ack.timings
        if held.upload is not None:
            waited_ms = int((time.monotonic() - held.upload.began) * 1000)
            timings = replace(timings, async_ms=max(timings.async_ms, waited_ms))
        self._post(AckReleased(held.run, replace(held.ack, timings=timings)))

    def _fail(self, part: Part) -> None:
        held = self._held[part]
        reason, cause = Reason.CHECKPOINT_ASYNC_EXCEPTION, "a file that it shares was not written"
        failed = UploadFailed(part.checkpoint, reason, cause)
        self._post(UploadEnded(part.subtask, held.run, failed))

    def _let_go(self, part: Part) -> None:
        held = self._held.pop(part)
        if held.upload is not None:
            held.upload.is_held = False

    def _submit(self, work: _Work) -> None:
        """Without the lock: an upload thread may begin before this returns."""
        for act, arguments in work:
            self._uploading.submit(act, *arguments)

    # -- on upload threads

    def _do(self, work: _Work) -> None:
        """Here and now: when the slot ends, upload threads finish what they do and get no more."""
        for act, arguments in work:
            act(*arguments)

    def _write(self, path: str, segments: tuple[Segment, ...]) -> None:
        try:
            self._storage.put_merged(path, segments)
        except BaseException as problem:  # noqa: BLE001 - a panic of native code declines too
            log.info("%s could not be written: %s", path, describe_error(problem))
            with self._lock:
                del self._contents[path]
                work = self._carry_out(self._pool.not_written(path))
        else:
            with self._lock:
                del self._contents[path]
                self._sizes[path] = sum(segment.file.bytes for segment in segments)
                work = self._carry_out(self._pool.written(path))
        self._do(work)

    def _delete(self, path: str) -> None:
        try:
            self._storage.delete([path])
        except Exception as problem:  # noqa: BLE001 - garbage collection will find what is left
            log.warning("%s could not be deleted: %s", path, problem)
