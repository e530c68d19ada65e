"""The ports of a driver in the simulated world: links to its slots, storage, and committers.

The production ``ActionRunner`` decides which port an action goes to. What a port does takes time,
fails or stays without an answer as the scenario draws it, and every answer is an event.
"""

from collections.abc import Callable
from typing import Protocol, assert_never

from simulation.coordinator_faults import CoordinatorFaults
from simulation.slot import Slot, SlotEnvironment
from simulation.store import OK, UNKNOWN, EntryAnswer
from simulation.world import World
from weir.core.barriers import Barrier
from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator import actions, events
from weir.core.ids import AttemptId, CheckpointId, Epoch, SlotId, SubtaskId
from weir.core.job_master import Event
from weir.driver.storage_actions import StorageAction, entry_failed
from weir.errors import WeirError
from weir.wire.authenticated_sockets import Address
from weir.wire.control_messages import CheckpointAborted, CheckpointCompleted, SubtaskMessage

REPEATABLE = (Barrier, CheckpointAborted, CheckpointCompleted)
"""Messages that may repeat or be missed."""


class PortEnvironment(SlotEnvironment, Protocol):
    """What the ports find in their world."""

    @property
    def stumbling(self) -> CoordinatorFaults: ...


class PortOwner(Protocol):
    """The driver, as far as its ports are concerned."""

    epoch: Epoch
    slots: dict[SlotId, Slot]
    known: set[str]
    world: World

    def handle(self, event: Event) -> None: ...
    def lose_slot(self, name: SlotId) -> None: ...


class SimulatedSlotLinks:
    """Control links: in order each way, and at times they lose or double a message."""

    def __init__(self, sim: PortEnvironment, driver: PortOwner) -> None:
        self._sim = sim
        self._driver = driver
        self._world = driver.world
        self._due: dict[tuple[str, SlotId], int] = {}
        self.are_dismissed = False

    def send(self, slot: SlotId, message: object) -> None:
        self._world.at(self.in_order("down", slot), self._deliver, slot, message)

    def send_to_subtask(
        self, slot: SlotId, subtask: SubtaskId, attempt: AttemptId, message: object
    ) -> None:
        is_last = isinstance(message, CheckpointCompleted) and message.leaving
        is_lossy = isinstance(message, CheckpointAborted) or is_last
        if is_lossy and self._world.chance(self._sim.scenario.chances.lost_control * 10):
            return
        for copy in range(self.copies(is_repeatable=isinstance(message, REPEATABLE))):
            wait = self.in_order("down", slot) + (self._world.delay(0, 150) if copy else 0)
            self._world.at(wait, self._deliver, slot, SubtaskMessage(subtask, attempt, message))

    def _deliver(self, slot: SlotId, message: object) -> None:
        if slot in self._driver.slots:
            self._driver.slots[slot].post(message)

    def recycle(self, slot: SlotId) -> None:
        self._driver.lose_slot(slot)

    def addresses(self) -> dict[SlotId, Address]:
        return dict.fromkeys(self._driver.slots, ("", 0))

    def dismiss(self) -> None:
        self.are_dismissed = True
        for name, slot in self._driver.slots.items():
            self._world.at(self.in_order("down", name), slot.die)

    def until_gone(self) -> None:
        """The simulated committers look for themselves: nothing here can wait."""

    @property
    def are_gone(self) -> bool:
        return not any(slot.is_alive for slot in self._driver.slots.values())

    def copies(self, *, is_repeatable: bool) -> int:
        chances = self._sim.scenario.chances
        if is_repeatable and self._world.chance(chances.lost_control):
            self._world.saw("fault: control message lost")
            return 0
        if is_repeatable and self._world.chance(chances.doubled_control):
            self._world.saw("fault: control message doubled")
            return 2
        return 1

    def in_order(self, direction: str, slot: SlotId) -> int:
        """How long a message takes that must not overtake the one before it."""
        now, link = self._world.now, (direction, slot)
        due = max(now + self._world.delay(*self._sim.scenario.delays), self._due.get(link, 0))
        self._due[link] = due
        return due - now


