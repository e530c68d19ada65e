"""Describes the content of a checkpoint or savepoint (spec S8, S9, U2).

Every file is fetched and verified, so a description without problems proves that the snapshot is
complete. A damaged file is listed with its path and the reason, and the rest is described anyway.
The caller passes the functions that open state files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from weir.core.checkpoint_paths import manifest_path
from weir.core.enumerator import Pool
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SplitId
from weir.core.restore_decision import Damaged
from weir.core.snapshots import (
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Manifest,
    NativeHandle,
    Redistribution,
    StateFile,
    SubtaskSnapshot,
    Transaction,
    Width,
)
from weir.core.space_amplification import amplification
from weir.errors import JobRejected
from weir.ports.sources import SPLITS, CheckpointedSplit
from weir.storage import manifests, state_files
from weir.storage.object_store import NotFound, ObjectStore


class Header(Protocol):
    """The header of a file of keyed state."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def key_columns(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StateFileReaders:
    """Functions that open the two kinds of state files."""

    header: Callable[[pa.Buffer, KeyGroupRange], Header]
    items: Callable[[pa.Buffer, int, int], list[bytes]]


@dataclass(frozen=True, slots=True)
class KeyedDescription:
    """One keyed state of an operator, over all its subtasks."""

    name: str
    kind: str
    schema: pa.Schema
    key_columns: tuple[str, ...]
    rows: int
    """Of all files; where they are layers, a key that changed is counted in each."""
    bytes: int
    handles: tuple[KeyedHandle, ...]

    @property
    def parts(self) -> tuple[tuple[KeyedHandle, ...], ...]:
        """By range of key groups; several files of one range are layers, the oldest first."""
        by_range: dict[KeyGroupRange, list[KeyedHandle]] = defaultdict(list)
        for handle in self.handles:
            by_range[handle.groups].append(handle)
        return tuple(tuple(layers) for layers in by_range.values())

    @property
    def is_layered(self) -> bool:
        return len(self.parts) < len(self.handles)

    @property
    def files(self) -> int:
        """How many lie beside the manifest; all others are inside it."""
        return len({handle.file.path for handle in self.handles if handle.file.path})


