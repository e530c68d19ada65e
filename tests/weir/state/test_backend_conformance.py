"""Every state backend keeps the same promises, and restores what another one wrote."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from captured_state import MAX_PARALLELISM, a_place, whole, written
from weir.core.ids import CheckpointId, Millis
from weir.core.key_groups import range_of
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.keyed_state import TIMERS, TimeMode
from weir.ports.operators import RestoredState
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.row_types import RowType

WORD = (pa.field("word", pa.string()),)


def rows_of(ddl):
    return RowType("state 's'", schema_of(ddl))


def at(backend, word):
    backend.seek((word,))


class Declared:
    """A backend with one state of each kind."""

    def __init__(self, make, place=None, ttl_ms=None, mode=TimeMode.EVENT_TIME):
        self.backend = make(place or a_place(), WORD)
        self.timers = self.backend.timers(mode)
        self.value = self.backend.value_state("total", rows_of("n long, t string"), ttl_ms)
        self.list = self.backend.list_state("seen", rows_of("n long"), ttl_ms)
        self.map = self.backend.map_state("by_day", rows_of("d date"), rows_of("n double"), ttl_ms)

    def restored(self, files, now=0):
        self.backend.cursor.now = Millis(now)
        self.unknown = self.backend.restore(RestoredState(keyed=files))
        return self

    def content(self, words):
        """All that can be read of these keys."""
        found = {}
        for word in words:
            self.backend.prefetch([(word,)])
            at(self.backend, word)
            found[word] = (
                self.value.get(),
                list(self.list.get()),
                dict(self.map.items()),
                list(self.timers.of_key()),
            )
            self.backend.settle()
        return found

    def fill(self, word, number):
        at(self.backend, word)
        self.value.update((number, f"text {number}"))
        self.list.extend([(number,), (number + 1,), (number - 1,)])
        self.map.update((date(2026, 1, 1 + number % 20),), (number / 2,))
        self.map.update((date(2025, 1, 1),), (0.5,))
        self.timers.register(number * 10)
        self.timers.register(number * 10 + 5)


WORDS = [*(f"w{number}" for number in range(40)), "", "ä\0b", None]


def filled(make, place=None, **options):
    declared = Declared(make, place, **options)
    declared.backend.prefetch([(word,) for word in WORDS])
    for number, word in enumerate(WORDS):
        declared.fill(word, number)
    return declared


def test_values_lists_maps_and_timers_of_a_key_are_its_own(make_backend):
    """S1 S14: and another key has none of them."""
    declared = Declared(make_backend)
    declared.fill("a", 1)
    declared.fill("b", 7)
    at(declared.backend, "a")
    declared.list.append((9,))
    declared.map.remove((date(2025, 1, 1),))

    assert declared.content(["a", "b", "c"]) == {
        "a": ((1, "text 1"), [(1,), (2,), (0,), (9,)], {(date(2026, 1, 2),): (0.5,)}, [10, 15]),
        "b": (
            (7, "text 7"),
            [(7,), (8,), (6,)],
            {(date(2026, 1, 8),): (3.5,), (date(2025, 1, 1),): (0.5,)},
            [70, 75],
        ),
        "c": (None, [], {}, []),
    }


def test_what_is_cleared_is_gone(make_backend):
    """S1 S14."""
    declared = filled(make_backend)
    at(declared.backend, "w3")
    for state in (declared.value, declared.list, declared.map):
        assert state.exists()
        state.clear()
        assert not state.exists()
    for expiry in list(declared.timers.of_key()):
        declared.timers.delete(expiry)
    declared.backend.settle()

    assert declared.content(["w3"]) == {"w3": (None, [], {}, [])}
    assert declared.backend.keys_with("total") == unordered(
        [(word,) for word in WORDS if word != "w3"]
    )


def unordered(keys):
    class AnyOrder(list):
        def __eq__(self, other):
            return sorted(map(repr, self)) == sorted(map(repr, other))

        __hash__ = None

    return AnyOrder(keys)


def test_a_list_read_before_an_append_does_not_show_it(make_backend):
    """S1 S14: nor does a map that changes while it is read."""
    declared = Declared(make_backend)
    declared.fill("a", 1)
    rows, entries = declared.list.get(), declared.map.items()
    declared.list.append((5,))
    declared.map.clear()

    assert list(rows) == [(1,), (2,), (0,)]
    assert len(list(entries)) == 2


def test_put_replaces_a_list(make_backend):
    """S1 S14."""
    declared = Declared(make_backend)
    declared.fill("a", 1)
    declared.list.put([(8,)])
    declared.list.append((7,))

    assert list(declared.list.get()) == [(8,), (7,)]
    assert declared.map.value((date(2025, 1, 1),)) == (0.5,)
    assert declared.map.contains((date(2025, 1, 1),))
    assert not declared.map.contains((date(2025, 1, 2),))


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("n tinyint, m smallint, o int", (-128, 7, None)),
        ("n double, m float", (-0.0, 1.5)),
        ("n boolean, m string", (True, "häuser 🏠")),
        ("n binary", (b"\0\xff",)),
        ("n decimal(10,2)", (Decimal("-1.50"),)),
        ("n timestamp, m timestamp_ntz", (datetime(1960, 1, 2, tzinfo=UTC), datetime(2026, 1, 2))),  # noqa: DTZ001
        ("n array<int>, m map<string,array<int>>", ([1, None], {"a": [1], "b": None})),
        ("n struct<a:int,b:string>", ((1, None),)),
        ("n array<struct<a:int>>", (None,)),
    ],
)
def test_a_value_comes_back_as_its_declared_type(make_backend, ddl, value):
    """S1 S14: at once, and from a file."""
    backend = make_backend(a_place(), WORD)
    state = backend.value_state("s", rows_of(ddl))
    at(backend, "a")
    state.update(value)
    files = written(backend)
    again = make_backend(a_place(), WORD)
    restored = again.value_state("s", rows_of(ddl))
    again.restore(RestoredState(keyed=files))
    at(again, "a")

    assert state.get() == value
    assert restored.get() == value
    assert repr(restored.get()) == repr(value)


@pytest.mark.parametrize("key", [-0.0, float("nan")])
def test_doubles_that_sql_calls_one_key_are_one_key(make_backend, key):
    """S14: also as the user key of a map, where Python agrees."""
    backend = make_backend(a_place(), (pa.field("d", pa.float64()),))
    state = backend.value_state("s", rows_of("n long"))
    backend.prefetch([(key,)])
    backend.seek((key,))
    state.update((1,))
    files = written(backend)
    same = 0.0 if key == 0 else key
    backend.seek((same,))

    assert state.get() == (1,)
    assert len(files) == 1


def test_timers_come_in_the_order_of_their_times(make_backend):
    """A11 S14: however many there are, and whatever is set and deleted in between."""
    declared = Declared(make_backend)
    times = [(number * 7919) % 10_007 - 3_000 for number in range(5_000)]
    for number, expiry in enumerate(times):
        at(declared.backend, f"k{number % 100}")
        declared.timers.register(expiry)
    for number in range(0, 5_000, 3):
        at(declared.backend, f"k{number % 100}")
        declared.timers.delete(times[number])
    left = sorted(expiry for number, expiry in enumerate(times) if number % 3)
    fired = []
    while (earliest := declared.timers.earliest()) is not None:
        assert declared.timers.is_due(earliest)
        assert not declared.timers.is_due(Millis(earliest - 1))
        _, expiry = declared.timers.seek_earliest()
        assert expiry in list(declared.timers.of_key())
        declared.timers.delete(expiry)
        fired.append(expiry)
        if len(fired) == 2_000:
            declared.timers.register(expiry)
            left = sorted([*left, expiry])

    assert fired == left


def test_timers_are_set_again_by_a_restore(make_backend):
    """A11 S14."""
    files = written(filled(make_backend).backend)
    restored = Declared(make_backend).restored(files)
    fired = []
    while restored.timers.earliest() is not None:
        key, expiry = restored.timers.seek_earliest()
        fired.append((expiry, *key))
        restored.timers.delete(expiry)

    expected = [(n * 10 + more, word) for n, word in enumerate(WORDS) for more in (0, 5)]
    assert fired == expected


def test_timers_of_another_time_mode_are_refused(make_backend):
    """U3 S14."""
    files = written(filled(make_backend).backend)
    other = Declared(make_backend, mode=TimeMode.PROCESSING_TIME)

    with pytest.raises(JobRejected, match="set the time mode back to EventTime"):
        other.restored(files)


def test_values_expire_and_are_swept(make_backend):
    """S1 S14: each value, element and entry by itself, at its millisecond."""
    declared = Declared(make_backend, ttl_ms=100)
    declared.fill("a", 1)
    declared.backend.cursor.now = Millis(60)
    at(declared.backend, "a")
    declared.list.append((9,))
    declared.map.update((date(2025, 1, 1),), (1.5,))
    declared.backend.cursor.now = Millis(99)
    assert declared.value.exists()
    declared.backend.cursor.now = Millis(100)

    assert declared.content(["a"]) == {"a": (None, [(9,)], {(date(2025, 1, 1),): (1.5,)}, [10, 15])}
    files = written(declared.backend)
    assert {s.name: s.table.num_rows for s in map(whole, files)} == {
        "total": 0,
        "seen": 1,
        "by_day": 1,
        TIMERS: 2,
    }
    declared.backend.cursor.now = Millis(160)
    for _ in range(3):
        declared.backend.expire()
    assert declared.backend.keys_with("seen") == []


def test_values_of_before_a_time_to_live_begin_to_age(make_backend):
    """S12 S14."""
    files = written(filled(make_backend).backend)
    restored = Declared(make_backend, ttl_ms=100).restored(files, now=1_000)

    restored.backend.cursor.now = Millis(1_099)
    assert restored.content(WORDS) == filled(make_backend).content(WORDS)
    restored.backend.cursor.now = Millis(1_100)
    assert restored.content(["w1"])["w1"][:3] == (None, [], {})


def test_a_capture_does_not_see_what_happens_after_it(make_backend):
    """S3 C1 S14: though it is written afterwards."""
    declared = filled(make_backend)
    before = declared.content(WORDS)
    captured = declared.backend.capture(CheckpointId(1))
    for number, word in enumerate(WORDS):
        declared.fill(word, number + 100)
    at(declared.backend, "w1")
    declared.value.clear()
    declared.map.clear()
    files = [(piece.groups, piece.write()) for piece in captured.keyed]
    captured.release()

    assert Declared(make_backend).restored(files).content(WORDS) == before
    assert declared.content(["w1"])["w1"][0] is None


def test_only_the_backend_in_memory_keeps_old_versions_in_memory(rocksdb_backends):
    """R7 S14: the budget of a slot's memory goes by it."""
    for make, is_in_memory in ((MemoryBackend, True), (rocksdb_backends, False)):
        captured = filled(make).backend.capture(CheckpointId(1))
        captured.release()

        assert captured.keyed
        assert captured.is_in_memory is is_in_memory


