"""Runs a PySpark ``DataSourceStreamReader`` as an exactly-once source.

In the driver an enumerator asks the reader for its latest offset and for the partitions up to it;
each partition is a split. In the slots ``read`` runs on a separate thread. Every checkpoint holds
the latest offset and the number of the discovery round that found it, so a restored job continues
there and does not ask for an initial offset again (spec D1, R5, C4).

``commit`` gets the offset up to which every partition has been read in a completed checkpoint.
"""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from weir.connectors.pyspark.conversion import shown, struct_of
from weir.connectors.pyspark.fetch import Fetch
from weir.connectors.pyspark.partitions import (
    DiscoveryRound,
    Offset,
    partition_of,
    round_of,
    split_name,
    written,
)
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.connectors.pyspark.simple_reader import SimpleAsFull
from weir.connectors.pyspark.split_reader import CountedReader, WholeReader
from weir.core.ids import SplitId
from weir.errors import JobRejected
from weir.ports.sources import Discovery, Reader
from weir.ports.user_code_errors import UserCodeFailed


class NotReadable(JobRejected):
    """A data source has no stream reader of either kind."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"data source {name} cannot be read as a stream",
            "it has neither streamReader nor simpleStreamReader",
            "implement one of them",
        )


@dataclass(frozen=True)
class StreamSource:
    """A data source that can be read as a stream."""

    name: str
    data: DataSource
    schema: pa.Schema
    key: JobKey
    split_atomic: bool = False

    @property
    def is_endless(self) -> bool:
        return False

    @property
    def is_bounded(self) -> bool:
        return False

    def discover(self, seen: str) -> Discovery:
        return self._enumerator.discover(seen)

    def completed(self, seen: str, unread: tuple[SplitId, ...]) -> None:
        self._enumerator.completed(seen, unread)

    def stop(self) -> None:
        self._enumerator.stop()

    def open(self, split: SplitId, position: str) -> Reader:
        part = partition_of(self.key, split, self.name)
        fetch = Fetch(self.name, self.schema, partial(self._read, part))
        if self.split_atomic and not position:
            return WholeReader(self.name, fetch)
        return CountedReader(self.name, fetch, position)

    def _read(self, part: InputPartition) -> Any:  # noqa: ANN401 - whatever user code returns
        """A reader for each call, as each of PySpark's tasks has its own."""
        return make_reader(self.name, self.data, self.schema).read(part)

    @cached_property
    def _enumerator(self) -> "Enumerator":
        reader = make_reader(self.name, self.data, self.schema)
        return Enumerator(self.name, reader, self.key)

    def __reduce__(self) -> tuple[type["StreamSource"], tuple[object, ...]]:
        """The enumerator stays in the driver."""
        return StreamSource, (self.name, self.data, self.schema, self.key, self.split_atomic)


def make_reader(name: str, data: DataSource, schema: pa.Schema) -> DataSourceStreamReader:
    """As PySpark chooses: the full reader, and the simple one where there is no full one."""
    struct = struct_of(schema)
    try:
        return data.streamReader(struct)
    except PySparkNotImplementedError:
        pass
    try:
        return SimpleAsFull(data.simpleStreamReader(struct))
    except PySparkNotImplementedError:
        raise NotReadable(name) from None


class Enumerator:
    """The reader's end in the driver. User code is called by one thread at a time."""

    def __init__(self, name: str, reader: DataSourceStreamReader, key: JobKey) -> None:
        self._name = name
        self._reader = reader
        self._key = key
        self._committed = ""
        self._lock = Lock()

    def discover(self, seen: str) -> Discovery:
        with self._lock:
            look = _look(seen) if seen else DiscoveryRound(0, self._ask("initialOffset"))
            end = self._latest(look.start)
            if written(end) == written(look.start):
                return Discovery((), _seen(look), is_final=False)
            found = self._ask("partitions", look.start, end)
            splits = tuple(
                split_name(self._key, look, place, part) for place, part in enumerate(found)
            )
            return Discovery(splits, _seen(DiscoveryRound(look.number + 1, end)), is_final=False)

    def completed(self, seen: str, unread: tuple[SplitId, ...]) -> None:
        """All that lies before the oldest look with an unread split has been read for good."""
        if not seen:
            return
        look = round_of(min(unread)) if unread else _look(seen)
        if look.number == 0 or written(look.start) == self._committed:
            return
        with self._lock:
            self._ask("commit", look.start)
        self._committed = written(look.start)

    def stop(self) -> None:
        with self._lock:
            self._ask("stop")

    def _latest(self, start: Offset) -> Offset:
        """PySpark knows two forms: an older one without parameters, and one with a limit."""
        latest: Offset
        if inspect.signature(self._reader.latestOffset).parameters:
            latest = self._ask("latestOffset", start, self._reader.getDefaultReadLimit())
        else:
            latest = self._ask("latestOffset")
        return latest

    def _ask(self, method: str, *given: object) -> Any:  # noqa: ANN401 - as the method says
        call: Callable[..., Any] = getattr(self._reader, method)
        try:
            return call(*given)
        except JobRejected:
            raise
        except Exception as problem:  # user code may raise anything
            doing = f"data source {self._name}: {method}()"
            raise UserCodeFailed(
                doing, f"offset {shown(given[0])}" if given else "the start"
            ) from (problem)


def _look(seen: str) -> DiscoveryRound:
    number, start = json.loads(seen)
    return DiscoveryRound(number, start)


def _seen(look: DiscoveryRound) -> str:
    return json.dumps(look)
