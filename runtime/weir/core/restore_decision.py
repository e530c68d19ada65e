"""Decides what a starting driver restores from, by what storage holds, or refuses with a reason.

The driver reads the log first, this module decides what to restore, and the driver's epoch entry
records it. A driver of the same submission as its predecessor continues from the newest committing
checkpoint, regardless of the savepoint it first started from. If its submission was being stopped,
it only repeats the commits. A new submission that is given the savepoint with which the last one
stopped continues the line of checkpoints and owns them. A savepoint, or a checkpoint of another
graph, is checked strictly: state that no operator would own is refused, not dropped (spec C15).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged, Entry, EpochTaken, IdsReserved, JobClosed
from weir.core.snapshots import CheckpointKind, Manifest
from weir.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Damaged:
    """A manifest that is missing, unreadable, or does not match its checksum."""

    why: str


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What the submission asked for."""

    deployment: str
    path: str = ""
    """A savepoint or retained checkpoint; empty: the newest in the log."""
    claims: bool = False
    allow_non_restored: bool = False
    without_in_flight_of: CheckpointId = NO_CHECKPOINT
    at_least: CheckpointId = NO_CHECKPOINT
    """Nothing older than this is acceptable."""
    fresh: bool = False
    """Start without state, even if the log has checkpoints."""
    takes_over: bool = False
    """Replace the driver of another submission even while that driver lives."""
    reruns: bool = False
    """Run a job that has finished once more, from its beginning."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read from storage: the log to its end, and the manifests that matter."""

    entries: tuple[tuple[int, Entry], ...]
    manifests: Mapping[str, Manifest | Damaged]


@dataclass(frozen=True, slots=True)
class StartFresh:
    """Nothing to restore from, and nothing was asked for."""


@dataclass(frozen=True, slots=True)
class RestoreFrom:
    """Restore from this one. What is owned is deleted when newer ones subsume it."""

    manifest: Manifest
    path: str
    goes_on: bool
    owned: tuple[tuple[int, Manifest], ...]
    """With the numbers of their entries, oldest first; the restored one may be among them."""
    without_in_flight: bool = False


