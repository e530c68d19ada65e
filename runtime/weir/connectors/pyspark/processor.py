"""Runs a PySpark ``StatefulProcessor`` as an operator, with its state in the same process.

``handleInputRows`` is called once for each key of a batch, with the rows of that key in the batch;
keys come in the order of their first row. What PySpark calls the current batch's processing time is
the clock when the batch was taken up. Timers fire between batches, for a bounded time and the
earliest first; as in PySpark a timer is deleted after its handler returned. Timers that a snapshot
found due and not fired are in its state, and fire as soon as it is restored (spec A11).

In event-time mode a row that is older than the watermark is late: it is counted and dropped before
``handleInputRows`` could see it. PySpark judges rows by the watermark of the micro-batch before;
here there are no micro-batches, and a row is late as soon as the watermark has passed it.

The operator works on a copy of the processor that it was given, so that a restarted subtask begins
with the object that the user made, not with what an earlier attempt left in it.
"""

import copy
import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    TimerValues,
)

from weir.connectors.pyspark.given_keys import input_key, timer_key
from weir.connectors.pyspark.handle import Handle
from weir.connectors.pyspark.initial_rows import InitialRows
from weir.connectors.pyspark.pandas_frames import FrameShape
from weir.connectors.pyspark.rows import RowMismatch, RowShape
from weir.core.changelog import Position
from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId, Millis
from weir.dataflow.physical import ProcessorHead, RowsAs
from weir.errors import JobRejected
from weir.ports.keyed_state import BackendFactory, Key, TimeMode
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo
from weir.ports.user_code_errors import UserCodeFailed

log = logging.getLogger("weir.slot")

FIRED_AT_ONCE = 256
"""How many timers one call of ``fire`` takes on at most."""

FIRING_SECONDS = 0.01
"""After this long a call of ``fire`` takes on no other timer."""

UNKNOWN_TIME = -1
"""PySpark's value in the time mode None."""

AT_ONCE = Millis(0)

