"""Feeds events to a job's attempts, in as little code as a test should need.

The job reads rows in two subtasks and sums them in two more; how the rows travel decides how many
regions that makes. A test gives the next event and checks the actions that follow.
"""

from collections.abc import Iterable
from typing import TypeVar

from weir.core.attempt import (
    AttemptAction,
    AttemptEvent,
    AttemptFailed,
    FailureCause,
    JobStarted,
    ReportStatus,
    RestorePointReady,
    SlotLost,
    SlotRegistered,
    SubtaskFailed,
    initial,
    step,
)
from weir.core.ids import AttemptId, EdgeId, Millis, OperatorId, SlotId, SubtaskId
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import Restoring
from weir.core.restarts import UNLIMITED, FixedDelay, Strategy
from weir.core.topology import Edge, EdgeKind, Operator, Topology

DELAY = 100
PATIENT = FixedDelay(UNLIMITED, DELAY)

READ, SUM = OperatorId("read"), OperatorId("sum")
READ_0, READ_1 = SubtaskId(READ, 0), SubtaskId(READ, 1)
SUM_0, SUM_1 = SubtaskId(SUM, 0), SubtaskId(SUM, 1)
EVERYTHING = (READ_0, READ_1, SUM_0, SUM_1)
FIRST, SECOND = (READ_0, SUM_0), (READ_1, SUM_1)

OPERATORS = (Operator(READ, 2), Operator(SUM, 2))

SHUFFLED = Topology(OPERATORS, (Edge(EdgeId("rows"), READ, SUM, EdgeKind.HASH),))
"""One region: everything is connected."""

FORWARDED = Topology(OPERATORS, (Edge(EdgeId("rows"), READ, SUM, EdgeKind.FORWARD),))
"""Two regions: FIRST in one slot, SECOND in the other."""

APART = Topology(OPERATORS, ())
"""Four regions, two in each slot."""

A = TypeVar("A")


class Job:
    """A job and its events; each method returns the actions that follow."""

    def __init__(self, topology: Topology = SHUFFLED, strategy: Strategy = PATIENT) -> None:
        self.state = initial(topology, strategy)

    def tell(self, *events: AttemptEvent) -> list[AttemptAction]:
        all_actions: list[AttemptAction] = []
        for event in events:
            self.state, actions = step(self.state, event)
            all_actions.extend(actions)
        return all_actions

    def slots(self, *slots: str) -> list[AttemptAction]:
        """Slots register: ``"a"`` on executor e1, ``"b@e2"`` on e2."""
        places = [(slot.partition("@")[0], slot.partition("@")[2] or "e1") for slot in slots]
        return self.tell(*(SlotRegistered(SlotId(slot), executor) for slot, executor in places))

    def later(self, millis: int = DELAY) -> list[AttemptAction]:
        return self.tell(TimePassed(Millis(self.state.now + millis)))

    def restored(self) -> list[AttemptAction]:
        assert isinstance(self.state.phase, Restoring), "no restore point was requested"
        return self.tell(RestorePointReady(self.state.phase.attempt))

    def up(self, *subtasks: SubtaskId) -> list[AttemptAction]:
        return self.tell(*(SubtaskRunning(self.attempt_of(s), s) for s in subtasks))

    def finished(self, *subtasks: SubtaskId) -> list[AttemptAction]:
        return self.tell(*(SubtaskFinished(self.attempt_of(s), s) for s in subtasks))

    def failed(
        self, subtask: SubtaskId, cause: FailureCause = FailureCause.CONNECTION
    ) -> list[AttemptAction]:
        return self.tell(SubtaskFailed(self.attempt_of(subtask), subtask, cause, 0.5))

    def lost(self, slot: str) -> list[AttemptAction]:
        return self.tell(SlotLost(SlotId(slot), 0.5))

    def doomed(self) -> list[AttemptAction]:
        return self.tell(AttemptFailed("no checkpoint for too long", 0.5))

    def attempt_of(self, subtask: SubtaskId) -> AttemptId:
        return self.state.graph.executions[subtask].attempt


def a_deploying_job(
    topology: Topology = SHUFFLED,
    strategy: Strategy = PATIENT,
    slots: tuple[str, ...] = ("a", "b"),
) -> Job:
    job = Job(topology, strategy)
    job.slots(*slots)
    job.tell(JobStarted())
    job.restored()
    return job


def a_running_job(
    topology: Topology = SHUFFLED,
    strategy: Strategy = PATIENT,
    slots: tuple[str, ...] = ("a", "b"),
) -> Job:
    job = a_deploying_job(topology, strategy, slots)
    job.up(*topology.subtasks)
    assert job.state.reported == ReportStatus(JobStatus.RUNNING, 0)
    return job


def statuses(actions: Iterable[AttemptAction]) -> list[JobStatus]:
    return [action.status for action in actions if isinstance(action, ReportStatus)]


def each(kind: type[A], actions: Iterable[AttemptAction]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def only(kind: type[A], actions: Iterable[AttemptAction]) -> A:
    (found,) = each(kind, actions)
    return found