@dataclass(frozen=True, slots=True)
class ReplayCommit:
    """The job has stopped with this savepoint; only its commits may still be owed."""

    manifest: Manifest
    path: str
    owned: tuple[tuple[int, Manifest], ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Starting would lose or repeat something."""

    subject: str
    reason: str
    remedy: str


Resolution = StartFresh | RestoreFrom | ReplayCommit | Refuse


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint that the log offers, oldest first."""

    index: int
    path: str
    checkpoint: CheckpointId
    kind: CheckpointKind
    owned: bool


def candidates(entries: tuple[tuple[int, Entry], ...]) -> tuple[Candidate, ...]:
    """The line of checkpoints that lead to the log's end; a new beginning starts a new line.

    A plain savepoint is a copy for the user and no part of the line. The savepoint that a job
    stopped with outlives the job, even where its checkpoints do not. Earlier versions could log an
    older checkpoint behind that savepoint, so the order is that of the ids.
    """
    line: list[Candidate] = []
    for index, entry in entries:
        match entry:
            case EpochTaken(goes_on=False):
                line = []
                if entry.restoring:
                    kind = CheckpointKind.CHECKPOINT
                    line = [Candidate(index, entry.restoring, NO_CHECKPOINT, kind, entry.claims)]
            case CheckpointLogged() if entry.kind.commits:
                owned = not entry.kind.is_savepoint
                line.append(Candidate(index, entry.manifest, entry.checkpoint, entry.kind, owned))
                line.sort(key=lambda candidate: candidate.checkpoint)
            case JobClosed(retains=False):
                line = [candidate for candidate in line[-1:] if candidate.kind.is_savepoint]
            case EpochTaken() | CheckpointLogged() | IdsReserved() | JobClosed():
                pass
    return tuple(line)


def resolve(facts: Facts, restore_request: RestoreRequest, topology: Topology) -> Resolution:
    if begins_without_state(facts.entries, restore_request):
        return StartFresh()
    is_same = _is_served_last(facts.entries, restore_request.deployment)
    line = candidates(facts.entries)
    if restore_request.path and not is_same and not _ends_with(facts, line, restore_request):
        return _restore_wished(facts, restore_request, topology)
    if not line:
        return _start_fresh(restore_request)
    newest = line[-1]
    manifest = facts.manifests.get(newest.path, Damaged("it was not found"))
    if isinstance(manifest, Damaged):
        return _refuse_damaged(newest.path, manifest, [c.path for c in line[:-1]])
    owned = _owned(facts, line)
    served = _served_since(facts, newest.index)
    if newest.kind.is_synchronous and served == {restore_request.deployment}:
        return ReplayCommit(manifest, newest.path, owned)
    restore = RestoreFrom(manifest, newest.path, goes_on=True, owned=owned)
    return _judged(restore, restore_request, topology)


def begins_without_state(
    entries: tuple[tuple[int, Entry], ...], restore_request: RestoreRequest
) -> bool:
    """Whether the log's checkpoints are ignored: by a new submission that starts without state.

    Its later drivers go on from what it has completed itself.
    """
    names_state = restore_request.path or restore_request.at_least
    is_wanted = restore_request.fresh or (
        restore_request.reruns and not names_state and _has_finished(entries)
    )
    return is_wanted and not _is_served_last(entries, restore_request.deployment)


def is_finished(entries: tuple[tuple[int, Entry], ...], restore_request: RestoreRequest) -> bool:
    """Whether an earlier submission has done all the work, and this one does not ask for more.

    Its sources have ended and its checkpoints are deleted: to start it again would repeat all of
    its output.
    """
    asks_for_more = restore_request.reruns or restore_request.fresh or restore_request.path
    return _has_finished(entries) and not asks_for_more


def _has_finished(entries: tuple[tuple[int, Entry], ...]) -> bool:
    last = entries[-1][1] if entries else None
    return isinstance(last, JobClosed) and last.status is JobStatus.FINISHED


def _is_served_last(entries: tuple[tuple[int, Entry], ...], deployment: str) -> bool:
    """Whether the log's last driver served this very submission."""
    served = [entry.deployment for _, entry in entries if isinstance(entry, EpochTaken)]
    return served[-1:] == [deployment]


def _served_since(facts: Facts, index: int) -> set[str]:
    """The submission of the driver that wrote this entry, and those of all later drivers."""
    taken = [(i, e.deployment) for i, e in facts.entries if isinstance(e, EpochTaken)]
    first = max((i for i, _ in taken if i < index), default=index)
    return {deployment for i, deployment in taken if i >= first}


def _ends_with(facts: Facts, line: tuple[Candidate, ...], restore_request: RestoreRequest) -> bool:
    """Whether the path names the savepoint that the line ends with anyway.

    What is claimed is a beginning, and so is a checkpoint: unclaimed, it must not be deleted.
    """
    named = facts.manifests.get(restore_request.path)
    if not line or line[-1].owned or restore_request.claims or not isinstance(named, Manifest):
        return False
    return named == facts.manifests.get(line[-1].path)


def _start_fresh(restore_request: RestoreRequest) -> Resolution:
    if not restore_request.at_least:
        return StartFresh()
    return Refuse(
        "the job's log",
        f"it holds no checkpoint, but checkpoint {restore_request.at_least} "
        "or a newer one was required",
        "check the checkpoint directory, or allow a start without state explicitly",
    )


def _restore_wished(
    facts: Facts, restore_request: RestoreRequest, topology: Topology
) -> Resolution:
    manifest = facts.manifests.get(restore_request.path, Damaged("it was not found"))
    if isinstance(manifest, Damaged):
        return _refuse_damaged(
            restore_request.path, manifest, [c.path for c in candidates(facts.entries)]
        )
    next_index = facts.entries[-1][0] + 1 if facts.entries else 0
    owned = ((next_index, manifest),) if restore_request.claims else ()
    restore = RestoreFrom(manifest, restore_request.path, goes_on=False, owned=owned)
    return _judged(restore, restore_request, topology)


def _owned(facts: Facts, line: tuple[Candidate, ...]) -> tuple[tuple[int, Manifest], ...]:
    """Those still there; one whose manifest is gone was subsumed and deleted."""
    found = [(c.index, facts.manifests.get(c.path)) for c in line if c.owned]
    return tuple((index, m) for index, m in found if isinstance(m, Manifest))


def closed_as(entries: tuple[tuple[int, Entry], ...], deployment: str) -> JobStatus | None:
    """How this very submission ended, if it did: a driver that wakes after that has no work."""
    if not _is_served_last(entries, deployment):
        return None
    last = entries[-1][1]
    return last.status if isinstance(last, JobClosed) else None


def _refuse_damaged(path: str, damaged: Damaged, before: list[str]) -> Refuse:
    offer = f"restore from {before[-1]} by path" if before else "start without state explicitly"
    return Refuse(
        f"manifest {path}",
        f"it cannot be read: {damaged.why}",
        f"bring the file back, or {offer} and accept that newer output repeats",
    )


def _judged(
    restore: RestoreFrom, restore_request: RestoreRequest, topology: Topology
) -> Resolution:
    manifest = restore.manifest
    without = bool(restore_request.without_in_flight_of) and (
        restore_request.without_in_flight_of == manifest.checkpoint
    )
    refusal = (
        _too_old(manifest, restore_request)
        or _other_max_parallelism(manifest, topology)
        or _unclaimed_state(manifest, topology, restore_request)
        or (None if without else _moved_in_flight(manifest, topology))
    )
    if refusal is not None:
        return refusal
    return RestoreFrom(
        manifest, restore.path, restore.goes_on, restore.owned, without_in_flight=without
    )


def _too_old(manifest: Manifest, restore_request: RestoreRequest) -> Refuse | None:
    if manifest.checkpoint >= restore_request.at_least:
        return None
    return Refuse(
        f"checkpoint {manifest.checkpoint} at {manifest.location}",
        f"checkpoint {restore_request.at_least} or a newer one was required",
        "find the newer checkpoint, or lower the requirement and accept that output repeats",
    )


def _other_max_parallelism(manifest: Manifest, topology: Topology) -> Refuse | None:
    for width in manifest.widths:
        operator = topology.by_id.get(width.operator)
        if operator is not None and operator.max_parallelism != width.max_parallelism:
            return Refuse(
                f"operator {width.operator!r}",
                f"its max parallelism is {operator.max_parallelism}, but the state at "
                f"{manifest.location} was written with {width.max_parallelism}",
                f"set its max parallelism to {width.max_parallelism}",
            )
    return None


def _unclaimed_state(
    manifest: Manifest, topology: Topology, restore_request: RestoreRequest
) -> Refuse | None:
    """Strict for savepoints and for checkpoints of another graph."""
    is_own_graph = manifest.fingerprint == topology.fingerprint()
    if restore_request.allow_non_restored or (is_own_graph and not manifest.kind.is_savepoint):
        return None
    stateful = {s.subtask.operator for s in manifest.snapshots if s.transactions or any(s.pieces())}
    stateful |= {coordinator.operator for coordinator in manifest.coordinators}
    orphans = sorted(operator for operator in stateful if operator not in topology.by_id)
    if not orphans:
        return None
    return Refuse(
        f"state of operator {orphans[0]!r}",
        f"the snapshot at {manifest.location} holds it, but the job has no such uid",
        "give the operator its old uid, or set recovery.allowNonRestoredState and lose it",
    )


def _moved_in_flight(manifest: Manifest, topology: Topology) -> Refuse | None:
    caught = {h.channel.edge for s in manifest.snapshots for h in s.in_flight}
    then = _edges(manifest.fingerprint)
    now = _edges(topology.fingerprint())
    changed = sorted(edge for edge in caught if then.get(edge) != now.get(edge))
    if not changed:
        return None
    return Refuse(
        f"in-flight data of edge {changed[0]!r}",
        f"the snapshot at {manifest.location} holds rows of it, and the edge has changed",
        "take an aligned savepoint first, or restore that checkpoint without in-flight data",
    )


def _edges(fingerprint: tuple[object, ...]) -> dict[EdgeId, tuple[object, ...]]:
    edges = fingerprint[1]
    assert isinstance(edges, tuple), "a fingerprint is operators and edges"
    return {edge[0]: edge for edge in edges}