class SimulatedStorage:
    """Storage actions on the simulated store."""

    def __init__(self, sim: PortEnvironment, driver: PortOwner) -> None:
        self._sim = sim
        self._driver = driver

    def carry_out(self, action: StorageAction) -> None:
        store, driver = self._sim.store, self._driver
        match action:
            case actions.WriteManifest(manifest):
                path = manifest_path(manifest.location)
                driver.known.add(path)
                store.put(path, manifest, driver.epoch, self._manifest_answer(manifest.checkpoint))
            case actions.CreateEntry(index, entry):
                store.create_entry(index, entry, self._entry_answer(index))
            case actions.LookForSuccessor(index):
                store.look(index, self._look_answer(index))
            case actions.TruncateLog(below):
                store.truncate(below)
            case actions.DeleteFiles(operation, paths):
                store.delete(paths, self._delete_answer(operation))
            case actions.PrepareLocation(checkpoint, _):
                self._prepare_location(checkpoint)
            case _:
                assert_never(action)

    def _manifest_answer(self, checkpoint: CheckpointId) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            if outcome == OK:
                self._driver.handle(events.ManifestWritten(checkpoint))
            elif outcome == UNKNOWN:
                self._driver.handle(events.ManifestInDoubt(checkpoint))
            else:
                self._driver.handle(events.ManifestNotWritten(checkpoint, "storage failed"))

        return answered

    def _entry_answer(self, index: int) -> EntryAnswer:
        def answered(outcome: str | WeirError) -> None:
            if isinstance(outcome, WeirError):
                self._driver.handle(entry_failed(index, outcome))
            elif outcome == OK:
                self._driver.handle(events.EntryCreated(index))
            else:
                self._driver.handle(events.EntryTaken(index))

        return answered

    def _look_answer(self, index: int) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            if outcome == "taken":
                self._driver.handle(events.EntryTaken(index))
            elif outcome == "free":
                self._driver.handle(events.NoSuccessorSeen(index))
            else:
                self._driver.handle(events.SuccessorUnknown(index))

        return answered

    def _delete_answer(self, operation: int) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            done = events.FilesDeleted if outcome == OK else events.FilesNotDeleted
            self._driver.handle(done(operation))

        return answered

    def _prepare_location(self, checkpoint: CheckpointId) -> None:
        world = self._driver.world
        wait = world.delay(1, 8)
        if world.chance(self._sim.scenario.chances.store_fails * 4):
            refused = events.LocationNotPrepared(checkpoint, "storage failed")
            world.at(wait, self._driver.handle, refused)
            return
        world.at(wait, self._driver.handle, events.LocationPrepared(checkpoint))


class SimulatedCommitters:
    """Commits in the external system, which may act and fall silent, or not act at all."""

    def __init__(self, sim: PortEnvironment, driver: PortOwner, links: SimulatedSlotLinks) -> None:
        self._sim = sim
        self._driver = driver
        self._links = links
        self._world = driver.world

    def commit(self, action: actions.CommitTransactions) -> None:
        self._world.at(self._world.delay(1, 12), self._commit, action)

    def _commit(self, action: actions.CommitTransactions) -> None:
        commit = action.commit
        if not self._world.calm and self._sim.stumbling.is_now():
            self._world.saw("fault: committer raises")
            refused = "commit() raised", "KeyError"
            self._driver.handle(events.CommitInDoubt(commit.sink, commit.sequence, *refused))
            return
        if self._world.chance(self._sim.scenario.chances.commit_lost):
            self._world.saw("fault: commit without an answer")
            if self._world.rng.random() < 0.5:
                self._sim.external.commit(commit)
            self._driver.handle(events.CommitInDoubt(commit.sink, commit.sequence))
            return
        self._sim.external.commit(commit)
        self._driver.handle(events.CommitConfirmed(commit.sink, commit.sequence))

    def resolve(
        self,
        epoch: Epoch,
        action: actions.ResolveTransactions,
        first: Callable[[], None] | None = None,
    ) -> None:
        then = self._resolve if first is None else self._resolve_after_slots
        self._world.at(self._world.delay(1, 12), then, epoch, action)

    def _resolve_after_slots(self, epoch: Epoch, action: actions.ResolveTransactions) -> None:
        then = self._resolve if self._links.are_gone else self._resolve_after_slots
        self._world.at(1, then, epoch, action)

    def _resolve(self, epoch: Epoch, action: actions.ResolveTransactions) -> None:
        if self._world.chance(self._sim.scenario.chances.commit_lost):
            self._driver.handle(events.TransactionsUnresolved(action.operation))
            return
        owner = (int(epoch), int(action.attempt))
        self._sim.external.resolve(action.subtasks, owner, action.keep)
        self._driver.handle(events.TransactionsResolved(action.operation))