def test_captures_that_overlap_keep_their_own_moments(make_backend):
    """S3 C1 S14: the older one is written last, after the newer one was taken."""
    declared = filled(make_backend)
    captures = []
    for more in (0, 100, 200):
        for number, word in enumerate(WORDS):
            declared.fill(word, number + more)
        captures.append((declared.content(WORDS), declared.backend.capture(CheckpointId(1))))
    for content, captured in reversed(captures):
        files = [(piece.groups, piece.write()) for piece in captured.keyed]
        captured.release()

        assert Declared(make_backend).restored(files).content(WORDS) == content


def test_a_capture_can_be_written_when_the_subtask_has_ended(make_backend):
    """S3 S14: an upload may take longer than its subtask."""
    declared = filled(make_backend)
    before = declared.content(WORDS)
    captured = declared.backend.capture(CheckpointId(1))
    declared.backend.close()
    files = [(piece.groups, piece.write()) for piece in captured.keyed]
    captured.release()

    assert Declared(make_backend).restored(files).content(WORDS) == before


def test_nothing_is_captured_of_no_keys(make_backend):
    """S2 S14."""
    assert Declared(make_backend).backend.capture(CheckpointId(1)).keyed == ()


def test_a_dropped_state_is_in_no_snapshot(make_backend):
    """S12 S14."""
    declared = filled(make_backend)
    declared.backend.drop("seen")
    files = written(declared.backend)
    restored = Declared(make_backend).restored(files)

    assert sorted(state.name for state in map(whole, files)) == [TIMERS, "by_day", "total"]
    assert restored.content(["w1"])["w1"][1] == []


