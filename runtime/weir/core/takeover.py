"""Takes a job over: what a starting driver writes into the log, and what it then knows.

Reading comes first, then one exclusive creation. If another driver was faster, everything is read
again, because what was read before is no longer the end of the log (spec C17). The driver before
may still run and delete what its newest checkpoint subsumes, so a refusal is checked the same way.

The log alone would let any driver replace any other. A restarted driver serves the same submission
and replaces its predecessor at once; a driver of another submission probes its predecessor first,
and does not replace a live one unless its settings allow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeGuard

from weir.core.coordinator import EpochState
from weir.core.coordinator.coordinator_state import OwnCheckpoints, StartPoint, Unclaimed
from weir.core.ids import CheckpointId, Epoch, OperatorId
from weir.core.log_entries import ID_BLOCK, Entry, EpochTaken, JobClosed, numbers_given
from weir.core.restore_decision import ReplayCommit, Resolution, RestoreFrom, RestoreRequest
from weir.core.snapshots import Manifest


class Liveness(StrEnum):
    """What asking a driver for its job has shown."""

    LIVES = "it answers"
    GONE = "nothing of this job listens there"
    UNKNOWN = "it cannot be asked from here, or does not answer"


@dataclass(frozen=True, slots=True)
class Claim:
    """The entry to create at this number; once it exists, the epoch is the driver's."""

    index: int
    entry: EpochTaken
    next_id: CheckpointId
    numbers: Mapping[OperatorId, int]
    """Commit numbers that are not to be given out again."""


def driver_to_probe(
    entries: tuple[tuple[int, Entry], ...], restore_request: RestoreRequest
) -> EpochTaken | None:
    """The driver that must be asked whether it lives before it is replaced, if there is one."""
    taken = [entry for _, entry in entries if isinstance(entry, EpochTaken)]
    if not taken or restore_request.takes_over or isinstance(entries[-1][1], JobClosed):
        return None
    return None if taken[-1].deployment == restore_request.deployment else taken[-1]


def may_replace(found: Liveness) -> bool:
    """A driver that does not answer is replaced: the log fences it, should it wake (spec C17)."""
    return found is not Liveness.LIVES


def claim(
    entries: tuple[tuple[int, Entry], ...],
    resolution: Resolution,
    restore_request: RestoreRequest,
    driver: str,
    address: str = "",
) -> Claim:
    newest = entries[-1] if entries else None
    index = newest[0] + 1 if newest else 0
    epoch = max((entry.epoch for _, entry in entries), default=Epoch(0)) + 1
    goes_on = isinstance(resolution, ReplayCommit) or (
        isinstance(resolution, RestoreFrom) and resolution.goes_on
    )
    restored = resolution.manifest.checkpoint if _restores(resolution) else 0
    reserved = newest[1].ids_until if newest else 1
    next_id = max(reserved, restored + 1)
    entry = EpochTaken(
        epoch=Epoch(epoch),
        driver=driver,
        deployment=restore_request.deployment,
        goes_on=goes_on,
        restoring=resolution.path if _restores(resolution) else "",
        claims=restore_request.claims,
        ids_until=CheckpointId(next_id + ID_BLOCK),
        address=address,
    )
    return Claim(index, entry, CheckpointId(next_id), numbers_given(entries))


def refusal_stands(
    read: tuple[tuple[int, Entry], ...], read_again: tuple[tuple[int, Entry], ...] | None
) -> bool:
    """Whether a refused start stays refused: the log has not changed since the refusal.

    A driver that still runs logs a checkpoint first and deletes older ones then. A reader of the
    log before that and of the manifests after it misses files that nothing refers to any more.
    """
    return read == read_again


def _restores(resolution: Resolution) -> TypeGuard[RestoreFrom | ReplayCommit]:
    return isinstance(resolution, RestoreFrom | ReplayCommit)


def epoch_state(claimed: Claim, resolution: Resolution, directory: str) -> EpochState:
    """What the driver knows now that its epoch is in the log."""
    owned: tuple[tuple[int, Manifest], ...] = ()
    start: StartPoint = OwnCheckpoints()
    if _restores(resolution):
        owned = resolution.owned
        is_owned = any(manifest is resolution.manifest for _, manifest in owned)
        start = OwnCheckpoints() if is_owned else Unclaimed(resolution.manifest)
    return EpochState(
        epoch=claimed.entry.epoch,
        driver=claimed.entry.driver,
        directory=directory,
        index=claimed.index,
        next_id=claimed.next_id,
        ids_until=claimed.entry.ids_until,
        owned=owned,
        start=start,
        numbers=claimed.numbers,
    )
