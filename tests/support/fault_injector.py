"""Carries orders of ``faults`` out, inside the processes of a real job, at the step they name.

It is loaded by the test's own job script and by the test's own Python daemon and nowhere else; the
product does not know it. A step is where a method of the product begins or ends.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from faults import DIRECTORY, Fault, FaultKind, Moment, Orders, Step
from local_reads import write_down_local_reads
from weir.connectors.commit_records import CommitRecords
from weir.core.barriers import Barrier
from weir.core.coordinator import actions, events
from weir.core.ids import RECOVERED, ChannelId
from weir.core.log_entries import CheckpointLogged
from weir.core.scheduler import ControlMarker, Mail
from weir.core.task import Complete
from weir.driver.action_runner import ActionRunner, SlotLinks
from weir.driver.sink_committers import SinkCommitters
from weir.driver.slot_registry import SlotRegistry
from weir.driver.storage_actions import StorageActions
from weir.exchange import Run
from weir.slot.mailbox import Mailbox
from weir.slot.merged_files import MergedFiles
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.subtask_runner import SubtaskRunner
from weir.wire.control_messages import EventReported

BOTH = (Moment.BEFORE, Moment.AFTER)

StepsOf = Callable[..., Iterable[Step]]
"""Which steps a call of a method is, by its arguments."""


@dataclass
class FaultInjector:
    """One process's share in the sabotage."""

    orders: Orders
    slots: Callable[[], list[int]]
    """The slots' processes, as far as they are known here."""
    _passed: Counter[int] = field(default_factory=Counter)

    def passes(self, step: Step, moment: Moment) -> None:
        """The process is at this step; perhaps no further."""
        fault = self.orders.armed()
        if fault is None or (fault.step, fault.moment) != (step, moment):
            return
        if os.getsid(0) != self.orders.driver():
            return
        self._passed[fault.number] += 1
        victim = self._victim(fault)
        if self._passed[fault.number] <= fault.skip or victim is None:
            return
        if self.orders.claim(fault):
            self._carry_out(fault, victim)

    def _victim(self, fault: Fault) -> int | None:
        if fault.kind is not FaultKind.KILL_SLOT:
            return self.orders.driver()
        slots = self.slots()
        return slots[fault.number % len(slots)] if slots else None

    def _carry_out(self, fault: Fault, victim: int) -> None:
        freezes = fault.kind is FaultKind.FREEZE_DRIVER
        try:
            os.kill(victim, signal.SIGSTOP if freezes else signal.SIGKILL)
        except ProcessLookupError:
            self.orders.give_back(fault)

    def at(
        self, owner: type, method: str, steps_of: StepsOf, moments: tuple[Moment, ...] = BOTH
    ) -> None:
        """Make calls of this method steps."""
        original = getattr(owner, method)

        def faulty(*given: object) -> object:
            steps = tuple(steps_of(*given))
            if Moment.BEFORE in moments:
                self._pass_all(steps, Moment.BEFORE)
            result = original(*given)
            if Moment.AFTER in moments:
                self._pass_all(steps, Moment.AFTER)
            return result

        setattr(owner, method, faulty)

    def _pass_all(self, steps: tuple[Step, ...], moment: Moment) -> None:
        for step in steps:
            self.passes(step, moment)


def _orders() -> Orders:
    return Orders(Path(os.environ[DIRECTORY]))


def _always(step: Step) -> StepsOf:
    return lambda *_: (step,)


# -- the driver's steps


