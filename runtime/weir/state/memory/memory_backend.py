"""Keeps the keyed state of a subtask in the memory of its slot: the backend ``hashmap``."""

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa

from weir.core.changelog import Position
from weir.core.ids import CheckpointId
from weir.core.key_groups import range_of
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, Key, Rows, TimeMode
from weir.ports.operators import Captured, RestoredState, TaskInfo, together
from weir.state.batch_rows import BatchRows
from weir.state.layer_merge import merge_layers
from weir.state.memory import keyed_snapshot
from weir.state.memory.aggregate_table import AggregateTable
from weir.state.memory.keyed_states import KeyedColumn, ListState, MapState, ValueState
from weir.state.memory.memory_aggregates import MemoryAggregates
from weir.state.memory.memory_rows import MemoryRows
from weir.state.memory.row_index import RowIndex
from weir.state.memory.snapshot_diff import RememberedCaptures
from weir.state.memory.timers import Timers
from weir.state.memory.ttl import (
    ExpiredStateCleanup,
    Expiring,
    ExpiringListState,
    ExpiringMapState,
    ExpiringValueState,
)
from weir.state.restored_rows import Keys
from weir.state.snapshot_files import KeyedState, read_keyed

S = TypeVar("S", bound=KeyedColumn)

EXPIRING = (ExpiringValueState, ExpiringListState, ExpiringMapState)


class MemoryBackend:
    """The state of one subtask's keys."""

    def __init__(self, place: TaskInfo, keys: Sequence[pa.Field]) -> None:
        self._place = place
        self._keys = Keys(tuple(keys), place.max_parallelism)
        self._groups = range_of(place.subtask.index, place.parallelism, place.max_parallelism)
        self._row_index = RowIndex()
        self._states: dict[str, KeyedColumn] = {}
        self._expiring: list[Expiring] = []
        self._cleanup = ExpiredStateCleanup(self._row_index)
        self._versions = RememberedCaptures()
        self._tables: dict[str, MemoryAggregates | MemoryRows] = {}
        """What is used by whole batches: running aggregates and batch states."""
        self.cursor = self._row_index.cursor
        # Asked for each key, so these are the index's own methods.
        self.seek = self._row_index.seek
        self.settle = self._row_index.settle

    # -- declarations

    def aggregates(
        self, aggregates: Sequence[Aggregation], schema: pa.Schema, namespace: str | None = None
    ) -> MemoryAggregates:
        table = MemoryAggregates(
            AggregateTable(self._keys.names, aggregates, schema, namespace),
            self._keys,
            self._groups,
            is_incremental=self._place.is_incremental,
        )
        self._tables[AGGREGATES_FILE] = table
        return table

    def batch_value_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> MemoryRows:
        return self._rows(BatchRows(name, self._keys, tuple(values), time))

    def batch_list_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> MemoryRows:
        return self._rows(BatchRows(name, self._keys, tuple(values), time, has_ordinals=True))

    def _rows(self, rows: BatchRows) -> MemoryRows:
        incremental = self._place.is_incremental
        self._tables[rows.name] = state = MemoryRows(rows, self._groups, is_incremental=incremental)
        return state

    def value_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> ValueState:
        if ttl_ms is None:
            return self._declared(ValueState(name, self._row_index, rows))
        return self._declared(ExpiringValueState(name, self._row_index, rows, ttl_ms))

    def list_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> ListState:
        if ttl_ms is None:
            return self._declared(ListState(name, self._row_index, rows))
        return self._declared(ExpiringListState(name, self._row_index, rows, ttl_ms))

    def map_state(
        self, name: str, user_keys: Rows, rows: Rows, ttl_ms: int | None = None
    ) -> MapState:
        if ttl_ms is None:
            return self._declared(MapState(name, self._row_index, user_keys, rows))
        return self._declared(ExpiringMapState(name, self._row_index, (user_keys, rows), ttl_ms))

    def timers(self, mode: TimeMode) -> Timers:
        return self._declared(Timers(self._row_index, mode))

    def drop(self, name: str) -> None:
        self._tables.pop(name, None)
        if (state := self._states.pop(name, None)) is not None:
            self._row_index.drop(state.column)
            self._expiring = [kept for kept in self._expiring if kept.column is not state.column]

    def _declared(self, state: S) -> S:
        self._states[state.name] = state
        if isinstance(state, EXPIRING):
            self._expiring.append(state)
        return state

    # -- one key at a time

    def prefetch(self, keys: Sequence[Key]) -> None:
        """All keys are in memory."""

    def keys_with(self, name: str) -> list[Key]:
        return self._row_index.keys_with(self._states[name].column)

    def expire(self) -> None:
        if self._expiring:
            self._cleanup.step(self._expiring, self.cursor.now)

    # -- snapshots

    def needs_flush(self) -> bool:
        """Row numbers stay valid."""
        return False

    def flushed(self) -> None:
        """Row numbers stay valid."""

    def capture(self, checkpoint: CheckpointId) -> Captured:
        parts = [table.capture(checkpoint) for table in self._tables.values()]
        is_logged = self._place.is_logged and bool(self._states or not self._tables)
        if len(self._row_index) or is_logged:
            captured = self._capture_states()
            known = frozenset(self._versions.known())
            if self._place.is_incremental:
                self._versions.remember(checkpoint, captured.versions)
            parts.append(
                Captured(
                    keyed=captured.keyed,
                    release=captured.release,
                    known=known,
                    keyed_in_memory=True,
                )
            )
        return together(parts)

    def restore(self, restored_state: RestoredState) -> list[str]:
        files: dict[str, list[KeyedState]] = {}
        for groups, data in restored_state.keyed:
            state = read_keyed(data, groups)
            files.setdefault(state.name, []).append(state)
        for name, table in self._tables.items():
            table.restore(files.pop(name, []), restored_state.checkpoint)
        unknown = [name for name in files if name not in self._states]
        changed = {name for name in files if name in self._states and self._load(files[name])}
        if self._place.is_incremental and self._states:
            # What is declared differently now cannot be laid over the files of then.
            versions = self._capture_states().versions
            kept = {name: of for name, of in versions.items() if name not in changed}
            self._versions.remember(restored_state.checkpoint, kept)
        return unknown

    def completed(self, checkpoint: CheckpointId) -> None:
        self._versions.completed(checkpoint)
        for table in self._tables.values():
            table.completed(checkpoint)

    def truncated(self, position: Position) -> None:
        """Captures have positions where ``LoggedBackend`` stands before."""

    def close(self) -> None:
        """The memory goes with the object."""

    def _capture_states(self) -> keyed_snapshot.CapturedStates:
        states = [state for state in self._states.values() if _is_kept(state)]
        states.sort(key=lambda state: state.name.startswith("$"))
        known = self._versions.known()
        return keyed_snapshot.capture(self._row_index, states, self._keys, self._groups, known)

    def _load(self, files: Sequence[KeyedState]) -> bool:
        """Whether the state was declared differently when some file was written."""
        state = self._states[files[0].name]
        changed = False
        for part in merge_layers(files):
            changed |= keyed_snapshot.load(part, self._row_index, state, self._keys)
        return changed


def _is_kept(state: KeyedColumn) -> bool:
    return not (isinstance(state, Timers) and state.mode is TimeMode.NONE)
