"""Captures the state of a backend to files, and reads them."""

import pyarrow as pa

from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import KeyedBackend
from weir.ports.operators import TaskInfo
from weir.state.snapshot_files import KeyedState, read_keyed

MAX_PARALLELISM = 16

File = tuple[KeyGroupRange, pa.Buffer]


def a_place(index: int = 0, parallelism: int = 1) -> TaskInfo:
    subtask = SubtaskId(OperatorId("op"), index)
    return TaskInfo(subtask, parallelism, MAX_PARALLELISM, 1, 1, lambda: Millis(0))


def written(backend: KeyedBackend) -> list[File]:
    """What an upload would have put into storage."""
    captured = backend.capture(CheckpointId(1))
    files = [(piece.groups, piece.write()) for piece in captured.keyed]
    captured.release()
    return files


def whole(file: File) -> KeyedState:
    groups, data = file
    return read_keyed(data, groups)