def inject_driver_faults() -> None:
    """From now on this process is a driver with injected faults."""
    known: list[SlotLinks] = []

    def pids() -> list[int]:
        slots = sorted(known[-1].addresses()) if known else []
        return [int(slot.rpartition(".")[2]) for slot in slots]

    def ordered(action_runner: ActionRunner, action: object, job: object) -> Iterable[Step]:
        del job
        known[:] = [action_runner.slots]
        return _step_of_action(action)

    injector = FaultInjector(_orders(), pids)
    injector.at(ActionRunner, "carry_out", ordered)
    injector.at(SlotRegistry, "_receive", _acks_in, (Moment.AFTER,))
    injector.at(StorageActions, "_write_manifest", _always(Step.MANIFEST))
    injector.at(StorageActions, "_create_entry", _completions)
    injector.at(StorageActions, "_delete", _always(Step.DELETION))
    injector.at(SinkCommitters, "_commit", _always(Step.COMMIT))
    injector.at(CommitRecords, "create", _always(Step.RECORD))


def _step_of_action(action: object) -> Iterable[Step]:
    match action:
        case actions.Trigger():
            yield Step.TRIGGER
        case actions.NotifyCompleted():
            yield Step.NOTIFICATION
        case actions.DeleteFiles():
            yield Step.SUBSUMPTION


def _acks_in(slots: SlotRegistry, slot: str, message: object) -> Iterable[Step]:
    del slots, slot
    if isinstance(message, EventReported) and isinstance(message.event, events.SubtaskAcked):
        yield Step.ACK


def _completions(storage: StorageActions, action: actions.CreateEntry) -> Iterable[Step]:
    del storage
    if isinstance(action.entry, CheckpointLogged):
        yield Step.ENTRY


# -- the slots' steps


def inject_slot_faults() -> None:
    """From now on this process, and all that it forks, are slots with injected faults."""
    injector = FaultInjector(_orders(), lambda: [os.getpid()])
    barriers = Barriers()
    injector.at(Mailbox, "_take", barriers.in_turn)
    injector.at(Mailbox, "_arrive", barriers.out_of_turn)
    injector.at(SubtaskRunner, "_capture", _always(Step.CAPTURE))
    injector.at(SnapshotWriter, "_write", _always(Step.UPLOAD))
    injector.at(MergedFiles, "_write", _always(Step.UPLOAD))
    injector.at(SnapshotWriter, "_upload_in_flight", _always(Step.IN_FLIGHT))
    injector.at(SubtaskRunner, "_report_ack", _always(Step.ACK), (Moment.BEFORE,))
    injector.at(SubtaskRunner, "_carry_out", _completions_heard)
    write_down_local_reads(_orders().directory)


@dataclass
class Barriers:
    """Knows the first barrier of a checkpoint from the others, at each subtask."""

    seen: set[tuple[object, ...]] = field(default_factory=set)

    def in_turn(self, mailbox: Mailbox, runner: SubtaskRunner, turn: object) -> Iterable[Step]:
        """A trigger, or a barrier that all before it has been processed of."""
        del mailbox
        match turn:
            case Mail(_, Barrier()):
                yield Step.BARRIER
            case ControlMarker(_, _, Barrier() as barrier):
                yield from self._steps(runner, barrier)

    def out_of_turn(
        self, mailbox: Mailbox, run: Run, channel: ChannelId, element: object
    ) -> Iterable[Step]:
        """A barrier that overtakes is heeded as soon as it arrives."""
        if not isinstance(element, Barrier) or not element.overtakes:
            return
        for runner in mailbox._runners.values():  # noqa: SLF001 - as the mailbox finds it
            if runner.run == run and channel in runner.task.inboxes:
                yield from self._steps(runner, element)

    def _steps(self, runner: SubtaskRunner, barrier: Barrier) -> Iterable[Step]:
        yield Step.BARRIER
        this = (runner.run, runner.subtask, barrier.checkpoint)
        if this not in self.seen and _has_several_inputs(runner):
            yield Step.ALIGNMENT
        self.seen.add(this)


def _has_several_inputs(runner: SubtaskRunner) -> bool:
    """What was in flight in the restored checkpoint comes by a channel without barriers."""
    return sum(channel.sender != RECOVERED for channel in runner.task.inboxes) > 1


def _completions_heard(runner: SubtaskRunner, order: object) -> Iterable[Step]:
    del runner
    if isinstance(order, Complete):
        yield Step.HEARD
