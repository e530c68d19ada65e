"""Hands each action of the core to the part of the driver that can carry it out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from weir.core import attempt as attempts
from weir.core.coordinator import actions, events, shutdown
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Epoch, OperatorId, RequestId, SlotId
from weir.core.job import DriverAction, Event, Job, Launch
from weir.core.rescale import Inheritance
from weir.driver.committing import Committing
from weir.driver.slots import Slots
from weir.driver.storing import Storing
from weir.wire.control import Abort, Completed, HostSubtasks, Reset, Seated

Outcome = actions.RequestSucceeded | actions.RequestFailed


@dataclass(frozen=True, slots=True)
class DriverHands:
    """Slots, storage, sinks, and whoever waits for an answer."""

    epoch: Epoch
    slots: Slots
    storing: Storing
    committing: Committing
    answer: Callable[[RequestId, Outcome], None]
    tell: Callable[[Event], None]

    def carry_out(self, action: DriverAction, job: Job) -> None:  # noqa: C901 - a table
        match action:
            case (
                actions.Trigger()
                | actions.NotifyAborted()
                | actions.NotifyCompleted()
                | actions.SendToSubtask()
            ):
                self._tell_subtasks(action, job)
            case Launch() | attempts.ResetSubtasks() | attempts.RecycleSlot():
                self._order_slots(action, job)
            case (
                actions.WriteManifest()
                | actions.CreateEntry()
                | actions.LookForSuccessor()
                | actions.TruncateLog()
                | actions.DeleteFiles()
                | actions.PrepareLocation()
            ):
                self.storing.carry_out(action)
            case actions.CommitTransactions():
                self.committing.commit(action)
            case actions.ResolveTransactions(attempt=shutdown.ALL_ATTEMPTS):
                self.slots.dismiss()
                self.committing.resolve(self.epoch, action, self.slots.until_gone)
            case actions.ResolveTransactions():
                self.committing.resolve(self.epoch, action)
            case actions.CompleteRequest(request, outcome):
                self.answer(request, outcome)
            case actions.SnapshotOperators(checkpoint, operators):
                self._refuse_snapshots(checkpoint, operators)
            case (
                actions.ReportTriggered()
                | actions.ReportCompleted()
                | actions.ReportAborted()
                | actions.FailAttempt()
                | attempts.ReportStatus()
                | attempts.ReportRestart()
            ):
                pass  # the log and the statistics show them
            case _:
                assert_never(action)

    def _refuse_snapshots(
        self, checkpoint: CheckpointId, operators: tuple[OperatorId, ...]
    ) -> None:
        """The core snapshots the enumerators itself; the driver has no other coordinators.

        Without an answer the checkpoint would wait for them until its timeout.
        """
        for operator in operators:
            cause = f"the driver has no coordinator of {operator}"
            self.tell(events.OperatorNotSnapshotted(checkpoint, operator, cause))

    def _tell_subtasks(
        self,
        action: actions.Trigger
        | actions.NotifyAborted
        | actions.NotifyCompleted
        | actions.SendToSubtask,
        job: Job,
    ) -> None:
        match action:
            case actions.Trigger(barrier, targets):
                self._tell_all(targets, barrier, job)
            case actions.NotifyAborted(checkpoint, targets):
                self._tell_all(targets, Abort(checkpoint), job)
            case actions.NotifyCompleted(checkpoint, kind, targets, leaving):
                self._tell_all(targets, Completed(checkpoint, kind, leaving), job)
            case actions.SendToSubtask(_, target, message):
                self._tell_all((target,), message, job)

    def _tell_all(self, targets: tuple[actions.Target, ...], message: object, job: Job) -> None:
        for subtask, attempt in targets:
            self.slots.tell(job.attempt.roster.slot_of(subtask), subtask, attempt, message)

    def _order_slots(
        self, action: Launch | attempts.ResetSubtasks | attempts.RecycleSlot, job: Job
    ) -> None:
        match action:
            case Launch():
                self._launch(action, job)
            case attempts.ResetSubtasks(slot, subtasks):
                self.slots.send(slot, Reset(subtasks))
            case attempts.RecycleSlot(slot):
                self.slots.recycle(slot)

    def _launch(self, launch: Launch, job: Job) -> None:
        restored: CheckpointId = NO_CHECKPOINT
        if isinstance(launch.restore, actions.RestoreManifest):
            restored = launch.restore.manifest.checkpoint
        seats = self._seats(job)
        by_slot: dict[SlotId, list[Inheritance]] = {}
        for _, slot, inheritance in launch.placements:
            by_slot.setdefault(slot, []).append(inheritance)
        for slot, inheritances in by_slot.items():
            deploy = HostSubtasks(self.epoch, launch.attempt, restored, tuple(inheritances), seats)
            self.slots.send(slot, deploy)

    def _seats(self, job: Job) -> tuple[Seated, ...]:
        addresses = self.slots.addresses()
        roster = job.attempt.roster
        places = [(subtask, roster.slot_of(subtask)) for subtask in roster.topology.subtasks]
        return tuple(
            Seated(subtask, slot, *addresses[slot]) for subtask, slot in places if slot in addresses
        )
