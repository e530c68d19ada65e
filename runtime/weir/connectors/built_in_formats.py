"""The built-in sources and sinks under the names that users write.

A path without a scheme is one of this machine, as in Spark.
"""

import os
from functools import partial

import pyarrow as pa

from weir.connectors.console_sink import ConsoleSink
from weir.connectors.driver_staging import DriverStaging
from weir.connectors.encodings import Encoding
from weir.connectors.file_blocks import unreadable
from weir.connectors.file_sink import FileSink
from weir.connectors.file_source import FileSource, first_schema
from weir.connectors.generator_options import generator_source
from weir.connectors.memory_sink import LIMIT_BYTES, MemorySink
from weir.connectors.noop_sink import NoopSink
from weir.connectors.rate_source import rate_source
from weir.dataflow.formats import Formats
from weir.dataflow.options import Options
from weir.errors import JobRejected

_CUT_AT = 20
_UNCUT = 0
_LOCAL = "file://"


def built_in() -> Formats:
    return Formats(
        sources={
            "generator": generator_source,
            "rate": rate_source,
            "parquet": partial(_file_source, Encoding.PARQUET),
            "json": partial(_file_source, Encoding.JSON),
        },
        sinks={
            "parquet": partial(_file_sink, Encoding.PARQUET),
            "json": partial(_file_sink, Encoding.JSON),
            "memory": _memory_sink,
            "console": _console_sink,
            "noop": _noop_sink,
        },
    )


def _file_source(encoding: Encoding, options: Options) -> FileSource:
    url = _as_url(options.required("path"))
    is_recursive = options.flag("recursiveFileLookup", default=False)
    schema = options.schema
    if schema is None:
        schema = first_schema(url, encoding, {}, is_recursive=is_recursive)
    if column := unreadable(encoding, schema):
        raise JobRejected(
            f"the {encoding} source cannot read column {column}",
            "binary and maps in JSON are not decoded yet",
            "declare it as string or struct, or read Parquet",
        )
    is_bounded = options.flag("bounded", default=False)
    return FileSource(url, encoding, schema, bounded=is_bounded, is_recursive=is_recursive)


def _file_sink(encoding: Encoding, options: Options, rows: pa.Schema) -> FileSink:
    url, problem = _as_url(options.required("path")), encoding.refusal(rows)
    if problem:
        raise JobRejected(
            f"the {encoding} sink cannot write these rows",
            str(problem),
            "cast the column to another type, leave it out, or choose another format",
        )
    return FileSink(url, encoding)


def _memory_sink(options: Options, _rows: pa.Schema) -> MemorySink:
    return MemorySink(_driver_staging(options), options.integer("limitBytes", LIMIT_BYTES))


def _console_sink(options: Options, _rows: pa.Schema) -> ConsoleSink:
    return ConsoleSink(
        _driver_staging(options), options.integer("numRows", 20), _cell_width(options)
    )


def _noop_sink(_options: Options, _rows: pa.Schema) -> NoopSink:
    return NoopSink()


def _cell_width(options: Options) -> int:
    """PySpark's ``truncate``: true, false, or a number of characters."""
    if options.text("truncate", "true").strip().isdecimal():
        return options.integer("truncate", _CUT_AT)
    return _CUT_AT if options.flag("truncate", default=True) else _UNCUT


def _driver_staging(options: Options) -> DriverStaging:
    path = options.text("path", "")
    return DriverStaging.at(_as_url(path) if path else "", {})


def _as_url(path: str) -> str:
    if "://" in path and not path.startswith(_LOCAL):
        return path
    return _LOCAL + os.path.abspath(path.removeprefix(_LOCAL))  # noqa: PTH100  # it drops ".." too
