"""Makes sources and sinks of ``DataSource`` classes that users wrote for PySpark.

Whatever options the user gave go to the data source as they are, but for ``splitAtomic``, which is
ours: it reads each partition whole or not at all.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource

from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.connectors.pyspark.stream_reader import NotReadable, StreamSource
from weir.connectors.pyspark.stream_writer import NotWritable, StreamSink
from weir.connectors.transaction_names import new_token
from weir.dataflow.options import Options
from weir.dataflow.types import schema_of
from weir.errors import JobRejected

SPLIT_ATOMIC = "splitAtomic"


@dataclass(frozen=True, slots=True)
class DataSourceFormat:
    """One registered class, behind the name that it gives itself."""

    made_by: type[DataSource]
    key: Callable[[], JobKey]
    """Asked once a source or sink is really made."""

    def source(self, options: Options) -> StreamSource:
        name = self.made_by.name()
        is_atomic = options.flag(SPLIT_ATOMIC, default=False)
        data = self._data(options)
        if not self._has("streamReader", "simpleStreamReader"):
            raise NotReadable(name)
        declared = options.schema
        schema = _own_schema(name, data) if declared is None else declared
        return StreamSource(name, data, schema, self.key(), is_atomic)

    def sink(self, options: Options, rows: pa.Schema) -> StreamSink:
        """Its messages are in the machine's temporary directory until a job sets another."""
        name = self.made_by.name()
        if not self._has("streamWriter"):
            raise NotWritable(name)
        directory = f"file://{tempfile.gettempdir()}/weir-{new_token()}"
        return StreamSink(name, self._data(options), rows, self.key(), directory)

    def _data(self, options: Options) -> DataSource:
        given = CaseInsensitiveDict(dict(options))
        given.pop(SPLIT_ATOMIC, None)
        return self.made_by(given)

    def _has(self, *methods: str) -> bool:
        return any(getattr(self.made_by, m) is not getattr(DataSource, m) for m in methods)


def _own_schema(name: str, data: DataSource) -> pa.Schema:
    try:
        return schema_of(data.schema())
    except PySparkNotImplementedError:
        raise JobRejected(
            f"data source {name} has no schema",
            "its schema() is not implemented",
            "implement it, or declare the schema with .schema(…)",
        ) from None
