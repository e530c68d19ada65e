"""Random use of a backend, beside dictionaries that do the same."""

import copy
from dataclasses import replace
from itertools import count
from pathlib import Path
from shutil import copyfile
from uuid import uuid4

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

from captured_state import MAX_PARALLELISM, a_place
from logged_state import POLICY, LoggedState, logged
from weir.core.ids import CheckpointId, Millis
from weir.core.key_groups import range_of
from weir.core.rescale import NativeShare
from weir.core.snapshots import KeyGroupRange, NativeHandle, NativeState
from weir.dataflow.types import schema_of
from weir.ports.keyed_state import TimeMode
from weir.ports.operators import NativeInstance, RestoredState
from weir.state.row_types import RowType
from weir.storage.state_files import inline

KEYS = (pa.field("word", pa.string()), pa.field("n", pa.int32()))
SOME_KEYS = [("a", 1), ("a", None), ("", 1), ("a\0", 1), (None, None)]
TTL_MS = 50

keys = st.sampled_from(SOME_KEYS)
numbers = st.integers(-3, 3)


def rows_of(ddl):
    return RowType("state 's'", schema_of(ddl))


class Model:
    """What the states of all keys hold."""

    def __init__(self):
        self.values, self.lists, self.maps, self.timers = {}, {}, {}, {}

    def content(self, key, now):
        value, expires_at = self.values.get(key, (None, 0))
        alive = {u: v for u, (v, at) in self.maps.get(key, {}).items() if at > now}
        rows = list(self.lists.get(key, ()))
        return value if expires_at > now else None, rows, alive, sorted(self.timers.get(key, ()))


class Backend:
    """The same states in a backend: a value and a map with a time to live."""

    def __init__(self, make):
        self.backend = make(a_place(), KEYS)
        self.timers = self.backend.timers(TimeMode.EVENT_TIME)
        self.value = self.backend.value_state("value", rows_of("n long"), TTL_MS)
        self.list = self.backend.list_state("list", rows_of("n long"))
        self.map = self.backend.map_state("map", rows_of("t string"), rows_of("n long"), TTL_MS)

    def content(self, key):
        self.backend.seek(key)
        found = (
            self.value.get(),
            list(self.list.get()),
            dict(self.map.items()),
            list(self.timers.of_key()),
        )
        if self.backend.cursor.may_be_empty:
            self.backend.settle()
        return found


