"""Makes a savepoint from DataFrames, so that a job can begin with state that no job has kept.

    (
        Savepoint.new(max_parallelism=128)
        .withKeyedState("sums", "total", totals, key=["key"], value=["total"])
        .write("s3://bucket/bootstrapped")
    )

A job whose processor ``sums`` declares the value state ``total`` with these columns starts from it
with ``weir run job.py --from``; operators that the savepoint does not name begin afresh. Columns
must have the types that the job has, and each key has one row.

Value states of processors and the running aggregates of ``groupBy(…).agg(…)`` can be made. Spark's
tasks find the key groups and write the files, so the state need not fit into the driver (spec S9).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructType

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
from weir.ports.operators import Batch
from weir.slot.aggregate import STATE_NAME as AGGREGATES
from weir.state.files import write_keyed
from weir.state.pieces import KIND
from weir.state.values import ValueState
from weir.storage import manifests, state_files
from weir.storage.by_scheme import StoreByScheme
from weir.storage.objects import as_url
from weir.wire.keys import check_key_type, key_groups

PART = "__weir_part"
FIRST = CheckpointId(1)
_WRITTEN = "part int, path string, bytes long, checksum string, content binary, problem string"


@dataclass(frozen=True, slots=True)
class BootstrappedState:
    """One keyed state to be, and the DataFrame that it is made of."""

    uid: str
    name: str
    frame: DataFrame
    keys: tuple[str, ...]
    columns: Mapping[str, str]
    """What each column of the frame is called in the files; the keys come first."""
    kind: str
    """Empty for running aggregates, whose files name none."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one state become files. It travels to Spark's tasks."""

    place: str
    """Where the files go; the number of the part is still to be added."""
    name: str
    keys: tuple[str, ...]
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
        """The job must have the same max parallelism, or none of its own."""
        if not 0 < max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise JobRejected(
                f"max parallelism {max_parallelism}: choose 1 to {MAX_PARALLELISM_LIMIT}"
            )
        return cls(max_parallelism)

    def withKeyedState(  # noqa: N802 - in PySpark's manner
        self, uid: str, name: str, frame: DataFrame, *, key: Sequence[str], value: Sequence[str]
    ) -> "Savepoint":
        """A processor's value state: one row of values for each key."""
        columns = {**{k: k for k in key}, **{v: f"value.{v}" for v in value}}
        if len(columns) < len(key) + len(value):
            raise JobRejected(f"state {name!r} of {uid}: a column is named twice; name it once")
        return self._with(BootstrappedState(uid, name, frame, tuple(key), columns, ValueState.kind))

    def withAggregates(  # noqa: N802 - in PySpark's manner
        self, uid: str, frame: DataFrame, *, key: Sequence[str]
    ) -> "Savepoint":
        """The running aggregates of ``groupBy(…).agg(…)``, under the names that its state has.

        These are ``count(*)``, ``count(x)``, ``sum(x)``, ``min(x)`` and ``max(x)``, as Spark calls
        them, and ``float_sum(x)`` for the average of whole numbers. Each needs its ``count(x)``.
        """
        columns = {name: name for name in (*key, *(c for c in frame.columns if c not in key))}
        return self._with(BootstrappedState(uid, AGGREGATES, frame, tuple(key), columns, ""))

    def _with(self, state: BootstrappedState) -> "Savepoint":
        known = state.frame.columns
        missing = [name for name in state.columns if name not in known]
        if missing or not state.keys:
            what = f"column {missing[0]!r} is not in the frame" if missing else "there is no key"
            raise JobRejected(
                f"state {state.name!r} of {state.uid}: {what}; choose of {', '.join(known)}"
            )
        if any((other.uid, other.name) == (state.uid, state.name) for other in self.states):
            raise JobRejected(f"state {state.name!r} of {state.uid} is given twice; drop one")
        return replace(self, states=(*self.states, state))

    def write(self, path: str) -> str:
        """Make the savepoint in a directory that is new; where it is, as jobs are told it."""
        location = as_url(path).rstrip("/")
        if not self.states or is_memory(location):
            raise JobRejected(
                f"no savepoint can be made at {location}: it needs a state and a directory that"
                " Spark's tasks reach, as in file:///data/bootstrapped or s3://bucket/bootstrapped"
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
        layout = self._layout(state, frame, location, parts)
        dealt_schema = StructType([*frame.schema.fields]).add(PART, IntegerType())
        dealt = frame.mapInArrow(dealing(layout), dealt_schema)
        rows = dealt.groupBy(PART).applyInArrow(writing(layout), _WRITTEN).collect()
        problems = sorted(row.problem for row in rows if row.problem)
        if problems:
            raise JobRejected(f"state {state.name!r} of {state.uid}: {problems[0]}")
        return sorted((row.part, _file(row)) for row in rows)

    def _layout(
        self, state: BootstrappedState, frame: DataFrame, location: str, parts: int
    ) -> Layout:
        fields = [
            field.with_name(state.columns[field.name]).with_nullable(nullable=True)
            for field in to_arrow_schema(frame.schema)
        ]
        for field in fields[: len(state.keys)]:
            check_key_type(field)
        return Layout(
            place=f"{location}/{quote(state.uid, safe='')}-{quote(state.name, safe='')}",
            name=state.name,
            keys=state.keys,
            schema=pa.schema(fields, metadata={KIND: state.kind} if state.kind else None),
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
        problem = _doubled(table, layout.keys)
        file = StateFile("", 0) if problem else _put(table, layout, part)
        return pa.table(
            {
                "part": pa.array([part], pa.int32()),
                "path": [file.path],
                "bytes": [file.bytes],
                "checksum": [file.checksum],
                "content": pa.array([file.content], pa.binary()),
                "problem": [problem],
            }
        )

    return write


def _put(table: pa.Table, layout: Layout, part: int) -> StateFile:
    keys = table.select(list(layout.keys)).to_batches()[0]
    groups = key_groups(keys, layout.keys, layout.max_parallelism)
    data = write_keyed(layout.name, table, groups, layout.keys, layout.max_parallelism)
    url = f"{layout.place}-{part}"
    return state_files.small(data) or state_files.put(StoreByScheme(), url, data)


def _doubled(table: pa.Table, keys: Sequence[str]) -> str:
    """Names a key that has several rows; empty if there is none."""
    counted = table.group_by(list(keys)).aggregate([([], "count_all")])
    several = counted.filter(pc.greater(counted.column("count_all"), 1))
    if not several.num_rows:
        return ""
    found = several.slice(0, 1).to_pylist()[0]
    count = found.pop("count_all")
    return f"key {found} has {count} rows; give each key one row"


def _file(row: Row) -> StateFile:
    return StateFile(row.path, row.bytes, checksum=row.checksum, content=bytes(row.content or b""))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
