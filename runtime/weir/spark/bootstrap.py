"""Makes a savepoint from DataFrames, so that a job can begin with state that no job has kept.

    (
        Savepoint.new(max_parallelism=128)
        .withKeyedState("sums", "total", totals, key=["key"], value=["total"])
        .write("s3://bucket/bootstrapped")
    )

A job whose processor ``sums`` declares the value state ``total`` with these columns starts from it
with ``weir run job.py --from``; operators that the savepoint does not name begin afresh. Columns
must have the types that the job has.

Values, lists, maps and timers of processors can be made, and the running aggregates of
``groupBy(…).agg(…)``. Spark's tasks find the key groups and write the files, so the state need not
fit into the driver (spec S9).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as filled
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's users write it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructType, TimestampType

from weir.api.storage_url import is_memory
from weir.core.ids import CheckpointId, Epoch, Millis, OperatorId, SubtaskId
from weir.core.key_groups import MAX_PARALLELISM_LIMIT, owners_of, range_of
from weir.core.snapshots import (
    CheckpointKind,
    KeyedHandle,
    Manifest,
    StateFile,
    SubtaskSnapshot,
    Width,
)
from weir.errors import JobRejected
from weir.ports.keyed_state import AGGREGATES_FILE, TIMERS, TimeMode
from weir.ports.operators import Batch
from weir.state.snapshot_files import write_keyed
from weir.state.state_columns import LIST, MAP, ORDINAL, TIMER, TIMER_FIELDS, VALUE
from weir.state.state_schema import KIND
from weir.storage import manifests, state_files
from weir.storage.store_by_scheme import StoreByScheme
from weir.storage.stores import as_url
from weir.wire.keys import check_key_type, key_groups
from weir.wire.struct_keys import leaves_of, nullable_inside

PART, PLAIN = "__weir_part", "__weir_column_"
FIRST = CheckpointId(1)
_WRITTEN = (
    "part int, path string, bytes long, checksum string, content binary, cause string,"
    " remedy string"
)

NEVER_NULL = {field.name: field for field in (ORDINAL, *TIMER_FIELDS)}
"""Columns that the state itself needs."""


@dataclass(frozen=True, slots=True)
class BootstrappedState:
    """One keyed state to be, and the DataFrame that it is made of."""

    uid: str
    name: str
    frame: DataFrame
    keys: tuple[str, ...]
    """Columns of the frame, its first ones."""
    columns: Mapping[str, str]
    """What each column of the frame is called in the files; the keys come first."""
    kind: str
    """Empty for running aggregates, whose files name none."""
    once: tuple[str, ...] = ()
    """Columns of the frame that identify a row of a key; a list's rows need not differ."""

    @property
    def unique(self) -> tuple[str, ...]:
        """No two rows may agree in these columns of the file; empty: they may."""
        if self.kind == LIST:
            return ()
        return tuple(self.columns[name] for name in (*self.keys, *self.once))

    def arrow(self, *names: str) -> list[pa.Field]:
        """These columns of the frame as the files have them."""
        frame = self.frame.select(*(self.frame[_quoted(name)] for name in names))
        return [
            NEVER_NULL.get(
                self.columns[field.name],
                pa.field(self.columns[field.name], nullable_inside(field.type)),
            )
            for field in to_arrow_schema(frame.schema)
        ]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one state become files. It travels to Spark's tasks."""

    place: str
    """Where the files go; the number of the part is still to be added."""
    name: str
    keys: tuple[str, ...]
    unique: tuple[str, ...]
    schema: pa.Schema
    parts: int
    max_parallelism: int


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint to be; every call returns a new one, and ``write`` makes it."""

    max_parallelism: int
    states: tuple[BootstrappedState, ...] = ()

    @classmethod
    def new(cls, max_parallelism: int) -> "Savepoint":
        """The job must have the same max parallelism, or set none."""
        if not 0 < max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise JobRejected(
                f"max parallelism {max_parallelism} is out of range",
                f"there are at most {MAX_PARALLELISM_LIMIT} key groups",
                f"choose 1 to {MAX_PARALLELISM_LIMIT}",
            )
        return cls(max_parallelism)

    def withKeyedState(  # noqa: N802 - in PySpark's manner
        self, uid: str, name: str, frame: DataFrame, *, key: Sequence[str], value: Sequence[str]
    ) -> "Savepoint":
        """A processor's value state: one row of values for each key."""
        columns = _Columns(uid, name, frame, tuple(key)).under("value", value)
        return self.withState(columns.state(VALUE))

    def withListState(  # noqa: N802, PLR0913 - in PySpark's manner; each names columns
        self,
        uid: str,
        name: str,
        frame: DataFrame,
        *,
        key: Sequence[str],
        value: Sequence[str],
        order: Sequence[str],
    ) -> "Savepoint":
        """A processor's list state: any number of rows for each key.

        ``order`` sorts the rows of the list, because a DataFrame has no order.
        """
        columns = _Columns(uid, name, frame, tuple(key)).under("value", value)
        columns.refuse_unless(bool(order), "no column defines the order of the list", "name one")
        place = Window.partitionBy(*map(columns.column, key)).orderBy(*map(columns.column, order))
        ordinal = (F.row_number().over(place) - 1).cast(LongType())
        return self.withState(columns.adding(ORDINAL.name, ordinal).state(LIST))

    def withMapState(  # noqa: N802, PLR0913 - in PySpark's manner; each names columns
        self,
        uid: str,
        name: str,
        frame: DataFrame,
        *,
        key: Sequence[str],
        userKey: Sequence[str],  # noqa: N803
        value: Sequence[str],
    ) -> "Savepoint":
        """A processor's map state: one row of values for each user key of each key."""
        columns = _Columns(uid, name, frame, tuple(key))
        columns.refuse_unless(bool(userKey), "a map has user keys", "name their columns")
        columns = columns.under("user_key", userKey).under("value", value)
        return self.withState(columns.state(MAP, [f"user_key.{k}" for k in userKey]))

    def withTimers(  # noqa: N802 - in PySpark's manner
        self,
        uid: str,
        frame: DataFrame,
        *,
        key: Sequence[str],
        expires: str,
        timeMode: str,  # noqa: N803
    ) -> "Savepoint":
        """A processor's timers: one row for each, with the timestamp or the milliseconds it is for.

        The time mode is the one that the processor runs with, ProcessingTime or EventTime.
        """
        columns = _Columns(uid, TIMERS, frame, tuple(key))
        columns.refuse_unless(
            timeMode in (TimeMode.PROCESSING_TIME, TimeMode.EVENT_TIME),
            f"timers do not go by {timeMode!r}",
            "choose ProcessingTime or EventTime",
        )
        expiry, mode = (field.name for field in TIMER_FIELDS)
        columns = columns.adding(expiry, columns.millis(expires)).adding(mode, F.lit(timeMode))
        return self.withState(columns.state(TIMER, [expiry]))

    def withAggregates(  # noqa: N802 - in PySpark's manner
        self, uid: str, frame: DataFrame, *, key: Sequence[str]
    ) -> "Savepoint":
        """The running aggregates of ``groupBy(…).agg(…)``, under the names that its state has.

        These are ``count(*)``, ``count(x)``, ``sum(x)``, ``min(x)`` and ``max(x)``, as Spark calls
        them, and ``float_sum(x)`` for the average of whole numbers. Each needs its ``count(x)``.
        """
        columns = _Columns(uid, AGGREGATES_FILE, frame, tuple(key))
        for name in frame.columns:
            if name not in key:
                columns = columns.adding(name, columns.column(name))
        return self.withState(columns.state(""))

    def withState(self, state: BootstrappedState) -> "Savepoint":  # noqa: N802 - as its siblings
        """A state whose columns are chosen and named already."""
        keys = state.arrow(*state.keys)
        for field in keys:
            check_key_type(field)
        for other in self.states:
            if other.uid != state.uid:
                continue
            if other.name == state.name:
                raise JobRejected(
                    f"state {state.name!r} of {state.uid} is given twice",
                    "a name stands for one state",
                    "remove one of them",
                )
            if bool(other.kind) != bool(state.kind) or other.arrow(*other.keys) != keys:
                raise JobRejected(
                    f"states {other.name!r} and {state.name!r} of {state.uid} cannot belong to "
                    "one operator",
                    "all states of an operator have the same key, and an aggregation keeps "
                    "nothing else",
                    "give one of them another uid",
                )
        return replace(self, states=(*self.states, state))

    def write(self, path: str) -> str:
        """Write the savepoint to a new directory; returns its URL for ``--from``."""
        location = as_url(path).rstrip("/")
        if not self.states or is_memory(location):
            raise JobRejected(
                f"no savepoint can be made at {location}",
                "it needs a state and a directory that Spark's tasks reach",
                "add a state, and write to a directory as in file:///data/bootstrapped or "
                "s3://bucket/bootstrapped",
            )
        store = StoreByScheme()
        store.make_new(location)
        spark = self.states[0].frame.sparkSession
        parts = min(spark.sparkContext.defaultParallelism, self.max_parallelism)
        written = [(state, self._write_state(state, location, parts)) for state in self.states]
        manifests.write(store, self._manifest(location, parts, written))
        return location

    def _write_state(
        self, state: BootstrappedState, location: str, parts: int
    ) -> list[tuple[int, StateFile]]:
        frame = state.frame.select(*(state.frame[_quoted(name)] for name in state.columns))
        layout = self._layout(state, location, parts)
        # Arrow casts no struct that is null somewhere to one whose fields are NOT NULL.
        nullable = frame.schema._as_nullable()  # noqa: SLF001 - PySpark has no other name for it
        dealt_schema = StructType([*nullable.fields]).add(PART, IntegerType())
        dealt = frame.mapInArrow(dealing(layout), dealt_schema)
        rows = dealt.groupBy(PART).applyInArrow(writing(layout), _WRITTEN).collect()
        problems = sorted((row.cause, row.remedy) for row in rows if row.cause)
        if problems:
            raise JobRejected(
                f"state {state.name!r} of {state.uid} cannot be written",
                *problems[0],
            )
        return sorted((row.part, _file(row)) for row in rows)

    def _layout(self, state: BootstrappedState, location: str, parts: int) -> Layout:
        return Layout(
            place=f"{location}/{quote(state.uid, safe='')}-{quote(state.name, safe='')}",
            name=state.name,
            keys=tuple(state.columns[key] for key in state.keys),
            unique=state.unique,
            schema=pa.schema(
                state.arrow(*state.columns), metadata={KIND: state.kind} if state.kind else None
            ),
            parts=parts,
            max_parallelism=self.max_parallelism,
        )

    def _manifest(
        self,
        location: str,
        parts: int,
        written: Sequence[tuple[BootstrappedState, list[tuple[int, StateFile]]]],
    ) -> Manifest:
        uids = [OperatorId(uid) for uid in dict.fromkeys(state.uid for state in self.states)]
        keyed: dict[SubtaskId, list[KeyedHandle]] = {
            SubtaskId(uid, part): [] for uid in uids for part in range(parts)
        }
        for state, files in written:
            for part, file in files:
                groups = range_of(part, parts, self.max_parallelism)
                subtask = SubtaskId(OperatorId(state.uid), part)
                keyed[subtask].append(KeyedHandle(groups, file))
        return Manifest(
            checkpoint=FIRST,
            epoch=Epoch(0),
            kind=CheckpointKind.SAVEPOINT,
            taken_at=Millis(time.time_ns() // 1_000_000),
            location=location,
            fingerprint=((), ()),
            widths=tuple(Width(uid, parts, self.max_parallelism) for uid in uids),
            snapshots=tuple(SubtaskSnapshot(s, keyed=tuple(of)) for s, of in keyed.items()),
            finished=(),
            coordinators=(),
            ledgers=(),
        )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Chooses the columns of a state from the user's frame, under the names that the files have."""

    uid: str
    name: str
    frame: DataFrame
    keys: tuple[str, ...]
    chosen: Mapping[str, Column] = filled(default_factory=dict)

    def under(self, prefix: str, names: Sequence[str]) -> "_Columns":
        more = {f"{prefix}.{name}": self.column(name) for name in names}
        is_once = len({*self.keys, *names}) == len(self.keys) + len(names)
        self.refuse_unless(is_once, "a column is named twice", "name it once")
        return replace(self, chosen={**self.chosen, **more})

    def adding(self, name: str, column: Column) -> "_Columns":
        return replace(self, chosen={**self.chosen, name: column})

    def column(self, name: str) -> Column:
        known = self.frame.columns
        cause = f"column {name!r} is not in the frame"
        self.refuse_unless(name in known, cause, f"choose one of {', '.join(known)}")
        return self.frame[_quoted(name)]

    def millis(self, name: str) -> Column:
        column, kind = self.column(name), self.frame.schema[name].dataType
        self.refuse_unless(
            isinstance(kind, LongType | TimestampType),
            f"column {name!r} is {kind.simpleString()}",
            "give a timestamp, or milliseconds since 1970 as a bigint",
        )
        return column if isinstance(kind, LongType) else F.unix_millis(column)

    def state(self, kind: str, once: Sequence[str] = ()) -> BootstrappedState:
        known = ", ".join(self.frame.columns)
        self.refuse_unless(bool(self.keys), "there is no key", f"choose one of {known}")
        columns = {**{name: self.column(name) for name in self.keys}, **self.chosen}
        # Spark would take a dot in a column's name for a path, so files alone have them.
        plain = {name: f"{PLAIN}{number}" for number, name in enumerate(columns)}
        state = BootstrappedState(
            self.uid,
            self.name,
            self.frame.select(*(column.alias(plain[name]) for name, column in columns.items())),
            tuple(plain[name] for name in self.keys),
            {alias: name for name, alias in plain.items()},
            kind,
            tuple(plain[name] for name in once),
        )
        for part in state.arrow(*state.once):
            self.refuse_unless(
                not pa.types.is_nested(part.type),
                f"{part.name} is {part.type}, and a user key that is a collection or a struct"
                " cannot be bootstrapped",
                "make it a string, or several columns",
            )
        return state

    def refuse_unless(self, holds: bool, cause: str, remedy: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not holds:
            raise JobRejected(
                f"state {self.name!r} of {self.uid} cannot be made",
                cause,
                remedy,
            )


# -- inside Spark's tasks


def dealing(layout: Layout) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Adds to each row the part that its key group belongs to."""

    def deal(batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            keys = [
                column.cast(layout.schema.field(at).type)
                for at, column in enumerate(batch.columns[: len(layout.keys)])
            ]
            groups = key_groups(
                pa.RecordBatch.from_arrays(keys, names=list(layout.keys)),
                layout.keys,
                layout.max_parallelism,
            )
            parts = owners_of(groups, layout.parts, layout.max_parallelism)
            yield batch.append_column(PART, pa.array(parts, pa.int32()))

    return deal


def writing(layout: Layout) -> Callable[[pa.Table], pa.Table]:
    """Writes all rows of one part into one file; what comes back is its handle."""

    def write(dealt: pa.Table) -> pa.Table:
        part = dealt.column(PART)[0].as_py()
        columns = dealt.drop_columns([PART]).columns
        table = pa.Table.from_arrays(
            [column.cast(field.type) for column, field in zip(columns, layout.schema, strict=True)],
            schema=layout.schema,
        ).combine_chunks()
        cause, remedy = _incomplete(table) or _doubled(table, layout.unique) or ("", "")
        file = StateFile("", 0) if cause else _put(table, layout, part)
        return pa.table(
            {
                "part": pa.array([part], pa.int32()),
                "path": [file.path],
                "bytes": [file.bytes],
                "checksum": [file.checksum],
                "content": pa.array([file.content], pa.binary()),
                "cause": [cause],
                "remedy": [remedy],
            }
        )

    return write


def _put(table: pa.Table, layout: Layout, part: int) -> StateFile:
    keys = table.select(list(layout.keys)).to_batches()[0]
    groups = key_groups(keys, layout.keys, layout.max_parallelism)
    data = write_keyed(layout.name, table, groups, layout.keys, layout.max_parallelism)
    url = f"{layout.place}-{part}"
    return state_files.small(data) or state_files.put(StoreByScheme(), url, data)


def _incomplete(table: pa.Table) -> tuple[str, str] | None:
    """Names a column that may not be null and is, with the remedy."""
    for column, field in zip(table.columns, table.schema, strict=True):
        if column.null_count and not field.nullable:
            cause = f"{field.name} is null in {column.null_count} rows"
            return cause, "drop them, or fill them in"
    return None


def _doubled(table: pa.Table, unique: Sequence[str]) -> tuple[str, str] | None:
    """Names a key that is in several rows and may be in one, with the remedy."""
    if not unique:
        return None
    keys = table.select(list(unique))
    flat = [leaf for column in keys.columns for leaf in leaves_of(column.combine_chunks())]
    numbered = pa.table([*flat, np.arange(keys.num_rows)], [f"{at}" for at in range(len(flat) + 1)])
    *leaves, row = numbered.column_names
    counted = numbered.group_by(leaves).aggregate([([], "count_all"), (row, "min")])
    several = counted.filter(pc.greater(counted.column("count_all"), 1))
    if not several.num_rows:
        return None
    first = several.slice(0, 1).to_pylist()[0]
    key = keys.slice(first[f"{row}_min"], 1).to_pylist()[0]
    return f"key {key} has {first['count_all']} rows", "give each key one row"


def _file(row: Row) -> StateFile:
    return StateFile(row.path, row.bytes, checksum=row.checksum, content=bytes(row.content or b""))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
