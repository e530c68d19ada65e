"""A processor is given its keys as PySpark gives them, before and after a restore."""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, and so are those without a use

from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from processor_harness import ProcessorHarness, written
from weir.connectors.pyspark.given_keys import input_key, timer_key
from weir.dataflow.physical import RowsAs
from weir.dataflow.types import schema_of

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = list(
    schema_of(
        "k struct<n:int,in:struct<at:timestamp,d:date>>, at timestamp, w timestamp_ntz, s string"
    )
)
KEY = ((1, (NEW_YEAR, date(2026, 1, 2))), NEW_YEAR, datetime(2026, 1, 3), "x")  # noqa: DTZ001
INPUT = "k struct<n:int,in:struct<s:string>>, amount bigint"
DEEP = {"n": 1, "in": {"s": "x"}}
SHALLOW = {"n": 1, "in": None}
HOLLOW = {"n": None, "in": {"s": None}}


class CountingKeys(StatefulProcessor):
    """Counts the rows of each key, and shows the key that it is given with rows and with timers."""

    def init(self, handle):
        self.handle = handle
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(self, key, rows, timerValues):
        number = sum(1 if isinstance(row, Row) else len(row) for row in rows)
        self.count.update((number + self._counted(),))
        self.handle.registerTimer(5_000)
        yield from self._shown(key)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield from self._shown(key)

    def _counted(self):
        found = self.count.get()
        return found[0] if found else 0

    def _shown(self, key):
        yield Row(word=repr(key), total=self._counted())


class CountingKeysOfFrames(CountingKeys):
    """The same for ``transformWithStateInPandas``."""

    def _shown(self, key):
        yield pd.DataFrame({"word": [repr(key)], "total": [self._counted()]})


PROCESSORS = {RowsAs.ROWS: CountingKeys, RowsAs.PANDAS: CountingKeysOfFrames}


def a_job(rows_as, **more):
    return ProcessorHarness(
        PROCESSORS[rows_as](),
        inputs=INPUT,
        keys=("k",),
        rows_as=rows_as,
        time_mode="ProcessingTime",
        **more,
    )


def rows_of(*keys):
    return [{"k": key, "amount": 1} for key in keys]


def shown(rows):
    return {row["word"]: row["total"] for row in rows}


def test_beside_rows_a_struct_is_a_dict():
    """D1: instants have their zone, as those in the rows have."""
    nested = {"at": NEW_YEAR, "d": date(2026, 1, 2)}

    given = input_key(FIELDS, RowsAs.ROWS)

    assert given(KEY) == ({"n": 1, "in": nested}, *KEY[1:])
    assert given(((None, None), None, None, None)) == ({"n": None, "in": None}, None, None, None)
    assert given((None,) * 4) == (None,) * 4


def test_beside_frames_instants_are_those_of_pandas():
    """D1: naive, as those in the frames are."""
    naive = pd.Timestamp("2026-01-01")

    key = input_key(FIELDS, RowsAs.PANDAS)(KEY)

    expected = {"n": 1, "in": {"at": naive, "d": date(2026, 1, 2)}}
    assert key == (expected, naive, pd.Timestamp("2026-01-03"), "x")
    assert isinstance(key[0]["in"]["at"], pd.Timestamp)


def test_a_timer_has_rows_for_structs():
    """D1: and naive instants."""
    key = timer_key(FIELDS)(KEY)

    naive = NEW_YEAR.replace(tzinfo=None)
    assert key == Row(Row(1, Row(naive, date(2026, 1, 2))), naive, KEY[2], "x")
    assert key.k["in"].d == date(2026, 1, 2)
    assert key.s == "x"


def test_keys_without_structs_and_instants_are_given_as_they_are_kept():
    fields = list(schema_of("n int, s string"))

    assert input_key(fields, RowsAs.ROWS) is None
    assert input_key(fields, RowsAs.PANDAS) is None
    assert timer_key(fields)((1, "x")) == Row(n=1, s="x")


@pytest.mark.parametrize("rows_as", list(RowsAs))
def test_rows_are_grouped_by_their_struct(rows_as):
    """D1: a null struct is a key, and a struct of nulls another."""
    job = a_job(rows_as).begin()

    found = shown(job.process(*rows_of(DEEP, None, SHALLOW, DEEP, HOLLOW, None)))

    assert found == {repr((DEEP,)): 2, "(None,)": 2, repr((SHALLOW,)): 1, repr((HOLLOW,)): 1}


@pytest.mark.parametrize("rows_as", list(RowsAs))
def test_state_and_timers_of_struct_keys_are_restored(rows_as):
    """S1, S9, D1: the key of a timer has the same Rows as before."""
    job = a_job(rows_as).begin()
    job.process(*rows_of(DEEP, None, HOLLOW))

    again = a_job(rows_as).begin(written(job.capture()))

    assert shown(again.process(*rows_of(DEEP, None))) == {repr((DEEP,)): 2, "(None,)": 2}
    again.clock.now = 5_000
    assert shown(again.fire()) == {
        repr(Row(k=Row(**{"n": 1, "in": Row(s="x")}))): 2,
        repr(Row(k=None)): 2,
        repr(Row(k=Row(**{"n": None, "in": Row(s=None)}))): 1,
    }


def test_state_of_struct_keys_moves_by_key_groups():
    """S11: each key is known to exactly one subtask."""
    keys = [{"n": n % 7, "in": {"s": f"{n}"}} for n in range(100)]
    job = a_job(RowsAs.ROWS).begin()
    job.process(*rows_of(*keys))
    files = written(job.capture())

    known = 0
    for index in range(3):
        part = a_job(RowsAs.ROWS, index=index, parallelism=3)
        part.begin([(part.groups, data) for _, data in files])
        known += sum(total == 2 for total in shown(part.process(*rows_of(*keys))).values())

    assert known == len(keys)


def test_changes_of_struct_keys_are_laid_over_what_was_there():
    """S4: a layer finds the keys that it replaces."""
    job = a_job(RowsAs.ROWS, is_incremental=True).begin()
    job.process(*rows_of(DEEP, None))
    first = job.capture()
    files = [(piece.groups, piece.write()) for piece in first.keyed]
    job.operator.completed(1)
    job.process(*rows_of(DEEP, HOLLOW))
    layers = [(piece.groups, piece.since(1)) for piece in job.capture().keyed]

    again = a_job(RowsAs.ROWS, is_incremental=True).begin([*files, *layers])

    found = shown(again.process(*rows_of(DEEP, None, HOLLOW)))
    assert found == {repr((DEEP,)): 3, "(None,)": 2, repr((HOLLOW,)): 2}


def test_a_file_keeps_the_struct_as_a_column():
    """S9: any Arrow tool reads it."""
    job = a_job(RowsAs.ROWS).begin()
    job.process(*rows_of(DEEP, None))

    ((_, data), *_) = written(job.capture())

    table = pa.ipc.open_file(data).read_all()
    assert table.schema.field("k").type == schema_of(INPUT).field("k").type
    assert sorted(map(repr, table.column("k").to_pylist())) == sorted([repr(DEEP), "None"])
