"""``readStream``: says where a stream begins, in PySpark's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.dataflow.logical import Read
from weir.dataflow.options import Options, OptionValue, as_text
from weir.dataflow.stream import Stream
from weir.dataflow.types import SchemaLike, schema_of
from weir.dataflow.writer import Session


@dataclass(frozen=True, slots=True)
class StreamReader:
    """PySpark's ``DataStreamReader``; every call returns a new one."""

    session: Session
    format_name: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    declared: pa.Schema | None = None

    def format(self, name: str) -> "StreamReader":
        return replace(self, format_name=name)

    def option(self, name: str, value: OptionValue) -> "StreamReader":
        return replace(self, given={**self.given, name: as_text(value)})

    def options(self, **values: OptionValue) -> "StreamReader":
        given = {name: as_text(value) for name, value in values.items()}
        return replace(self, given={**self.given, **given})

    def schema(self, schema: SchemaLike) -> "StreamReader":
        return replace(self, declared=schema_of(schema))

    def load(self, path: str | None = None) -> Stream:
        given = dict(self.given) if path is None else {**self.given, "path": path}
        options = Options(self.format_name, given, self.declared)
        source = self.session.formats.source(options)
        return Stream(Read(source, source.schema), self.session)

    def parquet(self, path: str) -> Stream:
        return self.format("parquet").load(path)

    def json(self, path: str) -> Stream:
        return self.format("json").load(path)
