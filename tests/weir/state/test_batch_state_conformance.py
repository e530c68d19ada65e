"""Every state backend has windows of aggregates and states that are used by whole batches."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from batch_states import KEYS, SEEN, SIDE, Subtask, a_batch, keys_batch, rows_of
from captured_state import MAX_PARALLELISM, a_place, whole, written
from weir.core.ids import CheckpointId
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import RestoredState
from weir.state.row_types import RowType
from weir.wire.keys import key_groups

TIMED = (pa.field("at", pa.int64()), pa.field("text", pa.string()))
VALUES, ROWS = pa.schema([*KEYS, *SEEN]), pa.schema([*KEYS, *SIDE])
MANY = 60_000
"""Keys, more than the least memory of RocksDB's table holds."""


def windows(keys, end, amount):
    count = len(keys)
    words = pa.array([f"w{key}" for key in keys])
    numbers = pa.array(np.zeros(count, np.int32))
    ends, amounts = np.full(count, end), np.full(count, amount)
    names = ["word", "n", "window_end", "amount"]
    return pa.RecordBatch.from_arrays([words, numbers, pa.array(ends), pa.array(amounts)], names)


def taken_in(subtask, batch):
    subtask.sums.update(batch)
    if subtask.backend.needs_flush():
        subtask.backend.flushed()


def expired(subtask, until, most=10_000):
    """How many windows there are of each sum, and how many portions they came in."""
    sums, portions = [], 0
    while len(row_numbers := subtask.sums.expired(until, most)):
        assert len(row_numbers) <= most
        sums += subtask.sums.rows(row_numbers)[3].to_pylist()
        subtask.sums.remove(row_numbers)
        subtask.flush()
        portions += 1
    return {total: sums.count(total) for total in set(sums)}, portions


def test_a_window_of_a_key_is_an_aggregate_of_its_own(make_backend):
    """S1 S14."""
    subtask = Subtask(make_backend)
    subtask.update([("a", 1, 10, 3), ("a", 1, 20, 4), ("a", 1, 10, 5), ("b", 1, 10, None)])

    assert sorted(subtask.expired_windows(15, most=9)) == [
        ("a", 1, 10, 8, 5),
        ("b", 1, 10, None, None),
    ]
    assert subtask.update([("a", 1, 10, 1), ("a", 1, 20, 1)]) == [
        ("a", 1, 10, 1, 1),
        ("a", 1, 20, 5, 4),
    ]


def test_windows_expire_in_portions_wherever_they_are(make_backend):
    """S1 S14: in memory or written back, and those of later times stay."""
    subtask = Subtask(make_backend)
    for amount in (1, 2):
        for end in (-5, 10, 20):
            taken_in(subtask, windows(range(MANY), end, amount))

    assert expired(subtask, -6) == ({}, 0)
    sums, portions = expired(subtask, 10)
    assert sums == {3: 2 * MANY}
    assert portions >= 2 * MANY // 10_000
    taken_in(subtask, windows(range(10), 5, 7))
    assert expired(subtask, 19)[0] == {7: 10}
    assert expired(subtask, 20)[0] == {3: MANY}
    assert expired(subtask, (1 << 63) - 1) == ({}, 0)


def test_expired_windows_are_found_again_until_they_are_removed(make_backend):
    """S14: an operator that fails between the two loses nothing."""
    subtask = Subtask(make_backend)
    subtask.update([("a", 1, 10, 3), ("b", 1, 11, 4)])

    assert rows_of(subtask.sums.rows(subtask.sums.expired(10, 5))) == [("a", 1, 10, 3, 3)]
    assert subtask.expired_windows(10) == [("a", 1, 10, 3, 3)]
    assert subtask.expired_windows(10) == []


def test_a_window_has_the_key_group_of_its_key(make_backend):
    """S9 S14: so it moves with its key, and its file says which window it is."""
    subtask = Subtask(make_backend)
    for end in range(5):
        taken_in(subtask, windows(range(50), end, 1))
    (state,) = [s for s in map(whole, written(subtask.backend)) if s.name == "aggregates"]

    assert state.key_columns == ("word", "n", "window_end")
    assert state.table.num_rows == 250
    groups = state.table.select(["word", "n"]).combine_chunks().to_batches()[0]
    in_file = key_groups(groups, ["word", "n"], MAX_PARALLELISM)
    assert in_file.tolist() == sorted(in_file.tolist())


