"""Reads what a job's log offers to restore from, down to the last byte of state."""

from collections.abc import Iterator, Mapping

from weir.core.restore_decision import Damaged, candidates
from weir.core.snapshots import Manifest, StateFile
from weir.errors import JobRejected
from weir.storage import manifests, state_files
from weir.storage.job_log_store import JobLog
from weir.storage.stores import ObjectStore, store_for

RETAINED = 2
"""So many are kept by default; the log still names older ones for a while."""


def unreadable(directory: str, storage: Mapping[str, str]) -> list[str]:
    """What could not be read of the retained checkpoints; no process may write meanwhile."""
    store = store_for(directory, storage)
    entries = JobLog(store, directory).read()
    assert entries is not None, f"the log of {directory} cannot be read to its end"
    paths = [candidate.path for candidate in candidates(entries)[-RETAINED:]]
    return [problem for path in paths for problem in _problems(store, path)]


def newest_offered(directory: str) -> str:
    """The directory of the checkpoint that the log's last line of checkpoints ends with."""
    entries = JobLog(store_for(directory), directory).read()
    assert entries is not None, f"the log of {directory} cannot be read to its end"
    return candidates(entries)[-1].path.rpartition("/")[0]


def _problems(store: ObjectStore, path: str) -> Iterator[str]:
    manifest = manifests.read(store, path)
    if isinstance(manifest, Damaged):
        yield f"{path}: {manifest.why}"
        return
    for file in _files(manifest):
        try:
            state_files.fetch(store, file)
        except JobRejected as problem:
            yield str(problem)


def _files(manifest: Manifest) -> Iterator[StateFile]:
    for snapshot in manifest.snapshots:
        yield from (handle.file for handle in snapshot.keyed)
        yield from (handle.file for handle in snapshot.lists)
        yield from (handle.file for handle in snapshot.in_flight)
