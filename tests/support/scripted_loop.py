"""A driver's loop with an action runner that carries out each action at once, and answers.

Slots, storage and sinks exist only as answers: whatever the core orders has happened by the next
event. A test adds events, by sending them to the loop or by changing an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coordinated_job import TOPOLOGY, a_snapshot, an_epoch
from weir.core import attempt as attempts
from weir.core.coordinator import actions, events
from weir.core.coordinator.actions import EndDriver
from weir.core.ids import RequestId, SlotId
from weir.core.job_master import Action, Event, Job, Launch
from weir.core.lifecycle import SubtaskRunning
from weir.core.policy import Policy
from weir.core.restarts import NoRestart, Strategy
from weir.core.snapshots import CheckpointKind
from weir.core.stall_detector import StallDetector
from weir.driver.loop import Loop, StepListener
from weir.driver.trace import InitialState

ASKED = RequestId("asked")
SLOTS = (SlotId("slot-0"), SlotId("slot-1"))


def an_initial_state(
    policy: Policy | None = None, strategy: Strategy | None = None
) -> InitialState:
    return InitialState(
        policy or Policy(),
        TOPOLOGY,
        strategy or NoRestart(),
        an_epoch(),
        {},
        without_in_flight=False,
        health=StallDetector(),
    )


@dataclass
class ImmediateActionRunner:
    """Everything works. ``says`` may answer an action differently, or not at all."""

    enqueue: Callable[[Event], None] = print
    says: dict[type, Callable[[Action, Job], Sequence[Event]]] = field(default_factory=dict)
    done: list[Action] = field(default_factory=list)

    def carry_out(self, action: Action, job: Job) -> None:
        self.done.append(action)
        answer = self.says.get(type(action))
        for event in answer(action, job) if answer else usual_answer(action, job):
            self.enqueue(event)

    def of(self, kind: type) -> list[Action]:
        return [action for action in self.done if isinstance(action, kind)]


def usual_answer(action: Action, job: Job) -> Sequence[Event]:
    match action:
        case Launch(attempt, _, placements):
            return [SubtaskRunning(attempt, subtask) for subtask, _, _ in placements]
        case actions.Trigger(barrier):
            everyone = job.coordinator.subtasks.running.items()
            return [
                events.SubtaskAcked(
                    attempt, barrier.checkpoint, s, a_snapshot(barrier.checkpoint, s)
                )
                for s, attempt in everyone
            ]
        case _:
            return _outside(action)


def _outside(action: Action) -> Sequence[Event]:
    match action:
        case actions.LookForSuccessor(index):
            return [events.NoSuccessorSeen(index)]
        case actions.WriteManifest(manifest):
            return [events.ManifestWritten(manifest.checkpoint)]
        case actions.CreateEntry(index):
            return [events.EntryCreated(index)]
        case actions.ResolveTransactions(ticket):
            return [events.TransactionsResolved(ticket)]
        case actions.CommitTransactions(_, commit):
            return [events.CommitConfirmed(commit.sink, commit.sequence)]
        case actions.DeleteFiles(ticket):
            return [events.FilesDeleted(ticket)]
        case _:
            return []


def a_loop(
    action_runner: ImmediateActionRunner,
    *listeners: StepListener,
    initial_state: InitialState | None = None,
) -> tuple[Loop, tuple[Action, ...]]:
    job, owed = (initial_state or an_initial_state()).job()
    loop = Loop("orders", action_runner, listeners, job)
    action_runner.enqueue = loop.enqueue
    return loop, owed


def drive(
    action_runner: ImmediateActionRunner,
    *listeners: StepListener,
    initial_state: InitialState | None = None,
) -> EndDriver:
    """A job with two slots takes one checkpoint and is canceled when that is answered."""
    loop, owed = a_loop(action_runner, *listeners, initial_state=initial_state)
    action_runner.says.setdefault(actions.CompleteRequest, lambda *_: [attempts.CancelRequested()])
    action_runner.says.setdefault(attempts.ReportStatus, _ask_once_running)
    for slot in SLOTS:
        loop.enqueue(attempts.SlotRegistered(slot, "executor"))
    loop.enqueue(attempts.JobStarted())
    return loop.run(owed)


def _ask_once_running(action: Action, job: Job) -> Sequence[Event]:
    del job
    assert isinstance(action, attempts.ReportStatus)
    if action.status.value != "running":
        return []
    return [events.CheckpointRequested(ASKED, CheckpointKind.CHECKPOINT)]
