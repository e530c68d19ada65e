"""Values, lists and maps of keys: typed, frozen when stored, and shared with snapshots unseen."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from keyed_state_files import captured, refill, rows
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.state.memory.chunks import CHUNK_ROWS
from weir.state.memory.keyed_states import ListState, MapState, ValueState
from weir.state.memory.row_index import RowIndex
from weir.state.row_types import RowType


def row_type(ddl):
    return RowType("state 's'", schema_of(ddl))


def value_state(ddl="n long"):
    row_index = RowIndex()
    return row_index, ValueState("s", row_index, row_type(ddl))


def stored(ddl, value):
    """What comes back of a value, once from memory and once from a file."""
    row_index, state = value_state(ddl)
    row_index.seek((1,))
    state.update((value,))
    again, restored = value_state(ddl)
    refill(captured(row_index, state), again, restored)
    again.seek((1,))
    assert restored.get() == state.get()
    return state.get()[0]


@pytest.mark.parametrize(
    ("ddl", "value", "kept"),
    [
        ("n long", np.int64(3), 3),
        ("n int", None, None),
        ("n double", 3, 3.0),
        ("n double", np.float32(1.5), 1.5),
        ("n float", 0.1, float(np.float32(0.1))),
        ("n boolean", np.True_, True),
        ("n string", "häuser 🏠", "häuser 🏠"),
        ("n binary", bytearray(b"ab"), b"ab"),
        ("n date", date(2026, 1, 2), date(2026, 1, 2)),
        ("n decimal(10,2)", Decimal("1.5"), Decimal("1.50")),
        ("n timestamp_ntz", datetime(2026, 1, 2), datetime(2026, 1, 2)),  # noqa: DTZ001
        ("n timestamp", datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),  # noqa: DTZ001
        (
            "n timestamp",
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))),
            datetime(2026, 1, 1, 23, tzinfo=UTC),
        ),
        ("n array<int>", [1, None], [1, None]),
        ("n array<int>", np.array([1, 2]), [1, 2]),
        ("n map<string,array<int>>", {"a": [1]}, {"a": [1]}),
        ("n struct<a:int,b:string>", {"b": "x", "a": 1}, (1, "x")),
        ("n array<struct<a:int>>", [(1,), (2,)], [(1,), (2,)]),
    ],
)
def test_a_value_is_kept_as_its_declared_type(ddl, value, kept):
    """S1."""
    found = stored(ddl, value)

    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("n long", "3"),
        ("n long", 1.5),
        ("n long", True),
        ("n long", 2**63),
        ("n tinyint", 128),
        ("n long not null", None),
        ("n string", 3),
        ("n string", "\ud800"),
        ("n boolean", 1),
        ("n double", "1"),
        ("n binary", "text"),
        ("n date", "yesterday"),
        ("n decimal(3,1)", Decimal("1234.5")),
        ("n array<int>", ["a"]),
        ("n array<string>", "text"),
        ("n struct<a:int>", (1, 2)),
        ("n map<string,int>", {"a": "b"}),
    ],
)
def test_a_value_that_does_not_fit_is_refused_at_once(ddl, value):
    """S1, U3: and not when a snapshot is written, long after."""
    row_index, state = value_state(ddl)
    row_index.seek((1,))

    with pytest.raises(TypeError, match=r"state 's': field 'n' is .* cannot hold "):
        state.update((value,))


@pytest.mark.parametrize("row", [3, (1, 2), (), "n"])
def test_a_row_of_another_shape_is_refused(row):
    """U3."""
    row_index, state = value_state("n long, m long, o long")
    row_index.seek((1,))

    with pytest.raises(TypeError, match=r"takes a tuple of \(n, m, o\)"):
        state.update(row)


def test_a_type_that_no_snapshot_can_hold_is_refused_when_it_is_declared():
    """U3."""
    with pytest.raises(JobRejected, match="field 'n': type null cannot be kept in state"):
        row_type("n void")


def test_what_was_handed_over_can_be_changed_without_changing_the_state():
    """S3."""
    row_index, state = value_state("n array<int>")
    row_index.seek((1,))
    mine = [1]
    state.update((mine,))

    mine.append(2)
    state.get()[0].append(3)

    assert state.get() == ([1],)


def test_a_snapshot_does_not_see_what_is_written_after_it():
    """S3."""
    row_index, state = value_state()
    row_index.seek((1,))
    state.update((1,))
    piece = captured(row_index, state)

    state.update((2,))
    row_index.seek((2,))
    state.update((9,))

    assert rows(piece) == [{"id": 1, "value.n": 1}]


def test_only_a_chunk_that_is_written_to_is_copied():
    """S2, S3."""
    row_index, state = value_state()
    for key in range(2 * CHUNK_ROWS):
        row_index.seek((key,))
        state.update((key,))
    before = list(state.column.chunks)
    captured(row_index, state)

    row_index.seek((0,))
    state.update((5,))
    state.update((6,))

    changed = [old is not new for old, new in zip(before, state.column.chunks, strict=True)]
    assert changed == [True, False]


def test_a_key_without_state_gives_its_row_to_the_next():
    """S1."""
    row_index, state = value_state()
    for key in range(10 * CHUNK_ROWS):
        row_index.seek((key,))
        state.update((key,))
        state.clear()
        row_index.settle()

    assert len(row_index) == 0
    assert row_index.chunks == 1


def test_a_freed_row_still_belongs_to_its_old_key_in_an_older_snapshot():
    """S3."""
    row_index, state = value_state()
    row_index.seek((1,))
    state.update((10,))
    piece = captured(row_index, state)

    state.clear()
    row_index.settle()
    row_index.seek((2,))
    state.update((20,))

    assert rows(piece) == [{"id": 1, "value.n": 10}]
    assert rows(captured(row_index, state)) == [{"id": 2, "value.n": 20}]


def test_an_append_is_invisible_to_snapshots_and_iterators_that_began_before():
    """S3."""
    row_index = RowIndex()
    state = ListState("s", row_index, row_type("n long"))
    row_index.seek((1,))
    state.extend([(1,), (2,)])
    piece = captured(row_index, state)

    for row in state.get():
        state.append(row)

    assert [row["value.n"] for row in rows(piece)] == [1, 2]
    assert list(state.get()) == [(1,), (2,), (1,), (2,)]


def test_a_list_can_be_replaced_by_another_or_by_none():
    """S1."""
    row_index = RowIndex()
    state = ListState("s", row_index, row_type("n long"))
    row_index.seek((1,))
    state.append((1,))
    state.put([(2,), (3,)])
    assert list(state.get()) == [(2,), (3,)]

    state.put([])
    assert not state.exists()


def test_a_map_is_copied_by_the_first_write_after_a_capture():
    """S3."""
    row_index = RowIndex()
    state = MapState("s", row_index, row_type("k string"), row_type("n long"))
    row_index.seek((1,))
    state.update(("a",), (1,))
    piece = captured(row_index, state)

    state.update(("a",), (2,))
    state.update(("b",), (3,))
    state.remove(("a",))

    assert rows(piece) == [{"id": 1, "user_key.k": "a", "value.n": 1}]
    assert list(state.items()) == [(("b",), (3,))]


def test_a_map_without_entries_does_not_exist():
    """S1."""
    row_index = RowIndex()
    state = MapState("s", row_index, row_type("k string"), row_type("n long"))
    row_index.seek((1,))
    state.update(("a",), (1,))
    state.remove(("a",))
    row_index.settle()

    assert not state.exists()
    assert len(row_index) == 0


@given(st.dictionaries(st.integers(0, 50), st.lists(st.text(), min_size=1), max_size=20))
def test_lists_survive_a_file(lists):
    """S1, S9."""
    row_index, again = RowIndex(), RowIndex()
    state, restored = (ListState("s", place, row_type("t string")) for place in (row_index, again))
    for key, texts in lists.items():
        row_index.seek((key,))
        state.extend([(text,) for text in texts])

    refill(captured(row_index, state), again, restored)

    for key, texts in lists.items():
        again.seek((key,))
        assert [text for (text,) in restored.get()] == texts


class SharedRows(RuleBasedStateMachine):
    """S3: whatever is written after it, a snapshot shows the moment of its capture."""

    keys = st.integers(0, 3 * CHUNK_ROWS)

    def __init__(self):
        super().__init__()
        self.row_index, self.state = value_state()
        self.model = {}
        self.snapshots = []

    @rule(key=keys, value=st.integers(0, 9))
    def update(self, key, value):
        self.row_index.seek((key,))
        self.state.update((value,))
        self.model[key] = value

    @rule(key=keys)
    def clear(self, key):
        self.row_index.seek((key,))
        self.state.clear()
        self.row_index.settle()
        self.model.pop(key, None)

    @rule()
    def capture(self):
        self.snapshots.append((captured(self.row_index, self.state), dict(self.model)))

    @invariant()
    def snapshots_are_as_they_were(self):
        for piece, model in self.snapshots[-2:]:
            assert {row["id"]: row["value.n"] for row in rows(piece)} == model

    @invariant()
    def only_keys_with_state_have_rows(self):
        assert len(self.row_index) == len(self.model)


TestSharedRows = SharedRows.TestCase
