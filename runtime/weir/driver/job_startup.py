"""Takes a job over: reads its log, decides what to restore, and creates the epoch's entry.

If another driver is faster, everything is read again, for what was read is no longer the end of the
log (spec C17), and also after a refusal if the predecessor has continued meanwhile. Only once
the entry exists does this driver know what it restores from. Storage that does not answer is asked
again: a job that starts has nothing better to do.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from weir.core import restore_decision, takeover
from weir.core.coordinator import EpochState
from weir.core.ids import OperatorId
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import Entry, EpochTaken
from weir.core.snapshots import Manifest
from weir.core.topology import Topology
from weir.errors import JobRejected
from weir.storage import manifests
from weir.storage.job_log_store import JobLog
from weir.storage.retries import retry_until_available
from weir.storage.stores import ObjectStore

log = logging.getLogger("weir.driver")

Pause = Callable[[float], None]
Entries = tuple[tuple[int, Entry], ...]


@dataclass(frozen=True, slots=True)
class AlreadyEnded:
    """The job has ended, and this submission asks for nothing more."""

    status: JobStatus
    earlier: bool = False
    """It ended in an earlier submission; otherwise in this very one, whose driver wakes late."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """This driver owns the epoch."""

    epoch_state: EpochState
    resolution: restore_decision.Resolution


def inherited_max_parallelism(
    store: ObjectStore,
    directory: str,
    restore_request: restore_decision.RestoreRequest,
    pause: Pause = time.sleep,
) -> dict[OperatorId, int]:
    """The max parallelism of the checkpoint, for operators of a job that sets none.

    If that checkpoint is missing or damaged, the restore reports it.
    """
    entries = _entries(store, directory, pause)
    while wanted := _goes_on_from(entries, restore_request):
        manifest = retry_until_available(partial(manifests.read, store, wanted), pause)
        if isinstance(manifest, Manifest):
            return {width.operator: width.max_parallelism for width in manifest.widths}
        before, entries = entries, _entries(store, directory, pause)
        if takeover.refusal_stands(before, entries):
            break
    return {}


def _goes_on_from(entries: Entries, restore_request: restore_decision.RestoreRequest) -> str:
    """The manifest's path; empty if the job begins without state."""
    if restore_decision.begins_without_state(entries, restore_request):
        return ""
    line = restore_decision.candidates(entries)
    return restore_request.path or (line[-1].path if line else "")


def is_new(
    store: ObjectStore,
    directory: str,
    restore_request: restore_decision.RestoreRequest,
    pause: Pause = time.sleep,
) -> bool:
    """Whether the job starts anew: it has no checkpoint to restore, or must not restore one.

    A job that has finished and is not run again does not begin.
    """
    entries = _entries(store, directory, pause)
    if restore_decision.is_finished(entries, restore_request):
        return False
    return not restore_decision.candidates(entries) or restore_decision.begins_without_state(
        entries, restore_request
    )


def _entries(store: ObjectStore, directory: str, pause: Pause) -> Entries:
    return retry_until_available(JobLog(store, directory).read, pause)


def _accept(manifest: Manifest) -> None:
    """For jobs whose operators declare nothing."""
    del manifest


Ask = Callable[[EpochTaken], takeover.Liveness]
"""Finds out whether a driver lives."""


def refuse_running_duplicate(
    store: ObjectStore,
    directory: str,
    restore_request: restore_decision.RestoreRequest,
    ask: Ask,
    pause: Pause = time.sleep,
) -> None:
    """Refuse, before anything is started, a job that another driver runs."""
    _check_predecessor(_entries(store, directory, pause), restore_request, ask)


def _check_predecessor(
    entries: tuple[tuple[int, Entry], ...],
    restore_request: restore_decision.RestoreRequest,
    ask: Ask,
) -> None:
    last = takeover.driver_to_probe(entries, restore_request)
    if last is None:
        return
    found = ask(last)
    if not takeover.may_replace(found):
        raise JobRejected(
            "another driver runs a job of this name",
            f"it is {last.driver}, whose API is {last.address}",
            "end that job with `weir stop` or `weir cancel`, give this one another name "
            "(appName or queryName), or replace that driver with `weir run --take-over` or the "
            "setting weir.takeOver = true",
        )
    if found is takeover.Liveness.UNKNOWN:
        log.warning(
            "The job is taken over from driver %s, which did not end it: %s. If it still runs, it"
            " will notice and stop.",
            last.driver,
            found,
        )


def _no_probe(last: EpochTaken) -> takeover.Liveness:
    """For jobs whose drivers have no API."""
    del last
    return takeover.Liveness.UNKNOWN


@dataclass(frozen=True, slots=True)
class JobStartup:
    """A driver before its epoch."""

    store: ObjectStore
    journal: JobLog
    directory: str
    driver: str
    restore_request: restore_decision.RestoreRequest
    pause: Pause = time.sleep
    judge: Callable[[Manifest], None] = _accept
    """Refuses state that does not fit the job, before the epoch is taken."""
    address: str = ""
    """URL of this driver's API."""
    ask: Ask = _no_probe

    def take_over(self, topology: Topology) -> TakenOver | AlreadyEnded:
        outcome = retry_until_available(lambda: self._try(topology), self.pause)
        return cast("TakenOver | AlreadyEnded", outcome)  # mypy does not take None out of three

    def _try(self, topology: Topology) -> TakenOver | AlreadyEnded | None:
        entries = self.journal.read()
        if entries is None:
            return None
        ended = restore_decision.closed_as(entries, self.restore_request.deployment)
        if ended is not None:
            return AlreadyEnded(ended)
        if restore_decision.is_finished(entries, self.restore_request):
            return AlreadyEnded(JobStatus.FINISHED, earlier=True)
        _check_predecessor(entries, self.restore_request, self.ask)
        try:
            resolution = self._resolve(entries, topology)
        except JobRejected:
            if takeover.refusal_stands(entries, self.journal.read()):
                raise
            log.info("The predecessor continued while its checkpoints were read; reading again.")
            return None
        claim = takeover.claim(entries, resolution, self.restore_request, self.driver, self.address)
        if not retry_until_available(
            lambda: self.journal.create(claim.index, claim.entry), self.pause
        ):
            log.info("Another driver took the job's log over; reading it again.")
            return None
        return TakenOver(takeover.epoch_state(claim, resolution, self.directory), resolution)

    def _resolve(self, entries: Entries, topology: Topology) -> restore_decision.Resolution:
        """What to restore from; raises if starting would lose or repeat something."""
        paths = [candidate.path for candidate in restore_decision.candidates(entries)]
        found = {
            path: manifests.read(self.store, path)
            for path in (*paths, self.restore_request.path)
            if path
        }
        resolution = restore_decision.resolve(
            restore_decision.Facts(entries, found), self.restore_request, topology
        )
        if isinstance(resolution, restore_decision.Refuse):
            raise JobRejected(
                f"{resolution.subject} cannot be restored",
                resolution.reason,
                resolution.remedy,
            )
        if isinstance(resolution, restore_decision.RestoreFrom):
            self.judge(resolution.manifest)
        return resolution