class Machine(RuleBasedStateMachine):
    """A batch announces some keys; between batches there are captures, sweeps and restores."""

    make = None

    @initialize()
    def begin(self):
        self.model, self.tested = Model(), Backend(self.make)
        self.now = 0
        self.held = None
        self.checkpoints = count(1)

    def at(self, key):
        self.tested.backend.seek(key)
        return self.tested

    @rule(some=st.lists(keys, unique=True), passed=st.integers(0, 30))
    def begin_batch(self, some, passed):
        self.now += passed
        self.tested.backend.cursor.now = Millis(self.now)
        self.tested.backend.expire()
        self.tested.backend.prefetch(some)

    @rule(key=keys, n=numbers)
    def update_value(self, key, n):
        self.at(key).value.update((n,))
        self.model.values[key] = ((n,), self.now + TTL_MS)

    @rule(key=keys)
    def clear_value(self, key):
        self.at(key).value.clear()
        self.tested.backend.settle()
        self.model.values.pop(key, None)

    @rule(key=keys, more=st.lists(numbers, max_size=3), replaces=st.booleans())
    def write_list(self, key, more, replaces):
        rows = [(n,) for n in more]
        state = self.at(key).list
        (state.put if replaces else state.extend)(rows)
        self.tested.backend.settle()
        self.model.lists[key] = [*([] if replaces else self.model.lists.get(key, ())), *rows]

    @rule(key=keys, user_key=st.sampled_from(["", "x", "xy"]), n=numbers)
    def update_map(self, key, user_key, n):
        self.at(key).map.update((user_key,), (n,))
        self.model.maps.setdefault(key, {})[user_key,] = ((n,), self.now + TTL_MS)

    @rule(key=keys, user_key=st.sampled_from(["", "x", "xy"]))
    def remove_from_map(self, key, user_key):
        self.at(key).map.remove((user_key,))
        self.tested.backend.settle()
        self.model.maps.get(key, {}).pop((user_key,), None)

    @rule(key=keys)
    def clear_map(self, key):
        self.at(key).map.clear()
        self.tested.backend.settle()
        self.model.maps.pop(key, None)

    @rule(key=keys, expiry=numbers, is_set=st.booleans())
    def change_timer(self, key, expiry, is_set):
        timers = self.at(key).timers
        (timers.register if is_set else timers.delete)(expiry)
        self.tested.backend.settle()
        known = self.model.timers.setdefault(key, set())
        (known.add if is_set else known.discard)(expiry)

    @rule()
    def fire(self):
        earliest = min((t for times in self.model.timers.values() for t in times), default=None)
        assert self.tested.timers.earliest() == earliest
        if earliest is not None:
            key, expiry = self.tested.timers.seek_earliest()
            self.tested.timers.delete(expiry)
            self.tested.backend.settle()
            self.model.timers[key].remove(expiry)

    @rule(key=keys)
    def read(self, key):
        assert self.tested.content(key) == self.model.content(key, self.now)

    @precondition(lambda self: self.held is None)
    @rule()
    def capture(self):
        captured = self.tested.backend.capture(CheckpointId(next(self.checkpoints)))
        self.held = captured, copy.deepcopy(self.model), self.now

    @precondition(lambda self: self.held is not None)
    @rule()
    def fail_and_restore(self):
        """All since the capture is undone, though it was written only now."""
        captured, self.model, self.now = self.held
        self.held = None
        before, self.tested = self.tested, Backend(self.make)
        self.tested.backend.cursor.now = Millis(self.now)
        self.restored_in(self.tested.backend, captured)
        before.backend.close()
        for key in SOME_KEYS:
            assert self.tested.content(key) == self.model.content(key, self.now)

    def restored_in(self, backend, captured):
        """What was captured, in a new backend."""
        files = [(piece.groups, piece.write()) for piece in captured.keyed]
        captured.release()
        backend.restore(RestoredState(keyed=files))

    def teardown(self):
        if self.held is not None:
            self.held[0].release()
        self.tested.backend.close()


class NativeMachine(Machine):
    """The captures are the backend's own files, in two halves that are put together again."""

    directory = None

    def restored_in(self, backend, captured):
        instances = []
        if captured.native is not None:
            content = captured.native.write()
            states = tuple(
                NativeState(s.name, s.number, inline(s.schema.to_pybytes()), s.next_ordinal)
                for s in content.states
            )
            handle = NativeHandle(captured.native.groups, "rocksdb", 1, (), states)
            middle = MAX_PARALLELISM // 2
            for half in (KeyGroupRange(0, middle - 1), KeyGroupRange(middle, MAX_PARALLELISM - 1)):
                place = Path(self.directory) / uuid4().hex
                place.mkdir()
                for file in content.files:
                    copyfile(file.path, place / file.name)
                instances.append(NativeInstance(NativeShare(half, handle), str(place)))
        captured.release()
        backend.restore(RestoredState(native=instances))


@pytest.mark.timeout(240)
def test_native_snapshots_do_what_dictionaries_do(rocksdb_backends, tmp_path):
    """S2 S11 S14: clipped and copied, while changes after the barrier are under way."""

    def make(place, keys):
        return rocksdb_backends(replace(place, is_incremental=True), keys)

    machine = type(
        "NativeMachineOfBackend",
        (NativeMachine,),
        {"make": staticmethod(make), "directory": str(tmp_path)},
    )

    run_state_machine_as_test(
        machine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None)
    )


@pytest.mark.timeout(120)
def test_a_backend_does_what_dictionaries_do(make_backend):
    """S1 S3 S14: values, lists, maps, timers and times to live, through captures and restores."""
    machine = type("MachineOfBackend", (Machine,), {"make": staticmethod(make_backend)})

    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )


# -- with a changelog

FATES = ("completes", "completes", "aborts after the ack", "aborts before the ack")


