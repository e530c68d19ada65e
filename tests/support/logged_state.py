"""A backend with its changelog, whose files are kept in a dictionary."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from stepped_slots import a_barrier
from weir.core.changelog import ChangelogPolicy
from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import CheckpointKind, KeyedHandle, KeyGroupRange, StateFile
from weir.ports.keyed_state import BackendFactory, KeyedBackend
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.row_format import ArrowFormat
from weir.slot.state_log import SegmentToWrite, StateLog
from weir.state.logged_backend import LoggedBackend

POLICY = ChangelogPolicy(materialization_interval_ms=1_000_000, preemptive_bytes=1)


def logged(make: BackendFactory) -> BackendFactory:
    """The same backends, behind the numbers of a changelog."""

    def backend(place: TaskInfo, keys: Sequence[pa.Field]) -> KeyedBackend:
        return LoggedBackend(make(replace(place, is_incremental=True, is_logged=True), keys))

    return backend


class LoggedState:
    """What a slot does with the state of one subtask, one thing after the other."""

    def __init__(self, policy: ChangelogPolicy = POLICY) -> None:
        self.policy = policy
        self.files: dict[str, bytes] = {}
        self.made = 0
        self.number = 0
        self.completed = CheckpointId(0)
        self.handles: tuple[KeyedHandle, ...] = ()
        """Of the newest completed checkpoint."""

    def begin(self, backend: KeyedBackend) -> None:
        """The backend restores the newest completed checkpoint, and its log goes on from it."""
        self.backend = backend
        self.log = StateLog(self.policy, ArrowFormat())
        self.log.directory = "shared"
        keyed = [(h.groups, self.content(h.file)) for h in self.handles]
        backend.restore(RestoredState(keyed=keyed, checkpoint=self.completed))
        by_state: dict[str, list[StateFile]] = {}
        for handle, (_, data) in zip(self.handles, keyed, strict=True):
            by_state.setdefault(ArrowFormat().state_name(data), []).append(handle.file)
        if by_state:
            self.log.restored(self.completed, by_state, merged=False)
        else:
            self.log.begun()

    def begin_from(
        self, backend: KeyedBackend, files: Sequence[tuple[KeyGroupRange, pa.Buffer]]
    ) -> None:
        """The backend restores files that the job may not share."""
        self.backend = backend
        self.log = StateLog(self.policy, ArrowFormat())
        self.log.directory = "shared"
        backend.restore(RestoredState(keyed=files))

    def content(self, file: StateFile) -> pa.Buffer:
        return pa.py_buffer(self.files[file.path])

    def checkpoint(self, *, fate: str = "completes", full: bool = False) -> tuple[KeyedHandle, ...]:
        """Its files; ``fate``: it completes, or it is aborted before or after the ack."""
        self.number += 1
        kind = CheckpointKind.FULL_CHECKPOINT if full else CheckpointKind.CHECKPOINT
        barrier = replace(a_barrier(CheckpointId(self.number)), base=self.completed, kind=kind)
        captured = self.backend.capture(barrier.checkpoint)
        handles = self.log.store(barrier, captured, self._put, None, merged=False)
        captured.release()
        if fate != "aborts before the ack":
            self.log.acked(barrier.checkpoint)
        if fate == "completes":
            position, unneeded = self.log.completed(barrier.checkpoint)
            self.backend.truncated(position)
            self.handles, self.completed = handles, barrier.checkpoint
        else:
            unneeded = self.log.given_up(barrier.checkpoint)
        self._delete(unneeded)
        return handles

    def cut(self, *, whole: bool = False, fails: bool = False) -> None:
        """A segment between checkpoints, or a materialization."""
        captured = self.backend.capture(CheckpointId(0))
        log = self.log
        start = log.materialize(captured, Millis(0)) if whole else log.log_changes(captured)
        self.end(start, fails=fails)

    def end(self, start: SegmentToWrite, *, fails: bool = False) -> None:
        self._delete(self.log.write(start, self._refuse if fails else self._put))
        start.captured.release()

    def end_log(self) -> None:
        """The subtask ends."""
        self._delete(self.log.close())

    def _put(self, what: str, content: pa.Buffer) -> StateFile:
        self.made += 1
        path = f"{what}-{self.made}"
        self.files[path] = content.to_pybytes()
        return StateFile(path, content.size, shared=True)

    def _refuse(self, what: str, content: pa.Buffer) -> StateFile:
        raise OSError(what, content.size)

    def _delete(self, paths: list[str]) -> None:
        needed = {handle.file.path for handle in self.handles}
        for path in paths:
            assert path not in needed, "a file of a completed checkpoint is deleted"
            del self.files[path]
