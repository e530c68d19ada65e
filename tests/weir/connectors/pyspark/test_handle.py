"""The handle and the states are PySpark's, whole: nothing of them is left to talk to a JVM."""

import inspect
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming import stateful_processor as spark

from weir.connectors.pyspark.handle import Handle, List, Map, Value
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.errors import JobRejected
from weir.ports.keyed_state import TimeMode
from weir.ports.operators import TaskInfo
from weir.state.memory.memory_backend import MemoryBackend

PAIRS = [
    (Handle, spark.StatefulProcessorHandle),
    (Value, spark.ValueState),
    (List, spark.ListState),
    (Map, spark.MapState),
]


def public(of):
    methods = inspect.getmembers(of, inspect.isfunction)
    return {name: method for name, method in methods if not name.startswith("_")}


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda of: of.__name__)
def test_every_method_of_pyspark_is_there_with_its_parameters(ours, theirs):
    """D1: a processor written for PySpark runs unchanged, whatever it calls by whatever name."""
    for name, method in public(theirs).items():
        own = public(ours)[name]
        assert own is not method, f"{name} would ask the JVM"
        assert list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters)


def test_every_method_of_a_processor_is_called_or_its_own():
    """D1: PySpark 4.3 has these; another one would be news."""
    assert set(public(spark.StatefulProcessor)) == {
        "init",
        "handleInputRows",
        "handleExpiredTimer",
        "handleInitialState",
        "close",
    }


# What states give back, as PySpark 4.3 does

NAIVE = datetime(2026, 1, 1, 15, 0, 0, 123456)  # noqa: DTZ001 - as users of PySpark write it
ALL = "n int, at timestamp, a array<timestamp>, m map<string,timestamp>, s struct<at:timestamp>"


@pytest.fixture
def backend():
    place = TaskInfo(SubtaskId(OperatorId("counts"), 0), 1, 128, 1, 1, lambda: Millis(0))
    return MemoryBackend(place, [pa.field("word", pa.string())])


@pytest.fixture
def handle(backend):
    mode = TimeMode.NONE
    return Handle(backend, backend.timers(mode), mode)


@pytest.fixture
def started(backend, handle):
    """The handle as it is when rows of a key come."""

    def begin():
        handle.seal()
        backend.seek(("a",))

    return begin


def values_at(instant):
    return (1, instant, [instant], {"a": instant}, (instant,))


@pytest.mark.parametrize("instant", [NAIVE, NAIVE.replace(tzinfo=UTC)], ids=["naive", "aware"])
@pytest.mark.parametrize("ttl", [None, 1000])
def test_timestamps_of_a_state_are_naive(handle, started, instant, ttl):
    """D1: however they were put in, and wherever in a value they are."""
    value = handle.getValueState("v", ALL, ttl)
    rows = handle.getListState("l", ALL, ttl)
    entries = handle.getMapState("m", "at timestamp", ALL, ttl)
    started()
    value.update(values_at(instant))
    rows.put([values_at(instant)])
    entries.updateValue((instant,), values_at(instant))

    expected = values_at(NAIVE)
    assert value.get() == expected
    assert list(rows.get()) == [expected]
    assert list(entries.iterator()) == [((NAIVE,), expected)]
    assert entries.getValue((NAIVE,)) == expected


@pytest.mark.parametrize("ttl", [None, 1000])
def test_the_value_of_a_map_has_names_and_rows_of_iterators_have_none(handle, started, ttl):
    """D1: of all that states give back, only getValue gives a Row."""
    entries = handle.getMapState("m", "k string", "count int, other string", ttl)
    started()
    entries.updateValue(("k",), (1, "x"))

    found = entries.getValue(("k",))
    assert (found, found.other) == (Row(count=1, other="x"), "x")
    assert [type(value) for value in entries.values()] == [tuple]
    assert entries.getValue(("missing",)) is None


def test_a_plain_string_is_a_row_of_one_string(handle, started):
    """D1: PySpark takes a string of one letter for such a row."""
    entries = handle.getMapState("m", "k string", "x string")
    started()
    entries.updateValue("k", "x")

    assert entries.containsKey("k")
    assert list(entries.iterator()) == [(("k",), ("x",))]
    entries.removeKey("k")
    assert not entries.exists()


def test_a_plain_string_is_no_row_of_two_fields(handle, started):
    """U3."""
    entries = handle.getMapState("m", "a string, b string", "x string")
    started()

    with pytest.raises(TypeError, match="takes a tuple of"):
        entries.updateValue("ab", "x")


def test_a_map_may_have_structs_as_keys(handle, started):
    """D1: as tuples, rows or dicts."""
    entries = handle.getMapState("m", "k struct<a:int,b:string>", "x int")
    started()
    for key in ((1, "x"), Row(a=2, b="y"), {"a": 3, "b": "z"}, None):
        entries.updateValue((key,), (0,))

    assert [key.b for (key,) in entries.keys() if key] == ["x", "y", "z"]  # noqa: SIM118 - PySpark's
    assert entries.containsKey((Row(a=1, b="x"),))
    assert entries.containsKey((None,))


def test_a_state_that_was_deleted_says_so_when_it_is_used(handle, started):
    """U3: and the states that were declared after it work."""
    deleted = handle.getValueState("old", "x int")
    handle.deleteIfExists("old")
    handle.deleteIfExists("missing")
    other = handle.getValueState("new", "x int")
    started()
    other.update((1,))

    assert other.get() == (1,)
    for use in (deleted.get, deleted.exists, deleted.clear, lambda: deleted.update((1,))):
        with pytest.raises(
            JobRejected,
            match=r"state 'old' is used after it was deleted: init has called deleteIfExists",
        ):
            use()
