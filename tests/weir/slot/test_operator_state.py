"""Lists of rows and broadcast maps: typed, safe in snapshots, cut so that they can be shared."""

import numpy as np
import pyarrow as pa
import pytest

from weir.core.snapshots import Redistribution
from weir.dataflow.physical import StateDeclaration
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.slot.operator_state import BATCHES_TOGETHER, ROWS_TOGETHER, state_for
from weir.state.snapshot_files import read_list, write_list

NOTHING = pa.schema([])
MOST = 128


def a_list(schema="n long", kind=Redistribution.SPLIT):
    return state_for(StateDeclaration("held", kind, NOTHING, schema_of(schema)))


def a_map(keys="user string", values="most long"):
    kind = Redistribution.BROADCAST
    state = state_for(StateDeclaration("limits", kind, schema_of(keys), schema_of(values)))
    state.is_open = True
    return state


def items(state, most=MOST):
    """What an upload writes and a restore reads."""
    written = state.capture(most).items
    return read_list(write_list(written), 0, len(written))


def again(state, fresh, most=MOST):
    fresh.load(items(state, most))
    return fresh


def batch(*numbers):
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


# Lists


def test_a_list_keeps_rows_in_the_order_they_were_added():
    state = a_list()
    state.put([(1,), (2,)])
    state.appendValue((3,))
    state.appendArrow(batch(4, 5))
    state.appendList([(6,)])

    assert list(state.get()) == [(n,) for n in range(1, 7)]
    assert state.toArrow().column("n").to_pylist() == [1, 2, 3, 4, 5, 6]


def test_a_list_that_is_put_or_cleared_has_nothing_of_before():
    state = a_list()
    state.appendArrow(batch(1))
    state.put([(2,)])
    assert list(state.get()) == [(2,)]

    state.clear()
    assert not state.exists()
    assert list(state.get()) == []


@pytest.mark.parametrize("times", [ROWS_TOGETHER + 1, BATCHES_TOGETHER + 1])
def test_many_small_appends_lose_nothing(times):
    state = a_list()
    for number in range(times):
        state.appendArrow(batch(number)) if times < ROWS_TOGETHER else state.appendValue((number,))

    assert list(state.get()) == [(n,) for n in range(times)]
    assert list(again(state, a_list()).get()) == [(n,) for n in range(times)]


def test_a_value_of_another_type_is_refused_at_once():
    """S1: a snapshot must not be what finds it."""
    with pytest.raises(TypeError, match="state 'held': field 'n' is bigint and cannot hold 'one'"):
        a_list().appendValue(("one",))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pa.record_batch({"m": [1]}), "has the columns m; declared are n"),
        (pa.record_batch({"n": ["one"]}), "not as declared"),
        ([(1,)], "it gave a list"),
    ],
)
def test_arrow_rows_of_another_schema_are_refused(given, words):
    with pytest.raises(TypeError, match=f"state 'held' cannot take it: .*{words}"):
        a_list().appendArrow(given)


def test_arrow_rows_are_brought_into_the_declared_columns():
    state = a_list("a int, b long")
    table = pa.table({"b": [1], "a": pa.array([2], pa.int64())})

    state.appendArrow(table)

    assert list(state.get()) == [(2, 1)]


def test_what_a_user_does_to_a_value_does_not_change_the_state():
    state = a_list("tags array<string>, sizes map<string,int>")
    tags = ["a"]
    state.appendValue((tags, {"a": np.int32(1)}))
    tags.append("b")
    next(state.get())[0].append("c")

    assert list(state.get()) == [(["a"], {"a": 1})]
    assert list(again(state, a_list("tags array<string>, sizes map<string,int>")).get()) == [
        (["a"], {"a": 1})
    ]


def test_a_snapshot_of_a_list_does_not_see_what_comes_after_it():
    """C1, S3: its bytes are made later, beside the mailbox."""
    state = a_list()
    state.put([(1,), (2,)])
    captured = state.capture(MOST)
    state.appendValue((3,))
    state.appendArrow(batch(4))
    later = state.capture(MOST)
    state.clear()

    restored = a_list()
    restored.load(list(captured.items))
    assert list(restored.get()) == [(1,), (2,)]
    assert len(later.items) == 4


