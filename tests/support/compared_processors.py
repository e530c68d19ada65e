"""Processors that run on Spark and on Weir, and show as much as they can of what they are given."""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, and so are those without a use

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

Key = Any
"""A tuple with rows, a Row with timers; what is in it depends on the columns."""


class EveryCall(StatefulProcessor):
    """Calls every method of values, lists and maps, and shows what each gives."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        handle.getValueState("gone", "n long")
        handle.deleteIfExists("gone")
        self.last = handle.getValueState("last", "word string, n long")
        self.all = handle.getListState("all", "n long")
        self.times: Any = handle.getMapState(
            "times", "parity long, sign string", "n long, word string"
        )

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            yield from self._shown(key, "before", self._take(row.amount, row.word))
        yield from self._shown(key, "list", [tuple(one) for one in self.all.get()])
        yield from self._shown(key, "map", self._entries())

    def _take(self, amount: int, word: str) -> object:
        before = (self.last.exists(), self.last.get(), self.all.exists(), self.times.exists())
        parity = (amount % 3, "-" if amount < 0 else "+")
        found = self.times.getValue(parity)
        known = (self.times.containsKey(parity), found and (found.n, found.word))
        self.last.update((word, amount))
        self.all.appendValue((amount,))
        self.times.updateValue(parity, (found.n + 1 if found else 1, word))
        self._forget(amount)
        return before, known

    def _forget(self, amount: int) -> None:
        if amount == 0:
            self.last.clear()
            self.times.clear()
        if amount == 1:
            self.all.put([(7,), (8,)])
        if amount == 2:
            self.all.clear()
            self.all.appendList([(9,), (amount,)])
        if amount == 3:
            self.times.removeKey((0, "+"))
            self.times.removeKey((99, "+"))

    def _entries(self) -> object:
        pairs = sorted((tuple(key), tuple(value)) for key, value in self.times.iterator())
        keys = sorted(tuple(key) for key in self.times.keys())  # noqa: SIM118 - PySpark's
        values = sorted(tuple(value) for value in self.times.values())
        return pairs, keys, values

    def _shown(self, key: Key, what: str, value: object) -> Iterator[Any]:
        yield Row(word=key[0], what=what, shown=repr(value))


class EveryType(StatefulProcessor):
    """Keeps the newest row of a key in states of nested types, and gives it back as output."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        kinds = "at timestamp, place struct<x:int,name:string>, tags array<string>"
        self.value: Any = handle.getValueState("value", f"{kinds}, counts map<string,int>")
        self.list = handle.getListState("list", kinds)
        self.map = handle.getMapState("map", "place struct<x:int,name:string>, word string", kinds)

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            at = row.at.replace(tzinfo=None) if row.at else None
            place = (row.place["x"], row.place["name"]) if row.place else None
            self.value.update((at, place, row.tags, dict(row.counts) if row.counts else None))
            self.list.appendValue((at, place, row.tags))
            if place:
                self.map.updateValue((place, row.word), (at, place, row.tags))
        found = self.value.get()
        yield self._row(key, "value", found[0], found[1], found[2], found[3])
        for at, place, tags in self.list.get():
            yield self._row(key, "list", at, place, tags)
        for (user_place, word), (at, place, tags) in self.map.iterator():
            assert user_place.x == place.x
            yield self._row(key, f"map {word} {user_place.name}", at, place, tags)

    def _row(  # noqa: PLR0913, PLR0917 - one for each column
        self,
        key: Key,
        what: str,
        at: datetime | None,
        place: Any,  # noqa: ANN401 - a Row or nothing
        tags: list[str] | None,
        counts: dict[str, int] | None = None,
    ) -> Row:
        shown = None if place is None else Row(x=place.x, name=place.name)
        tags = None if tags is None else list(tags)
        return Row(word=key[0], what=what, at=at, place=shown, tags=tags, counts=counts)


class OfStructs(StatefulProcessor):
    """Counts the rows of each struct, and shows the key with rows and with timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count: Any = handle.getValueState("count", "n long")

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            self.count.update((self._counted() + self._size(row),))
        self.handle.registerTimer(1)
        yield self._shown(f"{type(key).__name__} {described(key)}")

    def handleExpiredTimer(
        self, key: Key, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        yield self._shown(f"{isinstance(key, Row)} {described(key)}")

    def _counted(self) -> int:
        return self.count.get()[0] if self.count.exists() else 0

    def _size(self, row: Any) -> int:  # noqa: ANN401 - a Row or a frame
        return 1

    def _shown(self, word: str) -> Any:  # noqa: ANN401 - a Row or a frame
        return Row(word=word, total=self._counted())


class FramesOfStructs(OfStructs):
    """The same for ``transformWithStateInPandas``."""

    def _size(self, row: pd.DataFrame) -> int:
        return len(row)

    def _shown(self, word: str) -> pd.DataFrame:
        return pd.DataFrame({"word": [word], "total": [self._counted()]})


class Alarm(StatefulProcessor):
    """Sets an alarm behind each row, moves the alarms of a word away, and shows what rings."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.rows = handle.getListState("rows", "n long")

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        for row in rows:
            self.rows.appendValue((row.amount,))
            if row.amount % 5 == 0:
                for expiry in list(self.handle.listTimers()):
                    self.handle.deleteTimer(expiry)
            self.handle.registerTimer(int(row.at.timestamp() * 1000) + 1_500)
        for expiry in self.handle.listTimers():
            yield self._shown(f"{key[0]} waits", expiry)
        yield self._shown(f"{key[0]} at", timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Key, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        yield self._shown(f"{key.word} rings", expiredTimerInfo.getExpiryTimeInMs())
        yield self._shown(f"{key.word} rings at", timerValues.getCurrentWatermarkInMs())
        yield self._shown(f"{key.word} has", sum(n for (n,) in self.rows.get()))

    def _shown(self, word: str, total: int) -> Any:  # noqa: ANN401 - a Row or a frame
        return Row(word=word, total=total)


class AlarmOfFrames(Alarm):
    """The same for ``transformWithStateInPandas``."""

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        each = [row for frame in rows for row in frame.itertuples()]
        return super().handleInputRows(key, iter(each), timerValues)

    def _shown(self, word: str, total: int) -> pd.DataFrame:
        return pd.DataFrame({"word": [word], "total": [total]})


class Overdue(StatefulProcessor):
    """Sets a timer that is due at once, for each word that it has not seen before."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.total: Any = handle.getValueState("total", "n long")

    def handleInputRows(
        self, key: Key, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        if not self.total.exists():
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs())
        found = self.total.get()
        self.total.update(((found[0] if found else 0) + sum(row.amount for row in rows),))
        yield Row(word=key[0], total=timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Key, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        yield Row(word=f"{key.word} is due", total=self.total.get()[0])


def described(value: Any) -> str:  # noqa: ANN401 - any part of a key
    """The types of a key and its values; zones are left out, which differ in name alone."""
    if isinstance(value, dict):
        inside = ", ".join(f"{name}={described(part)}" for name, part in value.items())
        return f"{{{inside}}}"
    if isinstance(value, Row):
        names = value.__fields__
        inside = ", ".join(f"{n}={described(v)}" for n, v in zip(names, value, strict=True))
        return f"Row({inside})"
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    if isinstance(value, datetime):
        kind = "naive" if value.tzinfo is None else "aware"
        return f"{type(value).__name__} {kind} {value:%Y-%m-%d %H:%M:%S}"
    return f"{type(value).__name__} {value!r}"
