"""Passes each action of the core to the part of the driver that carries it out.

It does no I/O itself: slots, storage and sinks are ports, which the simulator implements too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from weir.core import attempt as attempts
from weir.core.coordinator import actions, events, shutdown
from weir.core.ids import (
    NO_CHECKPOINT,
    AttemptId,
    CheckpointId,
    Epoch,
    OperatorId,
    RequestId,
    SlotId,
    SubtaskId,
)
from weir.core.job_master import DriverAction, Event, Job, Launch
from weir.core.rescale import StateAssignment
from weir.driver.storage_actions import StorageAction
from weir.wire.authenticated_sockets import Address
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    SubtaskAddress,
)

Outcome = actions.RequestSucceeded | actions.RequestFailed


class SlotLinks(Protocol):
    """The control links to the slots."""

    def send(self, slot: SlotId, message: object) -> None: ...
    def send_to_subtask(
        self, slot: SlotId, subtask: SubtaskId, attempt: AttemptId, message: object
    ) -> None: ...
    def recycle(self, slot: SlotId) -> None: ...
    def addresses(self) -> Mapping[SlotId, Address]: ...
    def dismiss(self) -> None: ...
    def until_gone(self) -> None: ...


class StoragePort(Protocol):
    """Storage, which answers each action by an event."""

    def carry_out(self, action: StorageAction) -> None: ...


class CommitPort(Protocol):
    """The sinks' committers, which answer by events."""

    def commit(self, action: actions.CommitTransactions) -> None: ...
    def resolve(
        self,
        epoch: Epoch,
        action: actions.ResolveTransactions,
        first: Callable[[], None] = ...,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class ActionRunner:
    """Carries out actions with slots, storage and sinks, and answers requests."""

    epoch: Epoch
    slots: SlotLinks
    storage_actions: StoragePort
    sink_committers: CommitPort
    answer: Callable[[RequestId, Outcome], None]
    enqueue: Callable[[Event], None]

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
                self.storage_actions.carry_out(action)
            case actions.CommitTransactions():
                self.sink_committers.commit(action)
            case actions.ResolveTransactions(attempt=shutdown.ALL_ATTEMPTS):
                self.slots.dismiss()
                self.sink_committers.resolve(self.epoch, action, self.slots.until_gone)
            case actions.ResolveTransactions():
                self.sink_committers.resolve(self.epoch, action)
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
            self.enqueue(events.OperatorNotSnapshotted(checkpoint, operator, cause))

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
                self._tell_all(targets, CheckpointAborted(checkpoint), job)
            case actions.NotifyCompleted(checkpoint, kind, targets, leaving):
                self._tell_all(targets, CheckpointCompleted(checkpoint, kind, leaving), job)
            case actions.SendToSubtask(_, target, message):
                self._tell_all((target,), message, job)

    def _tell_all(self, targets: tuple[actions.Target, ...], message: object, job: Job) -> None:
        for subtask, attempt in targets:
            self.slots.send_to_subtask(
                job.attempt.graph.slot_of(subtask), subtask, attempt, message
            )

    def _order_slots(
        self, action: Launch | attempts.ResetSubtasks | attempts.RecycleSlot, job: Job
    ) -> None:
        match action:
            case Launch():
                self._launch(action, job)
            case attempts.ResetSubtasks(slot, subtasks):
                self.slots.send(slot, CancelSubtasks(subtasks))
            case attempts.RecycleSlot(slot):
                self.slots.recycle(slot)

    def _launch(self, launch: Launch, job: Job) -> None:
        restored: CheckpointId = NO_CHECKPOINT
        if isinstance(launch.restore, actions.RestoreManifest):
            restored = launch.restore.manifest.checkpoint
        subtask_addresses = self._seats(job)
        by_slot: dict[SlotId, list[StateAssignment]] = {}
        for _, slot, state_assignment in launch.placements:
            by_slot.setdefault(slot, []).append(state_assignment)
        for slot, state_assignments in by_slot.items():
            deploy = DeploySubtasks(
                self.epoch, launch.attempt, restored, tuple(state_assignments), subtask_addresses
            )
            self.slots.send(slot, deploy)

    def _seats(self, job: Job) -> tuple[SubtaskAddress, ...]:
        addresses = self.slots.addresses()
        graph = job.attempt.graph
        places = [(subtask, graph.slot_of(subtask)) for subtask in graph.topology.subtasks]
        return tuple(
            SubtaskAddress(subtask, slot, *addresses[slot])
            for subtask, slot in places
            if slot in addresses
        )
