"""Reads the keyed state of a savepoint or checkpoint as a DataFrame (spec S9).

    totals = (
        spark.read.format("weir-state")
        .option("path", "s3://bucket/savepoint-1f0c").option("operator", "sums")
        .option("state", "total").load()
    )

The columns are those of the state's files: the key group, the key columns, then the state's own,
with an underscore for the dot that Spark would take for a path (``value.total`` becomes
``value_total``). A name that a column already has keeps its dot. Each subtask's part of the state
is a partition, and its files are verified before a row of them is shown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from weir.core.snapshots import KeyedHandle, Manifest
from weir.errors import JobRejected
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import inspection, state_files
from weir.storage.inspection import KeyedDescription, StateFileReaders
from weir.storage.store_by_scheme import StoreByScheme
from weir.storage.stores import as_url

FORMAT = "weir-state"
OPTIONS = ("path", "operator", "state")
OPENING = StateFileReaders(header_of, read_list)


class StateSource(DataSource):
    """One keyed state of one operator, as Spark asks for it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return _spark_schema(self._state().schema)

    def reader(self, schema: StructType) -> "StateReader":
        return StateReader(self._state().parts, schema)

    def _state(self) -> KeyedDescription:
        path, operator, state = (self.options.get(name) or "" for name in OPTIONS)
        if not path:
            raise JobRejected(
                f"{FORMAT} has no snapshot to read",
                "the option path is not set",
                "set it to the directory of a savepoint or of a chk-N",
            )
        return find_state(path, operator, state)


class StateReader(DataSourceReader):
    """The rows of one state, one range of key groups after the other."""

    def __init__(self, parts: Sequence[Sequence[KeyedHandle]], schema: StructType) -> None:
        self._parts = parts
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(len(self._parts))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(self._schema)
        part = self._parts[partition.value]
        store = StoreByScheme()
        layers = [state_files.fetch(store, handle.file) for handle in part]
        for batch in rows_of(layers, part[0].groups):
            yield pa.RecordBatch.from_arrays(batch.columns, names=wanted.names).cast(wanted)


def find_state(path: str, operator: str, state: str) -> KeyedDescription:
    """The one state that is meant; a name may be left out where there is no choice."""
    store = StoreByScheme()
    manifest = inspection.find(store, as_url(path))
    description = inspection.describe(store, _only(manifest, operator), OPENING)
    if description.problems:
        raise description.problems[0]
    found = inspection.states_of(inspection.operators_of(description, operator), state)
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found) or "none"
    raise JobRejected(
        f"{manifest.location}: the options do not name one state",
        f"the states that fit them are: {names}",
        "set the options operator and state",
    )


def _only(manifest: Manifest, operator: str) -> Manifest:
    """The manifest without other operators, whose files need not be read."""
    if not any(width.operator == operator for width in manifest.widths):
        return manifest
    return replace(
        manifest,
        widths=tuple(width for width in manifest.widths if width.operator == operator),
        snapshots=tuple(s for s in manifest.snapshots if s.subtask.operator == operator),
    )


def _spark_schema(schema: pa.Schema) -> StructType:
    taken = set(schema.names)
    names = [
        undotted if (undotted := name.replace(".", "_")) not in taken else name
        for name in schema.names
    ]
    fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    return from_arrow_schema(pa.schema(fields))