def test_windows_are_not_restored_without_their_namespace(make_backend):
    """S12 S14: the sums of several windows must not become one."""
    subtask = Subtask(make_backend)
    subtask.update([("a", 1, 10, 3)])
    files = written(subtask.backend)
    other = make_backend(a_place(), KEYS)
    other.aggregates((), pa.schema([*KEYS, ("amount", pa.int64())]))

    with pytest.raises(JobRejected, match="window_end"):
        other.restore(RestoredState(keyed=files))


def test_sessions_that_grow_together_are_merged(make_backend):
    """S1 S14: whether the memory has them or the disk, and into one that is new as well."""
    subtask = Subtask(make_backend)
    subtask.update([("a", 1, 10, 3)])
    taken_in(subtask, windows(range(2 * MANY), 0, 1))
    subtask.update([("a", 1, 20, 7), ("b", 1, 5, -1)])

    found = subtask.merge(
        [("a", 1, 10), ("a", 1, 20), ("b", 1, 5)], [("a", 1, 30), ("a", 1, 30), ("b", 1, 6)]
    )
    assert found == [("a", 1, 30, 10, 7)] * 2 + [("b", 1, 6, -1, -1)]
    assert expired(subtask, 29)[0] == {1: 2 * MANY, -1: 1}
    assert subtask.update([("a", 1, 10, 1)]) == [("a", 1, 10, 1, 1)]


def seen(make, values, time=None):
    backend = make(a_place(), KEYS)
    return backend, backend.batch_value_state("seen", values, time)


def test_the_last_row_of_a_key_is_its_value(make_backend):
    """S1 S14: in one batch, or in several; and a removed key has none."""
    _, state = seen(make_backend, (pa.field("v", pa.int64()),))
    rows = pa.schema([*KEYS, ("v", pa.int64())])
    state.put(a_batch(rows, [("a", 1, 1), ("b", None, 2), ("a", 1, 3)]))
    state.put(a_batch(rows, [("b", None, 4), (None, 1, 5)]))
    state.remove(keys_batch([(None, 1), ("unknown", 1)]))

    found = state.get(keys_batch([("a", 1), ("b", None), (None, 1), ("a", 1)]))
    assert found.is_present.tolist() == [True, True, False, True]
    assert found.rows.column("v").to_pylist() == [3, 4, 3]


def test_keys_may_be_all_that_is_kept(make_backend):
    """S14: to know which rows are duplicates, the key is enough."""
    backend, state = seen(make_backend, ())
    state.put(keys_batch([("a", 1), (None, None)]))
    (file,) = written(backend)
    other, restored = seen(make_backend, ())
    other.restore(RestoredState(keyed=[file]))

    asked = keys_batch([("a", 1), ("a", 2), (None, None)])
    assert restored.get(asked).is_present.tolist() == [True, False, True]


def test_a_row_that_is_put_later_expires_later(make_backend):
    """S14."""
    backend = make_backend(a_place(), KEYS)
    state = backend.batch_value_state("seen", TIMED, "at")
    rows = pa.schema([*KEYS, *TIMED])
    state.put(a_batch(rows, [("a", 1, 5, "x"), ("b", 1, 5, "y"), ("c", 1, 9, "z")]))
    state.put(a_batch(rows, [("a", 1, 7, "later"), ("c", 1, 3, "sooner")]))

    assert sorted(rows_of(state.expired(5, 10).columns)) == [
        ("b", 1, 5, "y"),
        ("c", 1, 3, "sooner"),
    ]
    state.remove(keys_batch([("b", 1), ("c", 1)]))
    assert state.expired(6, 10).num_rows == 0
    assert rows_of(state.expired(9, 10).columns) == [("a", 1, 7, "later")]


