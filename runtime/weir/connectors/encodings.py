"""Encodes rows as the bytes of a file, piece by piece, and decodes them.

An encoding knows one file format, and not where files are stored or when they become visible. Each
appended piece can be large, so that Parquet gets row groups of a good size.
"""

import io
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from weir.connectors.json_lines import json_lines, unwritable


class Encoder(Protocol):
    """Writes one file; all tables have the same schema."""

    def append(self, table: pa.Table) -> None: ...

    def finish(self) -> None:
        """Write what belongs at the end. The file itself stays open."""


class Encoding(StrEnum):
    """The formats of files; each is also the ending of their names."""

    PARQUET = "parquet"
    JSON = "json"
    ARROW = "arrow"

    def encoder(self, file: IO[bytes], schema: pa.Schema) -> Encoder:
        match self:
            case Encoding.PARQUET:
                return _ParquetEncoder(pq.ParquetWriter(file, schema))
            case Encoding.JSON:
                return _JsonEncoder(file)
            case Encoding.ARROW:
                return _ArrowEncoder(pa.ipc.new_file(file, schema))

    def refusal(self, schema: pa.Schema) -> str:
        """Why rows of this schema cannot become such a file; empty if they can."""
        if self is Encoding.JSON:
            return unwritable(schema)
        try:
            self.encoder(io.BytesIO(), schema).finish()
        except (pa.ArrowException, OSError) as problem:
            return str(problem)
        return ""

    def decode(self, content: bytes) -> pa.Table:
        """A whole file."""
        match self:
            case Encoding.PARQUET:
                return pq.ParquetFile(pa.BufferReader(content)).read()
            case Encoding.JSON:
                return pj.read_json(io.BytesIO(content))
            case Encoding.ARROW:
                return pa.ipc.open_file(pa.BufferReader(content)).read_all()


@dataclass(frozen=True, slots=True)
class _ParquetEncoder:
    writer: pq.ParquetWriter

    def append(self, table: pa.Table) -> None:
        self.writer.write_table(table, row_group_size=table.num_rows)

    def finish(self) -> None:
        self.writer.close()


@dataclass(frozen=True, slots=True)
class _JsonEncoder:
    """One object a line."""

    file: IO[bytes]

    def append(self, table: pa.Table) -> None:
        self.file.write(json_lines(table).encode())

    def finish(self) -> None:
        """Lines have no end to write."""


@dataclass(frozen=True, slots=True)
class _ArrowEncoder:
    writer: pa.RecordBatchFileWriter

    def append(self, table: pa.Table) -> None:
        self.writer.write_table(table)

    def finish(self) -> None:
        self.writer.close()
