"""How a simulated driver takes its epoch: the log, then manifests, then its entry.

Time passes between the three, and a driver before it may still run: what it completes and deletes
meanwhile is what a takeover has to notice. What to do about it is decided by production code.
"""

from dataclasses import dataclass
from typing import Protocol

from simulation.store import OK, Damage, Store
from simulation.world import World
from weir.core import restore_decision, takeover
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import Entry, EpochTaken
from weir.core.snapshots import Manifest
from weir.core.topology import Topology
from weir.errors import WeirError

Entries = tuple[tuple[int, Entry], ...]

READING = (0, 80)
"""How long it takes to read manifests: long enough for a checkpoint to complete and subsume."""


class Starter(Protocol):
    """The driver, as far as its beginning is concerned."""

    name: str
    restore_request: restore_decision.RestoreRequest
    topology: Topology
    alive: bool
    paused: bool

    def over(self, status: JobStatus) -> None: ...
    def begin_epoch(
        self, claimed: takeover.Claim, resolution: restore_decision.Resolution
    ) -> None: ...


@dataclass(frozen=True)
class DriverTakeover:
    """One driver before its epoch."""

    world: World
    store: Store
    driver: Starter

    def read_log(self) -> None:
        if not self.driver.alive:
            return
        entries = self.store.read_log()
        if entries is None:
            self.world.at(10, self.read_log)
            return
        ended = restore_decision.closed_as(entries, self.driver.restore_request.deployment)
        if ended is not None:
            self.driver.over(ended)
            return
        self.world.at(self.world.delay(*READING), self._read_manifests, entries)

    def _read_manifests(self, entries: Entries) -> None:
        driver = self.driver
        if not driver.alive:
            return
        paths = [candidate.path for candidate in restore_decision.candidates(entries)]
        manifests = {
            path: self._manifest(path) for path in (*paths, driver.restore_request.path) if path
        }
        facts = restore_decision.Facts(entries, manifests)
        resolution = restore_decision.resolve(facts, driver.restore_request, driver.topology)
        self.world.record(driver.name, resolution)
        if isinstance(resolution, restore_decision.Refuse):
            self._refused(entries, resolution)
            return
        self._check_wish(entries, resolution)
        self.world.saw(f"recovery: {type(resolution).__name__}")
        self._claim(
            takeover.claim(entries, resolution, driver.restore_request, driver.name), resolution
        )

    def _refused(self, entries: Entries, refusal: restore_decision.Refuse) -> None:
        """Nothing here justifies a refusal, except that the driver before has gone on."""
        if takeover.refusal_stands(entries, self.store.read_log()):
            self.world.violated(f"{refusal.subject}: {refusal.reason}")
        self.world.saw("takeover: the log moved under it, read again")
        self.world.at(10, self.read_log)

    def _check_wish(self, entries: Entries, resolution: restore_decision.Resolution) -> None:
        """The first driver of a submission restores what the submission named."""
        restore_request = self.driver.restore_request
        taken = [e for _, e in entries if isinstance(e, EpochTaken)]
        is_first = all(e.deployment != restore_request.deployment for e in taken)
        restored = getattr(resolution, "path", "")
        if is_first and restore_request.path and restored != restore_request.path:
            self.world.violated(f"{restore_request.path} was named, and {restored} is restored")

    def _manifest(self, path: str) -> Manifest | restore_decision.Damaged:
        found = self.store.files.get(path)
        if isinstance(found, Manifest):
            return found
        return restore_decision.Damaged(
            "checksum" if isinstance(found, Damage) else "it was not found"
        )

    def _claim(self, claimed: takeover.Claim, resolution: restore_decision.Resolution) -> None:
        def answered(outcome: str | WeirError) -> None:
            if not self.driver.alive:
                return
            if self.driver.paused:
                self.world.at(7, answered, outcome)
            elif outcome == OK:
                self.driver.begin_epoch(claimed, resolution)
            elif outcome == "taken":
                self.world.saw("takeover: too late, read again")
                self.read_log()
            else:
                self.world.at(5, self._claim, claimed, resolution)

        self.store.create_entry(claimed.index, claimed.entry, answered)
