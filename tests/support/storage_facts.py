"""What a starting driver finds in storage: the job's log, and the manifests that it names."""

from collections.abc import Iterable

from coordinated_job import CHECKPOINT, DIRECTORY, TOPOLOGY, a_manifest
from weir.core.ids import CheckpointId, Epoch
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged, Entry, EpochTaken, JobClosed
from weir.core.restore_decision import Damaged, Facts, Resolution, RestoreRequest, resolve
from weir.core.snapshots import CheckpointKind, Manifest
from weir.core.topology import Topology

OLD, NEW = "submission-1", "submission-2"
FOREIGN = "store/elsewhere/savepoint-9/_metadata"

FIRST, DRIVER = Epoch(1), "driver-a"
GIVEN_OUT = CheckpointId(33)


def epoch(
    deployment: str = OLD, *, goes_on: bool = True, restoring: str = "", claims: bool = False
) -> EpochTaken:
    return EpochTaken(FIRST, DRIVER, deployment, goes_on, restoring, claims, CheckpointId(17))


def logged(checkpoint: int, kind: CheckpointKind = CHECKPOINT) -> CheckpointLogged:
    number, manifest = CheckpointId(checkpoint), path(checkpoint)
    return CheckpointLogged(FIRST, DRIVER, number, kind, manifest, ids_until=GIVEN_OUT)


def closed(status: JobStatus = JobStatus.STOPPED, *, retains: bool = True) -> JobClosed:
    return JobClosed(FIRST, DRIVER, status, retains, GIVEN_OUT)


def path(checkpoint: int) -> str:
    return f"{DIRECTORY}/chk-{checkpoint}/_metadata"


def read(
    *entries: Entry, manifests: Iterable[tuple[str, Manifest]] = (), damaged: Iterable[str] = ()
) -> Facts:
    """Facts: entries from number 0 on; every checkpoint in the log has a sound manifest."""
    completed = [entry for entry in entries if isinstance(entry, CheckpointLogged)]
    found: dict[str, Manifest | Damaged] = {
        entry.manifest: a_manifest(entry.checkpoint, entry.kind) for entry in completed
    }
    found |= dict(manifests)
    found |= {place: Damaged("its checksum is wrong") for place in damaged}
    return Facts(tuple(enumerate(entries)), found)


def resolved(
    facts: Facts, restore_request: RestoreRequest | None = None, topology: Topology = TOPOLOGY
) -> Resolution:
    return resolve(facts, restore_request or RestoreRequest(OLD), topology)
