"""Random use of windows and batch states in every backend, beside dictionaries that do the same."""

from datetime import datetime, timedelta
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from batch_states import KEYS, SEEN, SIDE, Model, Subtasks, a_batch, keys_batch, rows_of
from weir.core.ids import CheckpointId

SOME_KEYS = [
    ("a", 1),
    ("a", None),
    ("", 1),
    ("a\0", 1),
    (None, None),
    *(("k", n) for n in range(6)),
]
keys = st.sampled_from(SOME_KEYS)
times = st.integers(-3, 6)
numbers = st.none() | st.integers(-3, 3)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
SEEN_ROWS = pa.schema([*KEYS, *SEEN])
SIDE_ROWS = pa.schema([*KEYS, *SIDE])
tags = st.none() | st.lists(st.sampled_from([{"t": None, "p": 0.5}, {"t": "x", "p": None}, None]))


def moment(time):
    return EPOCH + timedelta(microseconds=time)


def plain(row):
    """Comparable and in any order."""
    return repr(row)


class Machine(RuleBasedStateMachine):
    """Batches come, event time passes, and failures restore with another number of subtasks."""

    makes = ()

    @initialize()
    def begin(self):
        self.model = Model()
        self.subtasks = Subtasks(self.makes[0])
        self.subtasks.restore([], 0)
        self.files, self.base = {}, None
        self.checkpoints, self.versions = count(1), count(1)

    @rule(rows=st.lists(st.tuples(keys, times, numbers), max_size=8))
    def update(self, rows):
        flat = [(*key, end, amount) for key, end, amount in rows]
        self.model.update(flat)
        found = [row for part in self.subtasks.parts for row in part.update(flat)]
        expected = [(*row[:3], *self.model.sums[row[:3]]) for row in flat]
        assert sorted(map(plain, found)) == sorted(map(plain, expected))

    @rule(until=times)
    def expire_windows(self, until):
        found = []
        for part in self.subtasks.parts:
            while portion := part.expired_windows(until):
                found += portion
        gone = {key: sums for key, sums in self.model.sums.items() if key[2] <= until}
        assert sorted(map(plain, found)) == sorted(plain((*k, *s)) for k, s in gone.items())
        self.model.sums = {k: s for k, s in self.model.sums.items() if k not in gone}

    @rule(key=keys, end=times, later=st.integers(1, 5))
    def merge(self, key, end, later):
        source, target = (*key, end), (*key, end + later)
        self.model.merge(source, target)
        found = [row for part in self.subtasks.parts for row in part.merge([source], [target])]
        assert found == [(*target, *self.model.sums[target])]

    @rule(rows=st.lists(st.tuples(keys, times, st.none() | st.floats()), max_size=6))
    def put_values(self, rows):
        flat = [(*key, moment(time), x) for key, time, x in rows]
        for part in self.subtasks.parts:
            part.seen.put(part.own(a_batch(SEEN_ROWS, flat)))
        self.model.seen |= {row[:2]: row for row in flat}

    @rule(some=st.lists(keys, max_size=4))
    def get_values(self, some):
        self.check_values(some)

    def check_values(self, some):
        for part in self.subtasks.parts:
            asked = part.own(keys_batch(some))
            found = part.seen.get(asked)
            its = [tuple(row.values()) for row in asked.to_pylist()]
            assert found.is_present.tolist() == [key in self.model.seen for key in its]
            rows = [tuple(row.values()) for row in found.rows.to_pylist()]
            assert repr(rows) == repr([self.model.seen[k] for k in its if k in self.model.seen])

    @rule(some=st.lists(keys, max_size=4))
    def remove_values(self, some):
        for part in self.subtasks.parts:
            part.seen.remove(part.own(keys_batch(some)))
        for key in some:
            self.model.seen.pop(key, None)

    @rule(until=times)
    def expire_values(self, until):
        found = self.taken_out("seen", until)
        gone = {k: row for k, row in self.model.seen.items() if row[2] <= moment(until)}
        assert sorted(map(plain, found)) == sorted(map(plain, gone.values()))
        self.model.seen = {k: row for k, row in self.model.seen.items() if k not in gone}

    @rule(rows=st.lists(st.tuples(keys, times, tags), max_size=6))
    def append(self, rows):
        flat = [(*key, time, f"{next(self.versions)}", tags, False) for key, time, tags in rows]
        for part in self.subtasks.parts:
            part.side.append(part.own(a_batch(SIDE_ROWS, flat)))
        self.model.side += flat

    @rule(some=st.lists(keys, max_size=4), marks=st.booleans())
    def match(self, some, marks):
        self.check_rows(some, marks=marks)

    def check_rows(self, some, *, marks):
        for part in self.subtasks.parts:
            asked = part.own(keys_batch(some))
            found = part.side.match(asked)
            probes = [tuple(row.values()) for row in asked.to_pylist()]
            pairs = zip(found.positions.tolist(), plain_rows(found.rows), strict=True)
            expected = [
                (at, row)
                for at, key in enumerate(probes)
                for row in self.model.side
                if row[:2] == key
            ]
            assert found.positions.tolist() == sorted(found.positions.tolist())
            assert sorted(map(plain, pairs)) == sorted(map(plain, expected))
            if marks:
                place = found.rows.schema.get_field_index("matched")
                marked = pa.array([True] * found.rows.num_rows, pa.bool_())
                part.side.put(found.rows.set_column(place, SIDE[-1], marked))
        if marks:
            self.model.side = [
                (*row[:-1], True) if row[:2] in some else row for row in self.model.side
            ]

    @rule(until=times)
    def expire_rows(self, until):
        found = self.taken_out("side", until)
        gone = [row for row in self.model.side if row[2] <= until]
        assert sorted(map(plain, found)) == sorted(map(plain, gone))
        self.model.side = [row for row in self.model.side if row[2] > until]

    def taken_out(self, name, until):
        found = []
        for part in self.subtasks.parts:
            state = getattr(part, name)
            while (portion := state.expired(until, 2)).num_rows:
                assert portion.num_rows <= 2
                found += plain_rows(portion)
                state.remove(portion)
        return found

    @rule(completes=st.booleans())
    def checkpoint(self, completes):
        self.take_checkpoint(completes=completes)

    def take_checkpoint(self, *, completes):
        """Each subtask writes what changed, where it knows that, and all of it otherwise."""
        checkpoint = next(self.checkpoints)
        written = {part.groups: part.write(checkpoint, self.base) for part in self.subtasks.parts}
        if not completes:
            return
        older, self.files = self.files, {}
        for groups, files in written.items():
            for name, (is_layer, its_groups, data) in files.items():
                below = older[groups, name] if is_layer else []
                self.files[groups, name] = [*below, (its_groups, data)]
        self.saved, self.base = self.model.copy(), checkpoint
        for part in self.subtasks.parts:
            part.backend.completed(CheckpointId(checkpoint))

    @precondition(lambda self: self.base is not None)
    @rule(parallelism=st.integers(1, 8), switches=st.booleans())
    def fail_and_restore(self, parallelism, switches):
        """All since the checkpoint is undone. Layers go on only where the subtasks stay."""
        files = [file for several in self.files.values() for file in several]
        stays = not switches and parallelism == len(self.subtasks.parts)
        self.subtasks.close()
        if switches:
            self.makes = self.makes[::-1]
        self.subtasks = Subtasks(self.makes[0], parallelism).restore(files, self.base)
        self.model = self.saved.copy()
        self.check()
        if not stays:
            self.base = None
            self.take_checkpoint(completes=True)

    def check(self):
        """All that there is."""
        sums = []
        for part in self.subtasks.parts:
            sums += rows_of(part.sums.rows(part.sums.expired(99, 1_000)))
        assert sorted(map(plain, sums)) == sorted(
            plain((*k, *s)) for k, s in self.model.sums.items()
        )
        self.check_values(SOME_KEYS)
        self.check_rows(SOME_KEYS, marks=False)

    def teardown(self):
        self.subtasks.close()


def plain_rows(batch):
    named = (
        batch.drop_columns(["state.ordinal"]) if "state.ordinal" in batch.schema.names else batch
    )
    return [tuple(row.values()) for row in named.to_pylist()]


@pytest.mark.timeout(240)
def test_windows_and_batch_states_do_what_dictionaries_do(make_backend, make_other_backend):
    """S1 S3 S4 S10 S11 S14: through layers of changes, other parallelisms and other backends."""
    makes = (make_backend, make_other_backend)
    machine = type("MachineOfBackends", (Machine,), {"makes": makes})

    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=30, deadline=None)
    )
