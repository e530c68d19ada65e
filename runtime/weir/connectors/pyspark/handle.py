"""Gives a PySpark processor the handle it expects, over state in the same process.

A call on a state touches lists and dictionaries of this process, where PySpark asks a server in the
JVM. States are declared while the processor's ``init`` runs and at no other time, so that their set
is known before the first row and before anything is restored.
"""

# ruff: noqa: N802, N803 - the names are PySpark's

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.streaming import stateful_processor as spark
from pyspark.sql.types import StructType

from weir.connectors.pyspark.rows import row_maker
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.keyed_state import (
    KeyedBackend,
    ListState,
    MapState,
    Row,
    State,
    TimeMode,
    Timers,
    ValueState,
)
from weir.state.row_types import RowType

Declared: TypeAlias = tuple[str, tuple[pa.Schema, ...], int | None]
"""The kind of a state, its schemas and how long its values live."""


class Value(spark.ValueState):
    """A value state under PySpark's names, which are our own."""

    def __init__(self, state: ValueState) -> None:
        """Stand in front of the state, whose methods it shows as its own: they are called most."""
        self._state = state
        vars(self).update(
            exists=state.exists, get=state.get, update=state.update, clear=state.clear
        )

    def exists(self) -> bool:
        return self._state.exists()

    def get(self) -> Row | None:
        return self._state.get()

    def update(self, newValue: Row) -> None:
        self._state.update(newValue)

    def clear(self) -> None:
        self._state.clear()


class List(spark.ListState):
    """A list state under PySpark's names."""

    def __init__(self, state: ListState) -> None:
        """Stand in front of the state."""
        self._state = state

    def exists(self) -> bool:
        return self._state.exists()

    def get(self) -> Iterator[Row]:
        return self._state.get()

    def put(self, newState: list[Row]) -> None:
        self._state.put(newState)

    def appendValue(self, newState: Row) -> None:
        self._state.append(newState)

    def appendList(self, newState: list[Row]) -> None:
        self._state.extend(newState)

    def clear(self) -> None:
        self._state.clear()


class Map(spark.MapState):
    """A map state under PySpark's names."""

    def __init__(self, state: MapState, names: Sequence[str]) -> None:
        """Stand in front of the state, whose values have fields of these names."""
        self._state = state
        self._make_row = row_maker(names)

    def exists(self) -> bool:
        return self._state.exists()

    def getValue(self, key: Row) -> Row | None:
        """A Row with names, as in PySpark; iterators give plain tuples there too."""
        value = self._state.value(key)
        return None if value is None else self._make_row(value)

    def containsKey(self, key: Row) -> bool:
        return self._state.contains(key)

    def updateValue(self, key: Row, value: Row) -> None:
        self._state.update(key, value)

    def iterator(self) -> Iterator[tuple[Row, Row]]:
        return self._state.items()

    def keys(self) -> Iterator[Row]:
        return (key for key, _ in self._state.items())

    def values(self) -> Iterator[Row]:
        return (value for _, value in self._state.items())

    def removeKey(self, key: Row) -> None:
        self._state.remove(key)

    def clear(self) -> None:
        self._state.clear()


class DeletedState:
    """Stands where a state was: the processor may still hold what was in front of it."""

    def __init__(self, name: str) -> None:
        """Know the state only by name."""
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        """Whatever is asked of a deleted state."""
        raise JobRejected(
            f"state {self._name!r} is used after it was deleted",
            f"init has called deleteIfExists({self._name!r})",
            "delete it before it is declared, or not at all",
        )


