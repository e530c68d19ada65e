"""A processor with one value of state for each key, as a user of PySpark writes it."""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, also of unused parameters

from collections.abc import Iterator

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class RunningTotal(StatefulProcessor):
    """Adds the values of each key to what it was given before."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(
        self, key: object, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        (total,) = self._total.get() or (0,)
        for row in rows:
            total += row.value
            yield Row(key=row.key, total=total)
        self._total.update((total,))

    def close(self) -> None:
        """Nothing to close."""