TYPES = {
    "i8": (pa.int8(), [-128, None, 127]),
    "f32": (pa.float32(), [0.5, None, -0.0]),
    "f64": (pa.float64(), [-0.0, None, float("inf")]),
    "flag": (pa.bool_(), [True, None, False]),
    "day": (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)]),
    "at": (pa.timestamp("us", tz="UTC"), [None, None, None]),
    "text": (pa.string(), ["", None, "ä\0b"]),
    "data": (pa.binary(), [b"", None, b"\0\xff"]),
    "price": (pa.decimal128(10, 2), [Decimal("-1.50"), None, Decimal("99999999.99")]),
    "list": (pa.list_(pa.int64()), [[], None, [1, None]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[], None, [("k", None)]]),
    "struct": (pa.struct([("a", pa.int64()), ("l", pa.list_(pa.string()))]), [
        {"a": None, "l": None}, None, {"a": 1, "l": ["x", None]},
    ]),
}  # fmt: skip


def test_values_of_all_types_come_back(make_backend, make_other_backend):
    """S14 S10: from the state, and from the other backend's after a savepoint."""
    fields = tuple(pa.field(name, kind) for name, (kind, _) in TYPES.items())
    columns = [pa.array(values, kind) for kind, values in TYPES.values()]
    keys = keys_batch([("a", 1), ("b", 2), (None, None)])
    rows = pa.RecordBatch.from_arrays([*keys.columns, *columns], schema=pa.schema([*KEYS, *fields]))
    backend, state = seen(make_backend, fields)
    state.put(rows)
    other, restored = seen(make_other_backend, fields)
    other.restore(RestoredState(keyed=written(backend)))

    for one in (state, restored):
        assert repr(one.get(keys).rows.to_pylist()) == repr(rows.to_pylist())


def side(make):
    backend = make(a_place(), KEYS)
    return backend, backend.batch_list_state("side", TIMED, "at")


def test_rows_are_matched_by_key(make_backend):
    """S14: each probe with all rows of its key, in the order in which they came."""
    _, state = side(make_backend)
    rows = pa.schema([*KEYS, *TIMED])
    state.append(a_batch(rows, [("a", 1, 1, "x"), ("b", 1, 2, "y"), ("a", 1, 1, "x")]))
    state.append(a_batch(rows, [("a", 1, 0, "z"), ("a", None, 0, "null")]))

    found = state.match(keys_batch([("b", 1), ("c", 1), ("a", 1), ("b", 1)]))
    assert found.positions.tolist() == [0, 2, 2, 2, 3]
    assert found.rows.column("text").to_pylist() == ["y", "x", "x", "z", "y"]


def test_a_row_is_replaced_or_removed_alone(make_backend):
    """S14: of several that are equal; and new rows do not take their place."""
    _, state = side(make_backend)
    rows = pa.schema([*KEYS, *TIMED])
    state.append(a_batch(rows, [("a", 1, 1, "x")] * 3))
    found = state.match(keys_batch([("a", 1)])).rows
    marked = found.slice(1, 1).set_column(4, "text", pa.array(["marked"]))
    state.put(marked)
    state.remove(found.slice(0, 1))
    state.append(a_batch(rows, [("a", 1, 1, "new")]))

    texts = state.match(keys_batch([("a", 1)])).rows.column("text").to_pylist()
    assert texts == ["marked", "x", "new"]


def test_rows_that_come_after_a_restore_replace_none(make_backend, make_other_backend):
    """S14 S10."""
    backend, state = side(make_backend)
    rows = pa.schema([*KEYS, *TIMED])
    state.append(a_batch(rows, [("a", 1, 1, "x"), ("a", 1, 2, "y")]))
    other, restored = side(make_other_backend)
    other.restore(RestoredState(keyed=written(backend)))
    restored.append(a_batch(rows, [("a", 1, 3, "z"), ("a", 1, 4, "w")]))

    found = restored.match(keys_batch([("a", 1)])).rows
    assert found.column("text").to_pylist() == ["x", "y", "z", "w"]


def test_a_batch_value_state_is_a_value_state_in_files(make_backend, make_other_backend):
    """S14 S12: a state may be used by batches in one release and key by key in another."""
    other = make_other_backend(a_place(), (KEYS[0],))
    value = other.value_state("total", RowType("state 'total'", schema_of("v long")))
    other.seek(("a",))
    value.update((5,))
    batches = make_backend(a_place(), (KEYS[0],))
    total = batches.batch_value_state("total", (pa.field("v", pa.int64()),))
    batches.restore(RestoredState(keyed=written(other)))

    found = total.get(pa.RecordBatch.from_pydict({"word": ["a", "b"]}))
    assert rows_of(found.rows.columns) == [("a", 5)]