class LoggedMachine(Machine):
    """The machine of a plain backend, with a changelog instead of one capture at a time."""

    @initialize()
    def begin(self):
        self.state = LoggedState(POLICY._replace(preemptive_bytes=4_000))
        self.model, self.now = Model(), 0
        self.held = copy.deepcopy(self.model), 0
        self.restart()

    def restart(self):
        self.tested = Backend(self.make)
        self.tested.backend.cursor.now = Millis(self.now)
        self.state.begin(self.tested.backend)

    @rule(fate=st.sampled_from(FATES), full=st.integers(0, 9))
    def capture(self, fate, full):
        self.state.checkpoint(fate=fate, full=full == 0)
        if fate == "completes":
            self.held = copy.deepcopy(self.model), self.now

    @rule(whole=st.booleans(), fails=st.booleans())
    def cut(self, whole, fails):
        self.state.cut(whole=whole, fails=fails)

    @rule()
    def fail_and_restore(self):
        """All since the newest completed checkpoint is undone."""
        self.model, self.now = copy.deepcopy(self.held[0]), self.held[1]
        self.tested.backend.close()
        self.state.end_log()
        self.restart()
        for key in SOME_KEYS:
            assert self.tested.content(key) == self.model.content(key, self.now)

    def teardown(self):
        self.tested.backend.close()


@pytest.mark.timeout(200)
def test_a_logged_backend_does_what_dictionaries_do(make_backend):
    """S5 S14: lists, maps, timers, removals and times to live, through aborts and failures."""
    machine = type(
        "LoggedMachineOf", (LoggedMachine,), {"make": staticmethod(logged(make_backend))}
    )

    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )


# -- at every parallelism


class Keyed:
    """A log over some checkpoints, with everything that a state can hold and lose."""

    def __init__(self, make):
        self.make = logged(make)
        self.state = LoggedState()
        self.tested = Backend(self.make)
        self.state.begin(self.tested.backend)
        self.keys = [(f"w{number}", number) for number in range(40)]

    def change(self, keys, number):
        for key in keys:
            self.tested.backend.seek(key)
            self.tested.value.update((number,))
            self.tested.list.extend([(number,), (number + 1,)])
            self.tested.map.update((f"u{number}",), (number,))
            self.tested.timers.register(number * 10 + key[1])

    def remove(self, keys):
        for key in keys:
            self.tested.backend.seek(key)
            self.tested.value.clear()
            self.tested.list.clear()
            self.tested.map.clear()
            for expiry in list(self.tested.timers.of_key()):
                self.tested.timers.delete(expiry)
            self.tested.backend.settle()

    def run(self):
        self.change(self.keys, 1)
        self.state.checkpoint()
        self.change(self.keys[:10], 2)
        self.state.cut()
        self.remove(self.keys[5:15])
        self.state.cut(whole=True)
        self.change(self.keys[12:18], 3)
        self.state.checkpoint(fate="aborts after the ack")
        self.remove(self.keys[30:])
        self.state.checkpoint()
        return {key: self.tested.content(key) for key in self.keys}


@pytest.mark.parametrize("parallelism", range(1, 9))
def test_a_log_is_replayed_at_every_parallelism(make_backend, parallelism):
    """S5 S11 S14: with timers, removed keys and values that age; and its subtasks log on."""
    keyed = Keyed(make_backend)
    expected = keyed.run()
    handles = []
    for index in range(parallelism):
        groups = range_of(index, parallelism, MAX_PARALLELISM)
        part = Backend(lambda _, keys, at=index: keyed.make(a_place(at, parallelism), keys))
        state = LoggedState()
        state.files = keyed.state.files
        state.made, state.number = 1_000 * (index + 1), keyed.state.number
        state.handles = tuple(h._replace(groups=groups) for h in keyed.state.handles)
        state.completed = keyed.state.completed
        state.begin(part.backend)
        state.checkpoint()
        handles += state.handles
        part.backend.close()
    together = Backend(keyed.make)
    files = [(h.groups, keyed.state.content(h.file)) for h in handles]
    together.backend.restore(RestoredState(keyed=files, checkpoint=CheckpointId(9)))

    assert {key: together.content(key) for key in keyed.keys} == expected
    assert not together.content(("w7", 7))[1], "what was removed stays away"
