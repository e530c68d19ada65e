"""A job that is rescaled twice adds to what it has restored, and is restored from that."""

import pytest

from counting_job import COUNT, SPLITS, a_counting_graph, expected_counts
from fake_connectors import READ, FakeSource
from in_process_job import InProcessJob, all_free
from weir.core.changelog import ChangelogPolicy
from weir.core.policy import Policy
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind, KeyGroupRange
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import state_files
from weir.storage.inspection import StateFileReaders, describe, find

OPENING = StateFileReaders(header_of, read_list)
LOGGED = ChangelogPolicy(600_000, 5 << 20)
WIDTHS = (2, 3, 2, 2)


@pytest.mark.parametrize("changelog", [None, LOGGED], ids=["layers", "changelog"])
def test_old_rows_of_a_file_that_was_split_up_do_not_come_back(tmp_path, changelog):
    """S4, S5, S11: the file is in the snapshots of several subtasks, and each has a part of it."""
    source = FakeSource({split: [] for split in SPLITS}, is_endless=True)
    storage = SnapshotStorageSettings(
        f"file://{tmp_path}", 0, 0, is_incremental=True, changelog=changelog
    )
    job = InProcessJob(storage, lambda width: a_counting_graph(source, width))
    source.feed(*range(300), split=SPLITS[0])
    for number, width in enumerate(WIDTHS):
        request = RestoreRequest(f"deployment-{number}", "", False)  # noqa: FBT003
        job.start(Policy(incremental=True), width, request, all_free(*SPLITS))
        for low in (0, 100, 200):
            first = low + 20 * number
            source.feed(*range(first, first + 20), split=SPLITS[0])
            job.until_running()
            job.settle(3)
            job.answer(job.ask(CheckpointKind.CHECKPOINT, ""))
            job.settle(3)

    newest = job.driver.job.coordinator.checkpoints.completed[-1].manifest
    found = describe(job.store, find(job.store, newest.location), OPENING)
    (state,) = found.by_uid[COUNT].keyed
    counted = {n: count for part in state.parts for n, count in rows_in(job.store, part)}
    assert counted == expected_counts(source, found.by_uid[READ].positions)[COUNT]


def rows_in(store, part):
    files = [state_files.fetch(store, handle.file) for handle in part]
    for batch in rows_of(files, KeyGroupRange(*part[0].groups)):
        yield from zip(
            batch.column("n").to_pylist(), batch.column("count(*)").to_pylist(), strict=True
        )
