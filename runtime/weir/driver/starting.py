"""Takes a job over: reads its log, decides what to restore, and creates the epoch's entry.

If another driver is faster, everything is read again, for what was read is no longer the end of the
log (spec C17). Only once the entry exists does this driver know what it restores from. Storage that
does not answer is asked again: a job that starts has nothing better to do.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from weir.core import recovery, takeover
from weir.core.coordinator import Reign
from weir.core.ids import OperatorId
from weir.core.lifecycle import JobStatus
from weir.core.snapshots import Manifest
from weir.core.topology import Topology
from weir.errors import JobRejected, Unavailable
from weir.storage import manifests
from weir.storage.log import JobLog
from weir.storage.objects import ObjectStore

log = logging.getLogger("weir.driver")

RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class AlreadyOver:
    """This very submission has ended: a driver that wakes after that has no work."""

    status: JobStatus


@dataclass(frozen=True, slots=True)
class Begun:
    """The epoch is ours."""

    reign: Reign
    resolution: recovery.Resolution


def inherited_max_parallelism(
    store: ObjectStore, directory: str, wish: recovery.Wish
) -> dict[OperatorId, int]:
    """What operators of a job that sets no max parallelism inherit from what it goes on from.

    If there is nothing to read yet, or it cannot be read, the restore will say so.
    """
    entries = JobLog(store, directory).read() or ()
    if recovery.begins_without_state(entries, wish):
        return {}
    line = recovery.candidates(entries)
    wanted = wish.path or (line[-1].path if line else "")
    manifest = manifests.read(store, wanted) if wanted else None
    if not isinstance(manifest, Manifest):
        return {}
    return {width.operator: width.max_parallelism for width in manifest.widths}


def is_new(store: ObjectStore, directory: str, wish: recovery.Wish) -> bool:
    """Whether the job has nothing of its own to go on from, or shall not go on from it."""
    entries = JobLog(store, directory).read()
    return entries is not None and (
        not recovery.candidates(entries) or recovery.begins_without_state(entries, wish)
    )


def _accept(manifest: Manifest) -> None:
    """For jobs whose operators declare nothing."""
    del manifest


@dataclass(frozen=True, slots=True)
class Starting:
    """A driver before its epoch."""

    store: ObjectStore
    journal: JobLog
    directory: str
    driver: str
    wish: recovery.Wish
    pause: Callable[[float], None] = time.sleep
    judge: Callable[[Manifest], None] = _accept
    """Refuses state that does not fit the job, before the epoch is taken."""

    def take_over(self, topology: Topology) -> Begun | AlreadyOver:
        while True:
            try:
                outcome = self._try(topology)
            except Unavailable as problem:
                log.warning("The job's log could not be read: %s", problem)
                outcome = None
            if outcome is not None:
                return outcome
            self.pause(RETRY_SECONDS)

    def _try(self, topology: Topology) -> Begun | AlreadyOver | None:
        entries = self.journal.read()
        if entries is None:
            return None
        ended = recovery.closed_as(entries, self.wish.deployment)
        if ended is not None:
            return AlreadyOver(ended)
        paths = [candidate.path for candidate in recovery.candidates(entries)]
        found = {
            path: manifests.read(self.store, path) for path in (*paths, self.wish.path) if path
        }
        resolution = recovery.resolve(recovery.Facts(entries, found), self.wish, topology)
        if isinstance(resolution, recovery.Refuse):
            raise JobRejected(
                f"{resolution.subject}: {resolution.reason}. Remedy: {resolution.remedy}."
            )
        if isinstance(resolution, recovery.RestoreFrom):
            self.judge(resolution.manifest)
        claim = takeover.claim(entries, resolution, self.wish, self.driver)
        if not self._create(claim):
            log.info("Another driver took the job's log over; reading it again.")
            return None
        return Begun(takeover.reign(claim, resolution, self.directory), resolution)

    def _create(self, claim: takeover.Claim) -> bool:
        """Whether the entry is ours; one whose fate is unknown is created again."""
        while True:
            try:
                return self.journal.create(claim.index, claim.entry)
            except Unavailable as problem:
                log.warning("The job's log could not be written: %s", problem)
                self.pause(RETRY_SECONDS)
