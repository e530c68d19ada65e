"""Takes a job over: reads its log, decides what to restore, and creates the epoch's entry.

If another driver is faster, everything is read again, for what was read is no longer the end of the
log (spec C17). So is what leads to a refusal, if the driver before has gone on meanwhile. Only once
the entry exists does this driver know what it restores from. Storage that does not answer is asked
again: a job that starts has nothing better to do.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from weir.core import recovery, takeover
from weir.core.coordinator import EpochState
from weir.core.ids import OperatorId
from weir.core.journal import Entry, EpochTaken
from weir.core.lifecycle import JobStatus
from weir.core.snapshots import Manifest
from weir.core.topology import Topology
from weir.errors import JobRejected
from weir.storage import manifests
from weir.storage.log import JobLog
from weir.storage.objects import ObjectStore
from weir.storage.waiting import until_answered

log = logging.getLogger("weir.driver")

Pause = Callable[[float], None]
Entries = tuple[tuple[int, Entry], ...]


@dataclass(frozen=True, slots=True)
class AlreadyOver:
    """The job has ended, and this submission asks for nothing more."""

    status: JobStatus
    earlier: bool = False
    """It ended in an earlier submission; otherwise in this very one, whose driver wakes late."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The epoch is ours."""

    reign: EpochState
    resolution: recovery.Resolution


def inherited_max_parallelism(
    store: ObjectStore, directory: str, wish: recovery.Wish, pause: Pause = time.sleep
) -> dict[OperatorId, int]:
    """What operators of a job that sets no max parallelism inherit from what it goes on from.

    If what it goes on from is not there, or is damaged, the restore will say so.
    """
    entries = _entries(store, directory, pause)
    while wanted := _goes_on_from(entries, wish):
        manifest = until_answered(partial(manifests.read, store, wanted), pause)
        if isinstance(manifest, Manifest):
            return {width.operator: width.max_parallelism for width in manifest.widths}
        before, entries = entries, _entries(store, directory, pause)
        if takeover.refusal_stands(before, entries):
            break
    return {}


def _goes_on_from(entries: Entries, wish: recovery.Wish) -> str:
    """The manifest's path; empty if the job begins without state."""
    if recovery.begins_without_state(entries, wish):
        return ""
    line = recovery.candidates(entries)
    return wish.path or (line[-1].path if line else "")


def is_new(
    store: ObjectStore, directory: str, wish: recovery.Wish, pause: Pause = time.sleep
) -> bool:
    """Whether the job begins: it has nothing of its own to go on from, or shall not go on from it.

    A job that has finished and is not run again does not begin.
    """
    entries = _entries(store, directory, pause)
    if recovery.is_finished(entries, wish):
        return False
    return not recovery.candidates(entries) or recovery.begins_without_state(entries, wish)


def _entries(store: ObjectStore, directory: str, pause: Pause) -> Entries:
    return until_answered(JobLog(store, directory).read, pause)


def _accept(manifest: Manifest) -> None:
    """For jobs whose operators declare nothing."""
    del manifest


Ask = Callable[[EpochTaken], takeover.Liveness]
"""Finds out whether a driver lives."""


def refuse_live_namesake(
    store: ObjectStore, directory: str, wish: recovery.Wish, ask: Ask, pause: Pause = time.sleep
) -> None:
    """Refuse, before anything is started, a job that another driver runs."""
    _check_predecessor(_entries(store, directory, pause), wish, ask)


def _check_predecessor(
    entries: tuple[tuple[int, Entry], ...], wish: recovery.Wish, ask: Ask
) -> None:
    last = takeover.to_ask(entries, wish)
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


def _ask_nobody(last: EpochTaken) -> takeover.Liveness:
    """For jobs whose drivers have no API."""
    del last
    return takeover.Liveness.UNKNOWN


@dataclass(frozen=True, slots=True)
class Starting:
    """A driver before its epoch."""

    store: ObjectStore
    journal: JobLog
    directory: str
    driver: str
    wish: recovery.Wish
    pause: Pause = time.sleep
    judge: Callable[[Manifest], None] = _accept
    """Refuses state that does not fit the job, before the epoch is taken."""
    address: str = ""
    """URL of this driver's API."""
    ask: Ask = _ask_nobody

    def take_over(self, topology: Topology) -> Begun | AlreadyOver:
        outcome = until_answered(lambda: self._try(topology), self.pause)
        return cast("Begun | AlreadyOver", outcome)  # mypy does not take None out of three

    def _try(self, topology: Topology) -> Begun | AlreadyOver | None:
        entries = self.journal.read()
        if entries is None:
            return None
        ended = recovery.closed_as(entries, self.wish.deployment)
        if ended is not None:
            return AlreadyOver(ended)
        if recovery.is_finished(entries, self.wish):
            return AlreadyOver(JobStatus.FINISHED, earlier=True)
        _check_predecessor(entries, self.wish, self.ask)
        try:
            resolution = self._resolve(entries, topology)
        except JobRejected:
            if takeover.refusal_stands(entries, self.journal.read()):
                raise
            log.info("The driver before went on while its checkpoints were read; reading again.")
            return None
        claim = takeover.claim(entries, resolution, self.wish, self.driver, self.address)
        if not until_answered(lambda: self.journal.create(claim.index, claim.entry), self.pause):
            log.info("Another driver took the job's log over; reading it again.")
            return None
        return Begun(takeover.epoch_state(claim, resolution, self.directory), resolution)

    def _resolve(self, entries: Entries, topology: Topology) -> recovery.Resolution:
        """What to restore from; raises if starting would lose or repeat something."""
        paths = [candidate.path for candidate in recovery.candidates(entries)]
        found = {
            path: manifests.read(self.store, path) for path in (*paths, self.wish.path) if path
        }
        resolution = recovery.resolve(recovery.Facts(entries, found), self.wish, topology)
        if isinstance(resolution, recovery.Refuse):
            raise JobRejected(
                f"{resolution.subject} cannot be restored",
                resolution.reason,
                resolution.remedy,
            )
        if isinstance(resolution, recovery.RestoreFrom):
            self.judge(resolution.manifest)
        return resolution
