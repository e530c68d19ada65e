"""Cuts a file into blocks that can be read, and checked, one after another.

A block is what a format lets one read by itself: a row group of a Parquet file, some whole lines of
a JSON file. Its raw bytes are what a digest is made of, so that going back to a place inside of a
file decodes nothing that lies before it. The cuts depend on the file alone.
"""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from weir.connectors.encodings import Encoding
from weir.errors import JobRejected
from weir.ports.operators import Batch

DECODED_ROWS = 16_384
"""Rows decoded at once, so that a call is short."""

JSON_BLOCK_BYTES = 1 << 20
"""Positions count in these blocks: another size makes every file look changed to old ones."""

_LINE_SEARCH_BYTES = 1 << 16
_FOOTER_TAIL = 8
"""A Parquet file ends with the length of its footer and four letters."""


class Blocks(Protocol):
    """One open file."""

    @property
    def count(self) -> int: ...

    def identity(self) -> bytes:
        """Distinguishes this file from a longer or shorter one without reading all of it."""

    def raw(self, block: int) -> bytes: ...

    def batches(self, block: int) -> Iterator[Batch]:
        """The rows, in the file's own schema."""


def blocks_of(encoding: Encoding, file: pa.NativeFile, schema: pa.Schema | None) -> Blocks:
    """Open a file; JSON has no schema, so it is read with this one or with an inferred one."""
    if encoding is Encoding.JSON:
        return JsonBlocks(file, schema)
    return ParquetBlocks(file)


class ParquetBlocks:
    """Row groups."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._parquet = pq.ParquetFile(file)

    @property
    def schema(self) -> pa.Schema:
        return self._parquet.schema_arrow

    @property
    def count(self) -> int:
        return int(self._parquet.num_row_groups)

    def identity(self) -> bytes:
        """The footer: it holds the place, the size and the statistics of every row group."""
        size = self._file.size()
        footer = self._parquet.metadata.serialized_size + _FOOTER_TAIL
        return bytes(self._file.read_at(footer, size - footer))

    def raw(self, block: int) -> bytes:
        group = self._parquet.metadata.row_group(block)
        chunks = [group.column(index) for index in range(group.num_columns)]
        starts = [c.dictionary_page_offset or c.data_page_offset for c in chunks]
        stops = [s + c.total_compressed_size for s, c in zip(starts, chunks, strict=True)]
        start = min(starts, default=0)
        return bytes(self._file.read_at(max(stops, default=0) - start, start))

    def batches(self, block: int) -> Iterator[Batch]:
        yield from self._parquet.iter_batches(
            batch_size=DECODED_ROWS, row_groups=[block], use_threads=False
        )


class JsonBlocks:
    """Whole lines, about a mebibyte of them."""

    def __init__(self, file: pa.NativeFile, schema: pa.Schema | None) -> None:
        self._file = file
        self._options = pj.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        )
        self._cuts = list(_line_cuts(file))

    @property
    def count(self) -> int:
        return len(self._cuts) - 1

    def identity(self) -> bytes:
        return str(self._file.size()).encode()

    def raw(self, block: int) -> bytes:
        start, stop = self._cuts[block], self._cuts[block + 1]
        return bytes(self._file.read_at(stop - start, start))

    def batches(self, block: int) -> Iterator[Batch]:
        raw = self.raw(block)
        if raw.isspace():
            return
        whole = pj.ReadOptions(use_threads=False, block_size=len(raw) + 1)
        table = pj.read_json(pa.BufferReader(raw), whole, self._options)
        yield from table.to_batches(max_chunksize=DECODED_ROWS)


def _line_cuts(file: pa.NativeFile) -> Iterator[int]:
    size = file.size()
    cut = 0
    while cut < size:
        yield cut
        cut = _behind_next_newline(file, cut + JSON_BLOCK_BYTES, size)
    yield size


def _behind_next_newline(file: pa.NativeFile, start: int, size: int) -> int:
    for place in range(start, size, _LINE_SEARCH_BYTES):
        found = bytes(file.read_at(_LINE_SEARCH_BYTES, place)).find(b"\n")
        if found >= 0:
            return place + found + 1
    return size


def inferred_schema(encoding: Encoding, file: pa.NativeFile) -> pa.Schema:
    """The schema of a file; for JSON that of its first block."""
    if encoding is Encoding.PARQUET:
        return ParquetBlocks(file).schema.remove_metadata()
    blocks = JsonBlocks(file, None)
    first = next((b for block in range(blocks.count) for b in blocks.batches(block)), None)
    fields = first.schema if first is not None else ()
    return pa.schema([pa.field(field.name, _without_guesses(field.type)) for field in fields])


def unreadable(encoding: Encoding, schema: pa.Schema) -> str:
    """The first column that cannot be read from such files; empty if all can.

    Spark decodes base64 and takes objects for maps; the parser below does neither.
    """
    if encoding is not Encoding.JSON:
        return ""
    return next((field.name for field in schema if _needs_decoding(field.type)), "")


def _needs_decoding(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_needs_decoding(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _needs_decoding(kind.value_type)
    return bool(pa.types.is_binary(kind) or pa.types.is_map(kind))


def _without_guesses(kind: pa.DataType) -> pa.DataType:
    """Text that looks like a time stays text, as in Spark: the next line may look otherwise."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_guesses(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _without_guesses(f.type)) for f in kind])
    return kind


def conformed(batch: Batch, schema: pa.Schema, where: str) -> Batch:
    """The batch in the columns of the schema; what the file lacks is null."""
    if batch.schema.equals(schema):
        return batch
    arrays = [_column(batch, field, where) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(batch: Batch, field: pa.Field, where: str) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    try:
        return column.cast(field.type)
    except pa.ArrowException as reason:
        raise JobRejected(
            f"{where}: column {field.name} is {column.type} and cannot be read as {field.type}",
            str(reason),
            "declare the schema that all files share, or remove this file",
        ) from reason
