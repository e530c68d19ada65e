"""A bounded source that reads a Spark DataFrame.

Spark reads the DataFrame once, when the job discovers its splits for the first time, into files
beside the job's checkpoints; each file is a split that can be read again from any position. A
restored job finds the files that its checkpoint names and does not ask Spark again, so the replay
is exact even if the DataFrame would not come out the same way twice (spec R5).
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from weir.api.storage_url import is_memory
from weir.connectors.encodings import Encoding
from weir.connectors.file_source import FileReader, FileSource
from weir.core.ids import SplitId
from weir.ports.operators import Batch
from weir.ports.sources import Discovery
from weir.storage.stores import store_for

_WRITTEN = "file string, rows long"


@dataclass(frozen=True, slots=True)
class WritePartition:
    """Writes one partition of a DataFrame into a file, inside a Spark task."""

    directory: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        rows = 0
        with tempfile.TemporaryFile() as scratch:
            encoder = Encoding.PARQUET.encoder(scratch, self.schema)
            for batch in batches:
                encoder.append(pa.Table.from_batches([batch]).cast(self.schema))
                rows += batch.num_rows
            encoder.finish()
            if not rows:
                return
            url = f"{self.directory}/{uuid4().hex}.{Encoding.PARQUET}"
            scratch.seek(0)
            store_for(url).write(url, scratch.read())
        yield pa.RecordBatch.from_pydict({"file": [url], "rows": [rows]})


@dataclass(frozen=True)
class DataFrameSource:
    """A DataFrame in the driver; the files that it became in the slots."""

    files: FileSource
    frame: DataFrame | None = field(compare=False)
    """Only the driver has it."""

    @classmethod
    def of(cls, frame: DataFrame, storage: str) -> "DataFrameSource":
        schema = to_arrow_schema(frame.schema)
        return cls(FileSource(_place(storage), Encoding.PARQUET, schema, bounded=True), frame)

    @property
    def schema(self) -> pa.Schema:
        return self.files.schema

    @property
    def is_endless(self) -> bool:
        return False

    @property
    def is_bounded(self) -> bool:
        return True

    def discover(self, seen: str) -> Discovery:
        if seen:
            return Discovery((), seen, is_final=True)
        assert self.frame is not None, "splits are discovered in the driver"
        write = WritePartition(self.files.url, self.files.schema)
        written = self.frame.mapInArrow(write, _WRITTEN).collect()
        splits = tuple(sorted(SplitId(row.file) for row in written))
        return Discovery(splits, self.files.url, is_final=True)

    def open(self, split: SplitId, position: str) -> FileReader:
        return self.files.open(split, position)

    def __reduce__(self) -> tuple[type["DataFrameSource"], tuple[object, ...]]:
        """A DataFrame does not travel, and the slots have no use for it."""
        return DataFrameSource, (self.files, None)


def _place(storage: str) -> str:
    if is_memory(storage):
        storage = f"file://{Path(tempfile.gettempdir())}"
    return f"{storage.rstrip('/')}/inputs/{uuid4().hex}"
