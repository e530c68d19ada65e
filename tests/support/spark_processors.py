"""Processors as a user of PySpark writes them; nothing in them knows Weir."""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, also of unused parameters

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

COUNT = StructType([StructField("count", LongType(), nullable=True)])
WORD = StructType([StructField("word", StringType(), nullable=True)])


class RunningTotal(StatefulProcessor):
    """Adds up the amounts of each word."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", COUNT)

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        found = self.total.get()
        total = found[0] if found else 0
        for row in rows:
            total += row.amount
        self.total.update((total,))
        yield Row(word=key[0], total=total)


class History(StatefulProcessor):
    """Remembers all amounts of a word in a list; an amount of zero forgets them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.amounts = handle.getListState("amounts", "amount long")

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            if row.amount:
                self.amounts.appendValue((row.amount,))
            else:
                self.amounts.clear()
        for ordinal, (amount,) in enumerate(self.amounts.get()):
            yield Row(word=f"{key[0]} {ordinal}", total=amount)


class Tally(StatefulProcessor):
    """Counts each amount of a word in a map; negative amounts remove their opposite."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.counts = handle.getMapState("counts", "amount long", COUNT)

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            if row["amount"] < 0:
                self.counts.removeKey((-row["amount"],))
                continue
            found = self.counts.getValue((row["amount"],))
            self.counts.updateValue((row["amount"],), (found[0] + 1 if found else 1,))
        for (amount,), (count,) in self.counts.iterator():
            yield Row(word=f"{key[0]} {amount}", total=count)


class Reminder(StatefulProcessor):
    """Sets a timer for each amount, and tells the time when it fires; amount -t deletes t."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            if row.amount > 0:
                self.handle.registerTimer(row.amount)
            else:
                self.handle.deleteTimer(-row.amount)
        for expiry in self.handle.listTimers():
            yield Row(word=f"{key[0]} waits", total=expiry)

    def handleExpiredTimer(
        self, key: tuple[Any, ...], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        yield Row(word=key[0], total=expiredTimerInfo.getExpiryTimeInMs())


class Times(StatefulProcessor):
    """Tells what the time is."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        del handle

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        yield ("processing time", timerValues.getCurrentProcessingTimeInMs())
        yield ("watermark", timerValues.getCurrentWatermarkInMs())


class Fleeting(StatefulProcessor):
    """Adds up amounts that are forgotten a second after the last one."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "count long", ttlDurationMs=1000)

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        found = self.total.get()
        total = (found[0] if found else 0) + sum(row.amount for row in rows)
        self.total.update((total,))
        yield Row(word=key[0], total=total)


class FrameTotal(StatefulProcessor):
    """The running total, for ``transformWithStateInPandas``."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", COUNT)

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        found = self.total.get()
        total = found[0] if found else 0
        for frame in rows:
            total += frame["amount"].sum()
        self.total.update((total,))
        yield pd.DataFrame({"word": key, "total": [total]})


class Remembering(StatefulProcessor):
    """Keeps each amount in every field of its state, and tells what it has for an amount of zero.

    The kind and the schema of the state are the test's, for they change while a job does not run.
    """

    def __init__(self, kind: str, schema: str, more: tuple[str, str] | None = None) -> None:
        self.kind, self.schema, self.more = kind, schema, more

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state: Any
        match self.kind:
            case "value":
                self.state = handle.getValueState("first", self.schema)
            case "list":
                self.state = handle.getListState("first", self.schema)
            case _:
                wide = "long" if "long" in self.schema else "int"
                self.state = handle.getMapState("first", f"k {wide}", self.schema)
        if self.more is not None:
            handle.getValueState(*self.more)

    def handleInputRows(
        self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            if row.amount:
                self._keep(row.amount)
            else:
                yield Row(word=str(self._kept()), total=0)

    def _keep(self, amount: int) -> None:
        made = _amount_in(amount, self.schema)
        match self.kind:
            case "value":
                self.state.update(made)
            case "list":
                self.state.appendValue(made)
            case _:
                self.state.updateValue((amount,), made)

    def _kept(self) -> list[Any]:
        match self.kind:
            case "value":
                return [self.state.get()]
            case "list":
                return list(self.state.get())
            case _:
                return list(self.state.values())


def _amount_in(amount: int, schema: str) -> tuple[object, ...]:
    """One value for each field, as its type wants it."""
    if "struct" in schema:
        return ([(amount, None)],)
    kinds = [field.split()[1] for field in schema.split(", ")]
    made = {"float": float, "double": float, "string": str}
    return tuple(made.get(kind, int)(amount) for kind in kinds)


class Seeded(RunningTotal):
    """A running total that begins with what it is given; a negative beginning is a mistake."""

    def __init__(self, *, with_timers: bool = False) -> None:
        self.with_timers = with_timers

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self.handle = handle

    def handleInitialState(
        self, key: tuple[Any, ...], initialState: Row | pd.DataFrame, timerValues: TimerValues
    ) -> None:
        if initialState.begin < 0:
            raise ValueError("nothing begins below zero")
        found = self.total.get()
        self.total.update(((found[0] if found else 0) + initialState.begin,))
        if self.with_timers:
            self.handle.registerTimer(initialState.begin)

    def handleExpiredTimer(
        self, key: tuple[Any, ...], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        yield Row(word=key[0], total=expiredTimerInfo.getExpiryTimeInMs())


class SeededFrames(FrameTotal):
    """The same, for ``transformWithStateInPandas``."""

    def handleInitialState(
        self, key: tuple[Any, ...], initialState: Row | pd.DataFrame, timerValues: TimerValues
    ) -> None:
        assert self.total.get() is None, "one frame has all rows of the key"
        self.total.update((initialState["begin"].sum(),))
