"""Gives a ``SimpleDataSourceStreamReader`` the methods of a full one.

As in PySpark its ``read`` runs in the driver, which learns from it how far the data goes; all that
lies between two offsets is one partition. The rows that come with the offset are dropped: a slot
fetches them with ``readBetweenOffsets``, which must bring the same rows each time anyway.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.streaming.datasource import ReadLimit

from weir.connectors.pyspark.partitions import Offset, written
from weir.errors import JobRejected


class Between(InputPartition):
    """What lies between two offsets."""

    def __init__(self, start: Offset, end: Offset) -> None:
        self.start = start
        self.end = end


class SimpleAsFull(DataSourceStreamReader):
    """A simple reader behind the methods of a full one."""

    def __init__(self, simple: SimpleDataSourceStreamReader) -> None:
        self._simple = simple

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._simple.initialOffset()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        del limit
        rows, end = self._simple.read(start)
        if written(end) == written(start) and next(iter(rows), None) is not None:
            raise JobRejected(
                f"{type(self._simple).__name__}.read brought rows and left the offset at "
                f"{written(start)}",
                "the same rows would come again without end",
                "return the offset behind the last row",
            )
        return end

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [Between(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Between), "it has no other partitions"
        return self._simple.readBetweenOffsets(partition.start, partition.end)

    def commit(self, end: Offset) -> None:
        self._simple.commit(end)