class Handle(spark.StatefulProcessorHandle):
    """The handle that ``init`` gets. The states are those of the current key."""

    def __init__(self, backend: KeyedBackend, timers: Timers, mode: TimeMode) -> None:
        """Know no state yet."""
        self._backend = backend
        self._timers = timers
        self._mode = mode
        self._is_declaring = True
        self._declared: dict[str, tuple[Declared, Any]] = {}
        self.states: dict[str, State] = {}
        self.deleted: set[str] = set()
        """Names of states that the processor has deleted."""

    def seal(self) -> None:
        """No state can be declared from now on."""
        self._is_declaring = False

    def getValueState(
        self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None
    ) -> spark.ValueState:
        rows = self._row_type(stateName, schema)
        declared = ("value", (rows.schema,), ttlDurationMs)
        if self._is_new(stateName, declared):
            state = self._backend.value_state(stateName, rows, ttlDurationMs)
            self._keep(declared, state, Value(state))
        found: spark.ValueState = self._declared[stateName][1]
        return found

    def getListState(
        self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None
    ) -> spark.ListState:
        rows = self._row_type(stateName, schema)
        declared = ("list", (rows.schema,), ttlDurationMs)
        if self._is_new(stateName, declared):
            state = self._backend.list_state(stateName, rows, ttlDurationMs)
            self._keep(declared, state, List(state))
        found: spark.ListState = self._declared[stateName][1]
        return found

    def getMapState(
        self,
        stateName: str,
        userKeySchema: StructType | str,
        valueSchema: StructType | str,
        ttlDurationMs: int | None = None,
    ) -> spark.MapState:
        keys = self._row_type(stateName, userKeySchema)
        rows = self._row_type(stateName, valueSchema)
        declared = ("map", (keys.schema, rows.schema), ttlDurationMs)
        if self._is_new(stateName, declared):
            state = self._backend.map_state(stateName, keys, rows, ttlDurationMs)
            self._keep(declared, state, Map(state, rows.schema.names))
        found: spark.MapState = self._declared[stateName][1]
        return found

    def registerTimer(self, expiryTimestampMs: int) -> None:
        self._check_timers()
        self._timers.register(int(expiryTimestampMs))

    def deleteTimer(self, expiryTimestampMs: int) -> None:
        self._check_timers()
        self._timers.delete(int(expiryTimestampMs))

    def listTimers(self) -> Iterator[int]:
        self._check_timers()
        return self._timers.of_key()

    def deleteIfExists(self, stateName: str) -> None:
        self._check_declaring(f"deleteIfExists({stateName!r})")
        self.deleted.add(stateName)
        self.states.pop(stateName, None)
        self._backend.drop(stateName)
        if stateName in self._declared:
            _, shown = self._declared.pop(stateName)
            vars(shown).clear()
            shown._state = DeletedState(stateName)  # noqa: SLF001 - one of the classes above

    def _row_type(self, name: str, schema: StructType | str) -> RowType:
        declared = _declared_schema(schema)
        return RowType(f"state {name!r}", declared, row_maker, naive_instants=True)

    def _is_new(self, name: str, declared: Declared) -> bool:
        self._check_declaring(f"state {name!r}")
        if name.startswith("$"):
            raise JobRejected(
                f"state {name!r} has a reserved name",
                "names that begin with $ belong to Weir",
                "choose another name",
            )
        ttl_ms = declared[2]
        if ttl_ms is not None and ttl_ms <= 0:
            raise JobRejected(
                f"state {name!r} has a time to live of {ttl_ms} ms",
                "a time to live must be above zero",
                "give a larger one, or none",
            )
        if name in self._declared and self._declared[name][0] != declared:
            raise JobRejected(
                f"state {name!r} is declared twice, differently",
                "a name stands for one state",
                "rename one of them",
            )
        return name not in self._declared

    def _keep(self, declared: Declared, state: State, shown: object) -> None:
        self.states[state.name] = state
        self.deleted.discard(state.name)
        self._declared[state.name] = (declared, shown)

    def _check_declaring(self, what: str) -> None:
        if not self._is_declaring:
            raise JobRejected(
                f"{what} is asked for outside of init",
                "states are declared in init only",
                "move the call into init",
            )

    def _check_timers(self) -> None:
        if self._is_declaring:
            raise JobRejected(
                "a timer is set in init",
                "init has no key to set timers for",
                "set it in handleInputRows",
            )
        if self._mode is TimeMode.NONE:
            raise JobRejected(
                "a timer is set in time mode None",
                "timers need a time",
                "run transformWithState with timeMode ProcessingTime or EventTime",
            )


def _declared_schema(schema: StructType | str) -> pa.Schema:
    """A StructType's ``simpleString`` does not have the nullability of fields."""
    found = schema_of(schema)
    if isinstance(schema, str):
        return found
    pairs = zip(found, schema.fields, strict=True)
    return pa.schema([field.with_nullable(declared.nullable) for field, declared in pairs])