def test_batch_rows_are_read_as_they_are_declared_now(make_backend):
    """S12 S14: a wider number, a new field, and one that is gone; and what cannot be is refused."""
    backend, state = seen(make_backend, (pa.field("v", pa.int32()), pa.field("old", pa.string())))
    rows = pa.schema([*KEYS, ("v", pa.int32()), ("old", pa.string())])
    state.put(a_batch(rows, [("a", 1, 7, "x")]))
    files = written(backend)
    other, wider = seen(make_backend, (pa.field("new", pa.bool_()), pa.field("v", pa.int64())))
    other.restore(RestoredState(keyed=files))
    narrow, _ = seen(make_backend, (pa.field("v", pa.int16()),))

    assert rows_of(wider.get(keys_batch([("a", 1)])).rows.columns) == [("a", 1, None, 7)]
    with pytest.raises(JobRejected, match="cannot hold every number"):
        narrow.restore(RestoredState(keyed=files))


def test_a_dropped_batch_state_is_in_no_snapshot(make_backend):
    """S14 S12."""
    backend, state = seen(make_backend, TIMED, "at")
    state.put(a_batch(pa.schema([*KEYS, *TIMED]), [("a", 1, 5, "x")]))
    backend.drop("seen")

    assert written(backend) == []
    again = backend.batch_value_state("seen", TIMED, "at")
    assert again.expired(9, 9).num_rows == 0


def test_what_went_since_a_checkpoint_is_gone_after_a_restore(make_backend):
    """S4 S14: whether the next one has layers of changes or is whole."""
    subtask = Subtask(make_backend)
    subtask.backend.restore(RestoredState())
    subtask.update([("a", 1, 10, 3), ("a", 1, 20, 4), ("b", 1, 10, 5), ("b", 1, 30, 6)])
    subtask.seen.put(a_batch(VALUES, [("a", 1, 1, 0.5), ("b", 1, 2, 0.5)]))
    subtask.side.append(a_batch(ROWS, [("a", 1, at, "x", None, False) for at in (1, 2, 3)]))
    below = subtask.write(1)
    subtask.backend.completed(CheckpointId(1))
    subtask.merge([("a", 1, 10)], [("a", 1, 20)])
    assert subtask.expired_windows(10) == [("b", 1, 10, 5, 5)]
    subtask.seen.remove(keys_batch([("a", 1)]))
    subtask.side.remove(subtask.side.expired(2, 9))
    above = subtask.write(2, base=1)
    files = [
        file[1:]
        for name, newer in above.items()
        for file in ([below[name], newer] if newer[0] else [newer])
    ]
    restored = Subtask(make_backend)
    restored.backend.restore(RestoredState(keyed=files))

    assert sorted(restored.expired_windows(99, most=9)) == [("a", 1, 20, 7, 4), ("b", 1, 30, 6, 6)]
    assert restored.seen.get(keys_batch([("a", 1), ("b", 1)])).is_present.tolist() == [False, True]
    found = restored.side.match(keys_batch([("a", 1)])).rows
    assert found.column("at").to_pylist() == [3]


def test_a_capture_of_batch_states_does_not_see_later_rows(make_backend):
    """S3 C1 S14: though it is written after them."""
    subtask = Subtask(make_backend)
    subtask.seen.put(a_batch(VALUES, [("a", 1, 1, 0.5), ("b", 1, 2, 0.5)]))
    subtask.side.append(a_batch(ROWS, [("a", 1, 1, "x", None, False)]))
    captured = subtask.backend.capture(CheckpointId(1))
    subtask.seen.put(a_batch(VALUES, [("b", 1, 9, 1.5), ("c", 1, 9, 1.5)]))
    subtask.seen.remove(keys_batch([("a", 1)]))
    subtask.side.remove(subtask.side.expired(9, 9))
    states = {s.name: s for s in (whole((p.groups, p.write())) for p in captured.keyed)}
    captured.release()

    assert sorted(states["seen"].table.column("value.x").to_pylist()) == [0.5, 0.5]
    assert states["side"].table.column("value.text").to_pylist() == ["x"]