@dataclass(frozen=True, slots=True)
class ListDescription:
    """One list state of an operator, over all its subtasks."""

    name: str
    redistribution: Redistribution
    items: tuple[bytes, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class NativeDescription:
    """The instances of one backend, over all subtasks of an operator."""

    backend: str
    states: tuple[str, ...]
    files: int
    bytes: int
    new_bytes: int
    """Uploaded for this checkpoint; the rest is shared with earlier ones."""


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """One operator of the job, by its uid."""

    uid: OperatorId
    parallelism: int
    max_parallelism: int
    bytes: int
    keyed: tuple[KeyedDescription, ...]
    lists: tuple[ListDescription, ...]
    transactions: tuple[Transaction, ...]
    """Output that was sealed and not yet committed."""
    watermarks: tuple[tuple[EdgeId, Millis], ...]
    """The lowest of each input."""
    free_splits: tuple[str, ...]
    """Splits that no subtask had begun."""
    in_flight: int
    """Channels whose rows a barrier overtook."""
    finished: int
    """Subtasks that had nothing left to do."""
    native: tuple["NativeDescription", ...] = ()
    """Keyed state in files of its backend, which only that backend reads."""

    @property
    def positions(self) -> dict[SplitId, str]:
        """How far each split was read that a subtask had begun."""
        items = (item for one in self.lists if one.name == SPLITS for item in one.items)
        return {kept.split: kept.position for kept in map(CheckpointedSplit.decode, items)}


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The files of a snapshot, and the pieces of state in them; inline state is in none."""

    logical_files: int
    logical_bytes: int
    physical_files: int
    physical_bytes: int

    @property
    def is_merged(self) -> bool:
        return (self.logical_files, self.logical_bytes) != (
            self.physical_files,
            self.physical_bytes,
        )

    @property
    def amplification(self) -> float:
        return amplification(self.physical_bytes, self.logical_bytes)


@dataclass(frozen=True, slots=True)
class Description:
    """A whole snapshot."""

    manifest: Manifest
    operators: tuple[OperatorDescription, ...]
    problems: tuple[JobRejected, ...]
    """Files that cannot be restored from, each with its path, the cause and the remedy."""
    files: FileStatistics

    @property
    def by_uid(self) -> dict[OperatorId, OperatorDescription]:
        return {operator.uid: operator for operator in self.operators}


def find(store: ObjectStore, path: str) -> Manifest:
    """The manifest of a snapshot that is named by its directory or by the manifest itself."""
    bare = path.rstrip("/")
    wanted = bare if bare.endswith(manifest_path("")) else manifest_path(bare)
    found = manifests.read(store, wanted)
    if isinstance(found, Damaged):
        raise JobRejected(
            f"manifest {wanted} cannot be read",
            found.why,
            "name the directory of a savepoint or of a chk-N, or bring the file back",
        )
    return found


def describe(store: ObjectStore, manifest: Manifest, opening: StateFileReaders) -> Description:
    subtasks: dict[OperatorId, list[SubtaskSnapshot]] = defaultdict(list)
    for snapshot in sorted(manifest.snapshots, key=lambda snapshot: snapshot.subtask):
        subtasks[snapshot.subtask.operator].append(snapshot)
    look = _Inspector(store, opening, [])
    operators = tuple(
        look.operator(manifest, width, subtasks[width.operator]) for width in manifest.widths
    )
    return Description(manifest, operators, tuple(look.problems), _file_statistics(store, manifest))


def _file_statistics(store: ObjectStore, manifest: Manifest) -> FileStatistics:
    segments = {file.segment: file for file in manifest.files()}
    paths = {file.path for file in segments.values()}
    return FileStatistics(
        logical_files=len(segments),
        logical_bytes=sum(file.bytes for file in segments.values()),
        physical_files=len(paths),
        physical_bytes=sum(_size(store, path) for path in paths),
    )


def _size(store: ObjectStore, path: str) -> int:
    """A file that is missing is among the problems."""
    try:
        return store.size(path)
    except NotFound:
        return 0


def operators_of(description: Description, uid: str) -> list[OperatorDescription]:
    """The operators that are meant: the one of this uid, or all if it is empty."""
    found = [each for each in description.operators if uid in ("", each.uid)]
    if found:
        return found
    known = ", ".join(each.uid for each in description.operators)
    raise JobRejected(
        f"{description.manifest.location} has no operator {uid!r}",
        f"its operators are {known}",
        "choose one of these",
    )


def refuse_native(operators: Iterable[OperatorDescription]) -> None:
    """Rows are read from open files only."""
    for operator in operators:
        for native in operator.native:
            raise JobRejected(
                f"the state of {operator.uid} cannot be read from this checkpoint",
                f"it is an incremental checkpoint in the files of {native.backend}",
                "take a savepoint, whose files are open, and read that",
            )


def states_of(operators: list[OperatorDescription], name: str) -> list[KeyedDescription]:
    """The keyed states that are meant: those of this name, or all if it is empty."""
    refuse_native(operators)
    known = [each for operator in operators for each in operator.keyed]
    found = [each for each in known if name in ("", each.name)]
    if found or not name:
        return found
    uids = ", ".join(operator.uid for operator in operators)
    names = ", ".join(each.name for each in known) or "those of another operator"
    raise JobRejected(
        f"there is no keyed state {name!r} of {uids}",
        f"the states are: {names}",
        "choose one of these",
    )


@dataclass(frozen=True, slots=True)
class _Inspector:
    """One walk over the files of a snapshot, which remembers what it could not read."""

    store: ObjectStore
    opening: StateFileReaders
    problems: list[JobRejected]

    def operator(
        self, manifest: Manifest, width: Width, snapshots: list[SubtaskSnapshot]
    ) -> OperatorDescription:
        for handle in (handle for s in snapshots for handle in s.in_flight):
            self._fetched(handle)
        return OperatorDescription(
            uid=width.operator,
            parallelism=width.parallelism,
            max_parallelism=width.max_parallelism,
            bytes=sum(snapshot.bytes for snapshot in snapshots),
            keyed=tuple(self._keyed(h for s in snapshots for h in s.keyed)),
            lists=tuple(self._lists(h for s in snapshots for h in s.lists)),
            transactions=tuple(t for s in snapshots for t in s.transactions),
            watermarks=_lowest(w for s in snapshots for w in s.watermarks),
            free_splits=_free_splits(manifest, width.operator),
            in_flight=sum(len(snapshot.in_flight) for snapshot in snapshots),
            finished=sum(1 for s in manifest.finished if s.operator == width.operator),
            native=tuple(self._native(manifest.checkpoint, snapshots)),
        )

    def _native(
        self, checkpoint: CheckpointId, snapshots: list[SubtaskSnapshot]
    ) -> Iterator[NativeDescription]:
        by_backend: dict[str, list[NativeHandle]] = defaultdict(list)
        for native in (native for s in snapshots for native in s.native):
            by_backend[native.backend].append(native)
        for backend, instances in by_backend.items():
            named = [file for native in instances for file in native.files]
            for each in named:
                self._fetched(each)
            yield NativeDescription(
                backend,
                tuple(dict.fromkeys(s.name for native in instances for s in native.states)),
                len(named),
                sum(each.file.bytes for each in named),
                sum(each.file.bytes for each in named if _is_new(each.file, checkpoint)),
            )

    def _keyed(self, handles: Iterable[KeyedHandle]) -> Iterator[KeyedDescription]:
        parts: dict[str, list[tuple[KeyedHandle, Header]]] = defaultdict(list)
        for handle in handles:
            header = self._header(handle)
            if header is not None:
                parts[header.name].append((handle, header))
        for name, several in parts.items():
            first = several[0][1]
            yield KeyedDescription(
                name=name,
                kind=first.kind,
                schema=first.schema,
                key_columns=first.key_columns,
                rows=sum(header.rows for _, header in several),
                bytes=sum(handle.file.bytes for handle, _ in several),
                handles=tuple(handle for handle, _ in several),
            )

    def _lists(self, handles: Iterable[ListHandle]) -> Iterator[ListDescription]:
        parts: dict[str, list[ListHandle]] = defaultdict(list)
        for handle in handles:
            parts[handle.name].append(handle)
        for name, several in parts.items():
            yield ListDescription(
                name=name,
                redistribution=several[0].redistribution,
                items=tuple(item for handle in several for item in self._items(handle)),
                bytes=sum(handle.file.bytes for handle in several),
            )

    def _header(self, handle: KeyedHandle) -> Header | None:
        data = self._fetched(handle)
        try:
            return None if data is None else self.opening.header(data, handle.groups)
        except JobRejected as problem:
            self._note(handle, problem)
            return None

    def _items(self, handle: ListHandle) -> list[bytes]:
        data = self._fetched(handle)
        try:
            return [] if data is None else self.opening.items(data, 0, handle.items)
        except JobRejected as problem:
            self._note(handle, problem)
            return []

    def _fetched(self, handle: "_Handle") -> pa.Buffer | None:
        try:
            return state_files.fetch(self.store, handle.file)
        except state_files.DamagedState as problem:
            self.problems.append(problem)
            return None

    def _note(self, handle: "_Handle", problem: JobRejected) -> None:
        self.problems.append(problem.prefixed(handle.file.path or "inline state"))


def _is_new(file: StateFile, checkpoint: CheckpointId) -> bool:
    """A shared file has the checkpoint that it was uploaded for in its name."""
    return not file.shared or f"-c{checkpoint}-e" in file.path


class _Handle(Protocol):
    @property
    def file(self) -> StateFile: ...


def _lowest(watermarks: Iterable[tuple[EdgeId, Millis]]) -> tuple[tuple[EdgeId, Millis], ...]:
    lowest: dict[EdgeId, Millis] = {}
    for edge, watermark in watermarks:
        lowest[edge] = min(watermark, lowest.get(edge, watermark))
    return tuple(sorted(lowest.items()))


def _free_splits(manifest: Manifest, operator: OperatorId) -> tuple[str, ...]:
    return tuple(
        split
        for coordinator in manifest.coordinators
        if coordinator.operator == operator and isinstance(coordinator.state, Pool)
        for split in coordinator.state.free
    )