@pytest.mark.parametrize(("rows", "most", "sizes"), [(3, 8, [1, 1, 1]), (10, 4, [3, 2, 3, 2])])
def test_a_list_is_cut_evenly_into_no_more_items_than_there_can_be_subtasks(rows, most, sizes):
    """S11: rows are what is shared out, as far as that matters."""
    state = a_list()
    state.put([(n,) for n in range(rows)])

    found = [len(pa.ipc.open_stream(item).read_all()) for item in items(state, most)]

    assert found == sizes
    assert list(again(state, a_list(), most).get()) == [(n,) for n in range(rows)]


def test_what_is_meant_for_everyone_is_one_item():
    union = a_list(kind=Redistribution.UNION)
    union.put([(1,), (2,)])
    limits = a_map()
    limits.updateValue(("ann",), (1,))
    limits.updateValue(("bob",), (2,))

    assert len(items(union)) == len(items(limits)) == 1


def test_an_empty_state_has_no_items():
    assert items(a_list()) == items(a_map()) == []


# Maps


def test_a_broadcast_map_is_read_as_pysparks_map_state():
    state = a_map()
    state.updateValue(("ann",), (1,))
    state.updateValue(("bob",), (2,))
    state.updateValue(("ann",), (3,))
    state.removeKey(("bob",))
    state.removeKey(("eve",))

    assert state.exists()
    assert state.containsKey(("ann",))
    assert not state.containsKey(("bob",))
    assert state.getValue(("ann",)) == (3,)
    assert state.getValue(("bob",)) is None
    assert list(state.iterator()) == [(("ann",), (3,))]
    assert (list(state.keys()), list(state.values())) == ([("ann",)], [(3,)])


def test_a_broadcast_map_is_a_table_that_is_made_once_for_each_change():
    state = a_map()
    state.updateValue(("ann",), (1,))

    table = state.toArrow()

    assert table.to_pylist() == [{"user": "ann", "most": 1}]
    assert state.toArrow() is table
    state.clear()
    assert state.toArrow().num_rows == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.updateValue(("ann",), (1,)),
        lambda state: state.removeKey(("ann",)),
        lambda state: state.clear(),
    ],
)
def test_a_broadcast_map_is_changed_by_the_broadcast_input_only(change):
    """S1: else it would not be the same in every subtask."""
    state = a_map()
    state.is_open = False

    with pytest.raises(TypeError, match="'limits' must stay the same in every subtask"):
        change(state)


def test_a_snapshot_of_a_map_does_not_see_what_comes_after_it():
    """C1, S3."""
    state = a_map()
    state.updateValue(("ann",), (1,))
    first, second = state.capture(MOST), state.capture(MOST)
    state.updateValue(("ann",), (2,))
    state.updateValue(("bob",), (3,))

    for captured in (first, second):
        restored = a_map()
        restored.load(list(captured.items))
        assert list(restored.iterator()) == [(("ann",), (1,))]


def test_a_restored_map_holds_every_type_of_key_and_value():
    state = a_map("place struct<x:int,y:int>", "tags array<string>, at timestamp")
    key, value = ((1, 2),), (["a"], None)
    state.updateValue(key, value)

    restored = again(state, a_map("place struct<x:int,y:int>", "tags array<string>, at timestamp"))

    assert restored.getValue(key) == value


# Another declaration


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("n string", "n was bigint and is string"),
        ("n long, m int", "m was not there and is int"),
        ("m long", "n was bigint and is not there; m was not there and is bigint"),
        ("n long not null", "n was bigint and is bigint not null"),
    ],
)
def test_a_state_that_was_declared_otherwise_is_refused_with_the_difference(now, words):
    """S12."""
    state = a_list()
    state.appendValue((1,))

    with pytest.raises(JobRejected) as refused:
        again(state, a_list(now))

    assert f"state 'held' was declared with other columns than the checkpoint has: {words}." in str(
        refused.value
    )


def test_columns_in_another_order_are_another_declaration():
    state = a_list("a int, b int")
    state.appendValue((1, 2))

    with pytest.raises(JobRejected, match="their order was a, b"):
        again(state, a_list("b int, a int"))


def test_a_state_of_another_kind_is_refused():
    """S11: a list that was shared out is not what all of them had together."""
    state = a_list()
    state.appendValue((1,))

    with pytest.raises(
        JobRejected, match="is a union list state in the function: it is a list state"
    ):
        again(state, a_list(kind=Redistribution.UNION))