LATEST = Millis((1 << 62) // 1000)
"""No watermark that a row has made is later."""

SHOWN = 200
"""How much of a row a failure shows."""


class Shape(Protocol):
    """What a processor is given and gives back: rows or frames."""

    def grouped(self, batch: Batch) -> dict[Key, list[Any]]:
        """What ``handleInputRows`` is to be given, by key."""

    def batches(self, yielded: Sequence[object]) -> list[Batch]:
        """What handlers yielded, by the declared output; raises RowMismatch."""


class ProcessorOperator:
    """One subtask's part of a processor's keys."""

    def __init__(self, head: ProcessorHead, place: TaskInfo, backends: BackendFactory) -> None:
        if not isinstance(head.processor, StatefulProcessor):
            raise JobRejected(
                f"{place.subtask.operator}: a {type(head.processor).__name__} is no "
                "StatefulProcessor",
                "its class does not derive from pyspark's StatefulProcessor",
                "derive it from that class",
            )
        self._processor = copy.deepcopy(head.processor)
        self._name = type(head.processor).__name__
        self._place = place
        self._mode = _mode(head.time_mode)
        self._watermark = Millis(0)
        fields = tuple(head.input.field(name) for name in head.keys)
        self._backend = backends(place, fields)
        self._timers = self._backend.timers(self._mode)
        self._handle = Handle(self._backend, self._timers, self._mode)
        self._initial = (
            None if head.initial is None else InitialRows(self._backend, head.initial, head.rows_as)
        )
        self._shape = _shape(head)
        self._event_time = head.event_time
        self.late_rows = 0
        self._input_key = input_key(fields, head.rows_as)
        self._timer_key = timer_key(fields)

    def restore(self, restored_state: RestoredState) -> None:
        self._call_user("init", lambda: self._processor.init(self._handle))
        self._handle.seal()
        self._backend.cursor.now = self._place.clock()
        self._watermark = max(self._watermark, restored_state.watermark or self._watermark)
        # The driver has checked that what is not declared may be dropped.
        for name in self._backend.restore(restored_state):
            log.info("%s: state '%s' is not restored.", self._place.subtask, name)
        if self._initial is not None:
            self._initial.restored()

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        del edge
        in_time = self._without_late_rows(batch)
        self.late_rows += batch.num_rows - in_time.num_rows
        with _collector_at_rest():
            return self._emitted("handleInputRows", self._handle_rows(in_time))

    def _without_late_rows(self, batch: Batch) -> Batch:
        """Rows without a time are not late, nor is any before the first watermark.

        A drain ends event time; in a job that continues from there every row would be late.
        """
        if self._mode is not TimeMode.EVENT_TIME or not self._event_time:
            return batch
        if not 0 < self._watermark <= LATEST:
            return batch
        column = batch.column(self._event_time)
        is_late = pc.less(column, pa.scalar(self._watermark, _in_millis(column.type)))
        return batch.filter(pc.or_kleene(pc.invert(is_late), column.is_null()))

    def advance(self, watermark: Millis) -> None:
        self._watermark = max(self._watermark, watermark)

    def is_due(self) -> bool:
        return self._has_initial_rows() or self._timers.is_due(self._timers_now())

    def fire(self) -> Iterable[Batch]:
        with _collector_at_rest():
            return self._emitted("handleExpiredTimer", self._fire_some())

    def next_timer(self) -> Millis | None:
        if self._mode is not TimeMode.PROCESSING_TIME or self._has_initial_rows():
            return AT_ONCE if self.is_due() else None
        return self._timers.earliest()

    def flush(self) -> Iterable[Batch]:
        return ()

    def finish(self) -> Iterable[Batch]:
        return ()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        self._backend.cursor.now = self._place.clock()
        return self._backend.capture(checkpoint)

    def cut(self) -> Captured:
        self._backend.cursor.now = self._place.clock()
        return self._backend.capture(NO_CHECKPOINT)

    def truncated(self, position: Position) -> None:
        self._backend.truncated(position)

    def completed(self, checkpoint: CheckpointId) -> None:
        self._backend.completed(checkpoint)

    def close(self) -> None:
        try:
            self._call_user("close", self._processor.close)
        finally:
            self._backend.close()

    def _take_time(self) -> TimerValues:
        """One look at the clock, for all that a turn does."""
        now = self._backend.cursor.now = self._place.clock()
        self._backend.expire()
        if self._mode is TimeMode.NONE:
            return TimerValues(UNKNOWN_TIME, UNKNOWN_TIME)
        return TimerValues(now, self._watermark)

    def _timers_now(self) -> Millis:
        return self._watermark if self._mode is TimeMode.EVENT_TIME else self._place.clock()

    def _handle_rows(self, batch: Batch) -> list[object]:
        times = self._take_time()
        backend, handle = self._backend, self._processor.handleInputRows
        seek, cursor, as_given = backend.seek, backend.cursor, self._input_key
        yielded: list[object] = []
        key: Key = ()
        rows: list[Any] = []
        given: Iterator[Any] = iter(rows)
        initial = {} if self._initial is None else self._initial.waiting
        try:
            grouped = self._shape.grouped(batch)
            backend.prefetch(list(grouped))
            for key, rows in grouped.items():
                if initial and key in initial:
                    self._begin_with(key, times)
                seek(key)
                given = iter(rows)
                yielded.extend(handle(as_given(key) if as_given else key, given, times))
                if cursor.may_be_empty:
                    backend.settle()
        except (JobRejected, UserCodeFailed):
            raise
        except Exception as error:  # the user's code may raise anything
            raise self._failure("handleInputRows", key, _reached(rows, given)) from error
        return yielded

    def _has_initial_rows(self) -> bool:
        return self._initial is not None and bool(self._initial.waiting)

    def _begin_with(self, key: Key, times: TimerValues) -> None:
        """Give the processor what the key begins with."""
        assert self._initial is not None, "some keys wait for their initial state"
        as_given = self._input_key(key) if self._input_key else key
        for given in self._initial.take(key):
            try:
                self._processor.handleInitialState(as_given, given, times)
            except JobRejected:
                raise
            except Exception as error:  # the user's code may raise anything
                raise self._failure("handleInitialState", key, f"row {_cut(given)}") from error
        if self._backend.cursor.may_be_empty:
            self._backend.settle()

    def _fire_some(self) -> list[object]:
        times = self._take_time()
        now = self._timers_now()
        until = perf_counter() + FIRING_SECONDS
        yielded: list[object] = []
        for _ in range(FIRED_AT_ONCE):
            if self._initial is not None and self._initial.waiting:
                self._begin_with(next(iter(self._initial.waiting)), times)
            elif self._timers.is_due(now):
                yielded.extend(self._fire_one(times))
            else:
                break
            if perf_counter() > until:
                break
        return yielded

    def _fire_one(self, times: TimerValues) -> list[object]:
        key, expiry = self._timers.seek_earliest()
        try:
            yielded: list[object] = list(
                self._processor.handleExpiredTimer(
                    key=self._timer_key(key),
                    timerValues=times,
                    expiredTimerInfo=ExpiredTimerInfo(expiry),
                )
            )
        except JobRejected:
            raise
        except Exception as error:  # the user's code may raise anything
            raise self._failure("handleExpiredTimer", key, f"the timer of {expiry} ms") from error
        self._timers.delete(expiry)
        if self._backend.cursor.may_be_empty:
            self._backend.settle()
        return yielded

    def _emitted(self, method: str, yielded: Sequence[object]) -> list[Batch]:
        try:
            return self._shape.batches(yielded)
        except RowMismatch as error:
            doing = f"Output of {self._name}.{method}"
            raise UserCodeFailed(doing, f"row {_cut(error.row)}") from error

    def _failure(self, method: str, key: Key, row: str) -> UserCodeFailed:
        return UserCodeFailed(f"{self._name}.{method} for key {_cut(key)}", row)

    def _call_user(self, method: str, call: Callable[[], None]) -> None:
        try:
            call()
        except JobRejected:
            raise
        except Exception as error:  # the user's code may raise anything
            raise UserCodeFailed(f"{self._name}.{method}", "no row") from error


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Put off the collection of cyclic garbage until a batch is done.

    A batch makes some hundred thousand objects and drops them all at its end. The collector would
    take their number for a leak and search the whole process for it, again and again: that was
    nearly half of the time of each row.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _mode(named: str) -> TimeMode:
    by_name = {mode.value.lower(): mode for mode in TimeMode}
    if named.lower() not in by_name:
        raise JobRejected(
            f"there is no time mode {named!r}",
            "transformWithState knows None, ProcessingTime and EventTime",
            "choose one of these",
        )
    return by_name[named.lower()]


def _in_millis(kind: pa.TimestampType) -> pa.TimestampType:
    return pa.timestamp("ms", kind.tz)


def _shape(head: ProcessorHead) -> Shape:
    if head.rows_as is RowsAs.PANDAS:
        return FrameShape(head.keys, head.output)
    return RowShape(head.keys, head.input, head.output)


def _reached(rows: list[Any], given: Iterator[Any]) -> str:
    """The row that user code took last, or what was offered if it took none."""
    if not rows:
        return "no row"
    taken = len(rows) - given.__length_hint__()  # type: ignore[attr-defined]  # of a list
    if not taken:
        return f"its start, before row {_cut(rows[0])}"
    return f"row {_cut(rows[taken - 1])}"


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
