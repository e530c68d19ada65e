"""Data sources written as PySpark's documentation shows them, over files that record everything.

``Counter`` reads numbers in partitions, ``SimpleCounter`` with a simple reader. ``Ledger`` writes
into a SQLite database, which stands for an external system: it remembers each call of ``write``,
``commit`` and ``abort``, and whether its commits are idempotent is up to an option.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

SCHEMA = "number long, part int"
PAUSE_AFTER = 50


@dataclass
class Range(InputPartition):
    """Numbers from first up to, not including, last; ``part`` is its number in a discovery."""

    first: int
    last: int
    part: int


class CounterReader(DataSourceStreamReader):
    """So many numbers a look, up to a limit, in two partitions; it may take its time for them."""

    def __init__(self, options: Any) -> None:  # noqa: ANN401 - PySpark's own dictionary
        self._step = int(options.get("step", "100"))
        self._limit = int(options.get("limit", "1000000000"))
        self._pause_s = int(options.get("pauseMs", "0")) / 1000
        self._log = options.get("log")

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"next": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: N802
        del limit
        return {"next": min(start["next"] + self._step, self._limit)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        middle = (start["next"] + end["next"]) // 2
        return [Range(start["next"], middle, 0), Range(middle, end["next"], 1)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        assert isinstance(partition, Range)
        for number in range(partition.first, partition.last):
            if self._pause_s and number % PAUSE_AFTER == 0:
                time.sleep(self._pause_s)
            yield (number, partition.part)

    def commit(self, end: dict[str, int]) -> None:
        note(self._log, ["commit", end])

    def stop(self) -> None:
        note(self._log, ["stop"])


class Counter(DataSource):
    """Numbers, in order within each partition."""

    @classmethod
    def name(cls) -> str:
        return "counter"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> CounterReader:  # noqa: N802
        del schema
        return CounterReader(self.options)


class SimpleCounterReader(SimpleDataSourceStreamReader):
    """The same numbers, read where PySpark reads light sources: in the driver."""

    def __init__(self, step: int) -> None:
        self._step = step

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"next": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int, int]], dict[str, int]]:
        end = {"next": start["next"] + self._step}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[int, int]]:
        return iter([(number, 0) for number in range(start["next"], end["next"])])


class SimpleCounter(DataSource):
    """Numbers from a simple reader."""

    def schema(self) -> str:
        return SCHEMA

    def simpleStreamReader(self, schema: StructType) -> SimpleCounterReader:  # noqa: N802
        del schema
        return SimpleCounterReader(int(self.options.get("step", "3")))


@dataclass
class Written(WriterCommitMessage):
    """What one call of ``write`` got."""

    rows: list[tuple[Any, ...]]


class LedgerWriter(DataSourceStreamWriter):
    """Rows travel in the message and enter the database with their commit."""

    def __init__(self, options: Any) -> None:  # noqa: ANN401 - PySpark's own dictionary
        self._database = options["path"]
        self._is_idempotent = options.get("idempotent", "true") == "true"
        self._poison = int(options.get("poison", "-1"))

    def write(self, iterator: Iterator[Row]) -> Written:
        rows = []
        for row in iterator:
            if row.number == self._poison:
                raise ValueError("this row is poisoned")
            rows.append(tuple(row))
        return Written(rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        rows = [row for message in messages if isinstance(message, Written) for row in message.rows]
        with ledger_at(self._database) as ledger:
            known = ledger.execute("select 1 from commits where batch = ?", (batchId,)).fetchone()
            ledger.execute("insert into commits values (?)", (batchId,))
            if not (known and self._is_idempotent):
                numbers = [(batchId, row[0]) for row in rows]
                ledger.executemany("insert into numbers values (?, ?)", numbers)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with ledger_at(self._database) as ledger:
            ledger.execute("insert into aborts values (?, ?)", (batchId, len(messages)))


class LedgerArrowWriter(DataSourceStreamArrowWriter):
    """Counts the rows of whole batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return Written([(sum(batch.num_rows for batch in iterator),)])


class Ledger(DataSource):
    """The external system."""

    @classmethod
    def name(cls) -> str:
        return "ledger"

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - PySpark's own signature
    ) -> DataSourceStreamWriter:
        del schema, overwrite
        if self.options.get("arrow") == "true":
            return LedgerArrowWriter()
        return LedgerWriter(self.options)


@contextmanager
def ledger_at(path: str) -> Iterator[sqlite3.Connection]:
    """One transaction with the ledger, which is made when it is not there yet."""
    connection = sqlite3.connect(path, timeout=30)
    try:
        for table in ("commits (batch)", "numbers (batch, number)", "aborts (batch, messages)"):
            connection.execute(f"create table if not exists {table}")
        yield connection
        connection.commit()
    finally:
        connection.close()


def ledger_rows(path: Path, table: str) -> list[tuple[int, ...]]:
    """What the external system knows, in the order that it came to know it."""
    with ledger_at(str(path)) as ledger:
        return ledger.execute(f"select * from {table} order by rowid").fetchall()  # noqa: S608


def note(path: str | None, word: object) -> None:
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps(word) + "\n")


def notes(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
