"""A savepoint of an older release is restored by this one, at any width, value by value."""

import shutil
from collections import defaultdict

import pytest

from described_streams import nowhere
from golden_job import NOWHERE, golden_stream
from golden_savepoint import EXPECTED, GOLDEN
from weir.connectors.built_in_formats import built_in
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.rescale import assign_state
from weir.core.restore_decision import Facts, RestoreFrom, RestoreRequest, resolve
from weir.core.snapshots import Manifest
from weir.dataflow.formats import Formats
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.reader import StreamReader
from weir.dataflow.writer import Session
from weir.ports.operators import RestoredState, TaskInfo
from weir.ports.sources import CheckpointedSplit
from weir.slot.operator_factory import operator_for
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import manifests, state_files
from weir.storage.stores import store_for

WIDTHS = [1, 2, 3]


class Sessionless:
    """As much of a session as it takes to describe the job."""

    @property
    def readStream(self):  # noqa: N802 - PySpark's name
        formats = Formats(built_in().sources, {"nowhere": nowhere})
        return StreamReader(Session(formats, submit=lambda written: written))


def graph_of_width(parallelism):
    written = golden_stream(Sessionless()).writeStream.format("nowhere").uid("files").finished()
    return build((written,), GraphDefaults(parallelism, 8))


class Restored:
    """The golden job at some width, each subtask as its slot would restore it."""

    def __init__(self, folder, parallelism):
        self.store = store_for("file://")
        self.manifest = manifests.read(self.store, f"file://{folder}/_metadata")
        assert isinstance(self.manifest, Manifest), self.manifest
        self.graph = graph_of_width(parallelism)
        self.parallelism = parallelism
        self.state_assignments = assign_state(self.manifest, self.graph.topology)

    def operators(self, uid):
        return [self.operator(SubtaskId(OperatorId(uid), at)) for at in range(self.parallelism)]

    def operator(self, subtask):
        place = TaskInfo(subtask, self.parallelism, 8, 2, 1, lambda: Millis(1_000))
        operator = operator_for(self.graph.by_id[subtask.operator], place, MemoryBackend)
        operator.restore(self.restored_state(subtask))
        return operator

    def restored_state(self, subtask):
        share = self.state_assignments[subtask]
        lists = defaultdict(list)
        for one in share.lists:
            lists[one.handle.name] += read_list(self.fetch(one.handle), one.first, one.stop)
        return RestoredState([(h.groups, self.fetch(h)) for h in share.keyed], lists)

    def fetch(self, handle):
        return state_files.fetch(self.store, handle.file)


def kept(operators, state):
    """The rows of one state, as the restored operators would write them down again."""
    found = [piece for operator in operators for piece in operator.capture(CheckpointId(9)).keyed]
    files = [(piece.groups, piece.write()) for piece in found]
    return [
        row
        for groups, data in files
        if header_of(data, groups).name == state
        for batch in rows_of([data], groups)
        for row in batch.to_pylist()
    ]


@pytest.fixture(params=WIDTHS)
def restored(request):
    return Restored(GOLDEN, request.param)


def test_a_driver_of_the_same_job_accepts_the_savepoint(restored):
    """S8, S10, C15: the manifest is read and nothing in it is without an owner."""
    path = f"file://{GOLDEN}/_metadata"
    facts = Facts((), {path: restored.manifest})

    assert isinstance(
        resolve(facts, RestoreRequest("next", path), restored.graph.topology), RestoreFrom
    )


def test_a_processor_finds_its_values_lists_maps_and_timers(restored):
    """S1, S8, S11: each key has what the older release kept for it."""
    operators = restored.operators("each")

    totals, seen, parities, timers = (
        kept(operators, state) for state in ("total", "seen", "parities", "$timers")
    )
    assert {str(r["key"]): [r["value.total"], r["value.rows"]] for r in totals} == EXPECTED["total"]
    for key, values in EXPECTED["seen"].items():
        assert sorted(r["value.value"] for r in seen if str(r["key"]) == key) == values
    for key, counts in EXPECTED["parities"].items():
        found = [r for r in parities if str(r["key"]) == key]
        assert {r["user_key.parity"]: r["value.rows"] for r in found} == counts
    assert {str(r["key"]): r["timer.expires_at"] for r in timers} == EXPECTED["timers"]


def test_an_aggregation_finds_its_sums(restored):
    """S1, S8, S11: running aggregates go on where they were."""
    rows = kept(restored.operators("sums"), "aggregates")

    assert {str(r["key"]): [r["sum(value)"], r["count(*)"]] for r in rows} == EXPECTED["total"]


def test_a_source_goes_on_at_its_positions(restored):
    """S1, R5: every split is read by one subtask, from where it was."""
    items = [
        item
        for operator in restored.operators("rows")
        for piece in operator.capture(CheckpointId(9)).lists
        for item in piece.items
    ]

    positions = [(kept.split, kept.position) for kept in map(CheckpointedSplit.decode, items)]
    assert sorted(positions) == sorted(EXPECTED["positions"].items())


def test_open_transactions_and_the_number_of_the_last_commit_are_known(restored):
    """C5, S1: the driver can commit or abort what the older release had sealed."""
    sealed = [t for snapshot in restored.manifest.snapshots for t in snapshot.transactions]

    assert [(t.sink, t.checkpoint) for t in sealed] == [("files", 2), ("files", 2)]
    assert [ledger.sink for ledger in restored.manifest.ledgers] == ["files"]


def test_the_savepoint_can_be_moved_and_knows_no_machine(tmp_path):
    """S10: it is found whole where it is now, and names no other place."""
    shutil.copytree(GOLDEN, tmp_path / "elsewhere")
    moved = Restored(tmp_path / "elsewhere", 2)

    paths = [file.path for file in moved.manifest.files()]
    assert paths
    assert all(path.startswith(f"file://{tmp_path}/elsewhere/") for path in paths)
    assert kept(moved.operators("sums"), "aggregates")
    for file in GOLDEN.iterdir():
        assert b"file:///" not in file.read_bytes().replace(NOWHERE.encode(), b"")