def test_undeclared_states_are_named(make_backend):
    """S12 S14."""
    backend = make_backend(a_place(), WORD)
    backend.value_state("total", rows_of("n long, t string"))

    unknown = backend.restore(RestoredState(keyed=written(filled(make_backend).backend)))

    assert sorted(unknown) == [TIMERS, "by_day", "seen"]


def test_state_evolves_with_its_declaration(make_backend):
    """S12 S14: a field is added, one dropped, a number widened."""
    files = written(filled(make_backend).backend)
    backend = make_backend(a_place(), WORD)
    value = backend.value_state("total", rows_of("n decimal(20,0), more string"))
    backend.restore(RestoredState(keyed=files))
    at(backend, "w3")

    assert value.get() == (Decimal(3), None)
    narrow = make_backend(a_place(), WORD)
    narrow.value_state("total", rows_of("n int"))
    with pytest.raises(JobRejected, match="state 'total' cannot be read as it is declared now"):
        narrow.restore(RestoredState(keyed=files))


@pytest.mark.parametrize("parallelism", range(1, 9))
def test_state_moves_between_parallelisms(make_backend, parallelism):
    """S11 S10 S14: restore after capture is the identity, at every parallelism."""
    files = written(filled(make_backend).backend)
    parts = []
    for index in range(parallelism):
        groups = range_of(index, parallelism, MAX_PARALLELISM)
        part = Declared(make_backend, a_place(index, parallelism))
        parts += written(part.restored([(groups, data) for _, data in files]).backend)
    together = Declared(make_backend).restored(parts)

    assert together.content(WORDS) == filled(make_backend).content(WORDS)


def test_one_backend_restores_what_another_wrote(make_backend, make_other_backend):
    """S10 S14: a job switches its backend through a savepoint."""
    files = written(filled(make_backend).backend)
    restored = Declared(make_other_backend).restored(files)

    assert restored.content(WORDS) == filled(make_backend).content(WORDS)
    assert [s.table.schema for s in map(whole, files)] == [
        s.table.schema for s in map(whole, written(restored.backend))
    ]
