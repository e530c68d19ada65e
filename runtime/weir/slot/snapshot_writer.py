"""Writes the files of a subtask's snapshots, on upload threads beside the mailbox.

Whatever is raised, native panics included, becomes a result that declines the checkpoint: an upload
without a result would leave its checkpoint to the timeout. A discarded upload deletes its files
when it ends.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.core.barriers import Barrier
from weir.core.ids import SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import (
    InFlightHandle,
    KeyedHandle,
    ListHandle,
    NativeHandle,
    NativeState,
    StateFile,
    SubtaskSnapshot,
)
from weir.exchange import Run
from weir.ports.operators import Captured, KeyedSnapshot, LocalFile, NativeSnapshot
from weir.ports.user_code_errors import describe_error
from weir.slot.effects import InFlight, StartInFlightUpload, StartUpload
from weir.slot.file_storage import FileStorage, Segment
from weir.slot.merged_files import MergedFiles
from weir.slot.row_format import RowFormat
from weir.slot.snapshot_uploads import (
    InFlightUploaded,
    SnapshotUploaded,
    SnapshotUploads,
    Upload,
    UploadFailed,
    UploadResult,
)
from weir.slot.state_log import SegmentToWrite
from weir.storage.local_copies import Owner
from weir.storage.state_files import inline, mapped

log = logging.getLogger("weir.slot")

SHARED = "shared"
"""The directory, beside the checkpoints, of files that several of them refer to."""


def shared_directory(barrier: Barrier) -> str:
    return f"{barrier.location.rpartition('/')[0]}/{SHARED}"


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """The I/O of one subtask's uploads."""

    subtask: SubtaskId
    run: Run
    storage: FileStorage
    format: RowFormat
    uploads: SnapshotUploads
    merged: MergedFiles | None = None
    """Where pieces wait for those of other subtasks; None: each has a separate file."""

    def write(self, start: StartUpload | StartInFlightUpload) -> UploadResult:
        """Never raises."""
        if isinstance(start, StartUpload):
            return self._upload(start.upload, start.captured, start.snapshot)
        return self._upload_in_flight(start.upload, start.rows)

    def delete(self, upload: Upload) -> None:
        if self.merged is not None:
            self.merged.discarded(self.run, self.subtask, upload.barrier.checkpoint)
        lost = self.uploads.log.given_up(upload.barrier.checkpoint) if self.uploads.log else []
        try:
            self.storage.delete([*upload.own, *lost])
        except Exception as problem:  # noqa: BLE001 - garbage collection will find what is left
            log.warning("files of %s could not be deleted: %s", upload.barrier.location, problem)

    def write_segment(self, start: SegmentToWrite) -> None:
        """Never raises."""
        log_of_state = self.uploads.log
        assert log_of_state is not None, "changes are logged"
        epoch, attempt = self.run
        owner = Owner(self.subtask, log_of_state.newest)

        def put(what: str, content: pa.Buffer) -> StateFile:
            name = f"{self.subtask}-{what}-p{start.captured.position}-e{epoch}-a{attempt}"
            path = f"{log_of_state.directory}/{name}"
            return self.storage.put(path, content, owner=owner, shared=True)

        unneeded = log_of_state.write(start, put)
        self._release(start.captured)
        self.delete_unneeded(unneeded)

    def close_log(self) -> None:
        """The subtask has ended: no ack will name what was logged since the last."""
        if self.uploads.log is not None:
            self.delete_unneeded(self.uploads.log.close())

    def delete_unneeded(self, paths: list[str]) -> None:
        try:
            self.storage.delete(paths)
        except Exception as problem:  # noqa: BLE001 - garbage collection will find what is left
            log.warning("files of the changelog could not be deleted: %s", problem)

    def _upload(
        self, upload: Upload, captured: Captured, snapshot: SubtaskSnapshot
    ) -> UploadResult:
        try:
            whole = self._write(upload, captured, snapshot)
        except BaseException as problem:  # noqa: BLE001 - a panic of native code declines too
            return self._failed(upload, Reason.CHECKPOINT_ASYNC_EXCEPTION, problem)
        finally:
            self._release(captured)
        self._ended(upload)
        return SnapshotUploaded(upload.barrier.checkpoint, whole, upload.timings)

    def _release(self, captured: Captured) -> None:
        try:
            captured.release()
        except BaseException:  # a panic of native code too
            log.warning("%s could not release what it captured", self.subtask, exc_info=True)

    def _write(
        self, upload: Upload, captured: Captured, snapshot: SubtaskSnapshot
    ) -> SubtaskSnapshot:
        is_logged = self.uploads.log is not None and not upload.barrier.kind.is_savepoint
        native = captured.native if self._is_shared(upload) and not is_logged else None
        keyed: tuple[KeyedHandle, ...] = ()
        if is_logged:
            keyed = self._logged(upload, captured)
        elif native is None:
            keyed = self._unlogged(upload, captured)
        lists = tuple(
            ListHandle(
                piece.name,
                piece.redistribution,
                self._put(upload, f"list-{piece.name}", self.format.write_list(piece.items)),
                len(piece.items),
            )
            for piece in captured.lists
            if piece.items
        )
        for make_durable in captured.before_ack:
            make_durable()
        whole = replace(
            snapshot,
            keyed=keyed,
            native=() if native is None else (self._native(upload, native),),
            lists=lists,
            transactions=captured.transactions,
        )
        self.uploads.written(whole, upload.barrier)
        return whole

    def _logged(self, upload: Upload, captured: Captured) -> tuple[KeyedHandle, ...]:
        """The files of the tail belong to the log, and not to this upload alone."""
        assert self.uploads.log is not None, "changes are logged"
        before = len(upload.own)
        kept = self.merged.kept(upload.barrier) if self.merged is not None else None
        keyed = self.uploads.log.store(
            upload.barrier,
            captured,
            self._shared_put(upload),
            kept,
            merged=self.merged is not None,
        )
        del upload.own[before:]
        return keyed

    def _unlogged(self, upload: Upload, captured: Captured) -> tuple[KeyedHandle, ...]:
        return tuple(
            KeyedHandle(piece.groups, file)
            for number, piece in enumerate(captured.keyed)
            for file in self._keyed_files(upload, piece, number)
        )

    def _keyed_files(self, upload: Upload, piece: KeyedSnapshot, number: int) -> list[StateFile]:
        """A savepoint is self-contained, and so is a checkpoint where nothing is shared."""
        if not self._is_shared(upload):
            return [self._put(upload, f"keyed-{number}", piece.write())]
        kept = self.merged.kept(upload.barrier) if self.merged is not None else None
        return self.uploads.layers.store(upload.barrier, piece, self._shared_put(upload), kept)

    def _is_shared(self, upload: Upload) -> bool:
        return self.storage.is_incremental and not upload.barrier.kind.is_savepoint

    def _native(self, upload: Upload, native: NativeSnapshot) -> NativeHandle:
        """A full checkpoint has no base, so all files go up anew; a later one may build on them."""
        content = native.write()
        directory = f"{upload.barrier.location.rpartition('/')[0]}/{SHARED}"

        def put(file: LocalFile) -> StateFile:
            path = self._path(
                upload,
                f"{native.backend}-{native.instance}-{file.name}-c{upload.barrier.checkpoint}",
                directory if file.is_immutable else "",
            )
            data = mapped(file.path)
            upload.written_bytes += data.size
            upload.own.append(path)
            return self.storage.put(
                path,
                data,
                owner=self._owner(upload),
                shared=file.is_immutable,
                source=file.path,
            )

        files = self.uploads.native.store(upload.barrier, native.instance, content.files, put)
        states = tuple(
            NativeState(
                state.name, state.number, inline(state.schema.to_pybytes()), state.next_ordinal
            )
            for state in content.states
        )
        return NativeHandle(native.groups, native.backend, native.version, files, states)

    def _shared_put(self, upload: Upload) -> Callable[[str, pa.Buffer], StateFile]:
        directory = shared_directory(upload.barrier)

        def put(what: str, content: pa.Buffer) -> StateFile:
            name = f"{what}-c{upload.barrier.checkpoint}"
            return self._put(upload, name, content, directory=directory)

        return put

    def _upload_in_flight(self, upload: Upload, rows: InFlight) -> UploadResult:
        try:
            handles = tuple(
                InFlightHandle(
                    channel,
                    side,
                    self._put(
                        upload,
                        f"in-flight-{channel}-{side}",
                        self.format.write_in_flight(batches),
                    ),
                )
                for channel, side, batches in rows
            )
        except BaseException as problem:  # noqa: BLE001 - a panic of native code declines too
            return self._failed(upload, Reason.CHANNEL_STATE_SHARED_STREAM_EXCEPTION, problem)
        self._ended(upload)
        return InFlightUploaded(upload.barrier.checkpoint, handles, upload.timings)

    def _put(
        self, upload: Upload, what: str, content: pa.Buffer, *, directory: str = ""
    ) -> StateFile:
        path = self._path(upload, what, directory)
        upload.written_bytes += content.size
        owner = self._owner(upload)
        if self.merged is not None:
            file = self.storage.described(path, content, shared=bool(directory))
            segment = Segment(file, content, owner)
            return self.merged.offer(self.run, self.subtask, upload, segment) if file.path else file
        upload.own.append(path)
        return self.storage.put(path, content, owner=owner, shared=bool(directory))

    def _path(self, upload: Upload, what: str, directory: str) -> str:
        epoch, attempt = self.run
        name = f"{self.subtask}-{what}-e{epoch}-a{attempt}"
        return f"{directory or upload.barrier.location}/{name}"

    def _owner(self, upload: Upload) -> Owner | None:
        """Of local copies, which a checkpoint that commits nothing does not have."""
        barrier = upload.barrier
        return Owner(self.subtask, barrier.checkpoint) if barrier.kind.commits else None

    def _ended(self, upload: Upload) -> None:
        upload.async_ms = int((time.monotonic() - upload.began) * 1000)
        upload.is_busy = False
        if upload.is_discarded:
            self.delete(upload)

    def _failed(self, upload: Upload, reason: Reason, problem: BaseException) -> UploadFailed:
        checkpoint, cause = upload.barrier.checkpoint, describe_error(problem)
        # The driver warns of it, with this cause, when it aborts the checkpoint.
        log.info("%s could not upload checkpoint %s: %s", self.subtask, checkpoint, cause)
        self._ended(upload)
        return UploadFailed(checkpoint, reason, cause)
