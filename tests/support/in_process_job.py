"""A whole job in one thread: a driver's decisions and storage, real slots, real files.

Only the processes are simulated. The test steps the slots in turn; their uploads and the
driver's storage work at once, or when the test lets them; the link between a driver and its slots
is a call; the clock is the test's. A process is killed by forgetting it, and what it had not done
is never done.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import cast

from stepped_slots import SECRET, USUAL, SteppedExecutor
from weir.api.state_config import StateConfig
from weir.core import attempt as attempts
from weir.core import restore_decision
from weir.core.coordinator import events
from weir.core.coordinator.actions import EndDriver, RequestFailed, RequestSucceeded
from weir.core.enumerator import Pool, Splits
from weir.core.ids import AttemptId, Millis, OperatorId, RequestId, SlotId, SplitId, SubtaskId
from weir.core.invariants import violations
from weir.core.job_master import Event, SplitsFound, step
from weir.core.lifecycle import JobStatus, TimePassed
from weir.core.policy import Policy
from weir.core.restarts import UNLIMITED, FixedDelay
from weir.core.snapshots import CheckpointKind
from weir.core.stall_detector import StallDetector
from weir.dataflow.physical import JobGraph, SourceHead
from weir.driver.action_runner import ActionRunner, SlotLinks
from weir.driver.job_startup import JobStartup, TakenOver
from weir.driver.sink_committers import SinkCommitters
from weir.driver.storage_actions import StorageActions
from weir.driver.trace import InitialState
from weir.errors import Unavailable
from weir.exchange import Exchange
from weir.slot.file_storage import Segment
from weir.slot.mailbox import Mailbox
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.subtask_deployment import SlotExecutors, StageFactory, SubtaskDeployer
from weir.state.backends import backends_of
from weir.storage.file_store import FileStore
from weir.storage.job_log_store import JobLog
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import CheckpointCompleted, SubtaskFailure, SubtaskMessage

RESTART_MS = 5
_LONG_ENOUGH = 30.0


class FailingStateFiles(SnapshotStorage):
    """A slot's storage that refuses a put on demand."""

    def __init__(self, keeping: SnapshotStorageSettings) -> None:
        super().__init__(keeping)
        self.refuses_after: int | None = None
        """So many more puts succeed, and the next does not."""

    def put_merged(self, path: str, segments: Sequence[Segment]) -> None:
        if self.refuses_after == 0:
            self.refuses_after = None
            raise Unavailable("the storage is not there", retry_after=1.0)
        if self.refuses_after:
            self.refuses_after -= 1
        super().put_merged(path, segments)


@dataclass
class SlotProcess:
    """One slot, as long as it lives."""

    exchange: Exchange
    mailbox: Mailbox
    hand: SteppedExecutor
    files: FailingStateFiles
    hears_completions: bool = True

    def step(self) -> None:
        self.exchange.wake()
        self.mailbox.step()


@dataclass
class DriverProcess:
    """One epoch: the core's decisions, and hands that reach the slots of this process."""

    begun: TakenOver
    beginning: InitialState
    store: FileStore
    add_slot: Callable[["DriverProcess"], None]
    """As Spark starts a lost task again."""
    hand: SteppedExecutor = field(default_factory=SteppedExecutor)
    slots: dict[SlotId, SlotProcess] = field(default_factory=dict)
    answers: dict[RequestId, RequestSucceeded | RequestFailed] = field(default_factory=dict)
    status: JobStatus = JobStatus.CREATED
    end: EndDriver | None = None

    def __post_init__(self) -> None:
        self.heard: deque[Event] = deque()
        self.job, owed = self.beginning.job()
        assert not owed, "a job without sinks owes no commits"
        journal = JobLog(self.store, self.beginning.epoch_state.directory)
        self.hands = ActionRunner(
            self.beginning.epoch_state.epoch,
            cast("SlotLinks", self),
            StorageActions(self.store, journal, self.hand, self.heard.append),
            SinkCommitters({}, self.heard.append, print),
            self.answers.__setitem__,
            self.heard.append,
        )
        self.heard.append(attempts.JobStarted())

    # -- decisions

    def step(self, now: Millis) -> None:
        self.heard.append(TimePassed(now))
        while self.heard and self.end is None:
            event = self.heard.popleft()
            self.job, actions = step(self.job, event)
            assert not (broken := violations(self.job)), f"{event} broke a promise: {broken[0]}"
            for action in actions:
                if isinstance(action, EndDriver):
                    self.end = action
                    return
                if isinstance(action, attempts.ReportStatus):
                    self.status = action.status
                self.hands.carry_out(action, self.job)

    def hear(self, said: object) -> None:
        """What a slot says."""
        if isinstance(said, SubtaskFailure):
            said = attempts.SubtaskFailed(said.attempt, said.subtask, said.cause, 0.5)
        self.heard.append(cast("Event", said))

    # -- the slots, as the hands see them

    def send(self, slot: SlotId, message: object) -> None:
        if slot in self.slots:
            self.slots[slot].mailbox.post(message)

    def send_to_subtask(
        self, slot: SlotId, subtask: SubtaskId, attempt: AttemptId, message: object
    ) -> None:
        is_lost = (
            isinstance(message, CheckpointCompleted) and not self.slots[slot].hears_completions
        )
        if not is_lost:
            self.send(slot, SubtaskMessage(subtask, attempt, message))

    def recycle(self, slot: SlotId) -> None:
        self.lose(slot)

    def addresses(self) -> dict[SlotId, tuple[str, int]]:
        return {name: slot.exchange.address for name, slot in self.slots.items()}

    def lose(self, slot: SlotId) -> None:
        """A slot dies, and another comes in its place."""
        self.slots.pop(slot).exchange.close()
        self.heard.append(attempts.SlotLost(slot, 0.5))
        self.add_slot(self)


class InProcessJob:
    """A job and its directory, through any number of drivers."""

    def __init__(self, keeping: SnapshotStorageSettings, graph: Callable[[int], JobGraph]) -> None:
        self.directory = f"{keeping.storage}/job"
        self.store = FileStore()
        self.now = 0
        self.drivers: list[DriverProcess] = []
        self._keeping = keeping
        self.graph = graph
        self._slots_made = 0
        self._asked = 0

    @property
    def driver(self) -> DriverProcess:
        return self.drivers[-1]

    @property
    def slots(self) -> list[SlotProcess]:
        return list(self.driver.slots.values())

    # -- what a person or a cluster does

    def start(
        self,
        policy: Policy,
        width: int,
        restore_request: restore_decision.RestoreRequest,
        splits: Splits,
    ) -> None:
        """A new driver takes over; the slots of the one before it are gone."""
        self.close_slots()
        graph = self.graph(width)
        who = f"driver-{len(self.drivers)}"
        journal = JobLog(self.store, self.directory)
        starting = JobStartup(self.store, journal, self.directory, who, restore_request)
        begun = starting.take_over(graph.topology)
        assert isinstance(begun, TakenOver), "the job is not over"
        pools = {
            stage.operator: _restored(begun, stage.operator, splits)
            for stage in graph.stages
            if isinstance(stage.head, SourceHead)
        }
        restarts = FixedDelay(UNLIMITED, RESTART_MS)
        beginning = InitialState(
            policy,
            graph.topology,
            restarts,
            begun.epoch_state,
            pools,
            without_in_flight=False,
            health=StallDetector(),
        )
        driver = DriverProcess(begun, beginning, self.store, self._add_slot)
        self.drivers.append(driver)
        for _ in range(graph.topology.slots_needed):
            self._add_slot(driver)
        self.until_running()

    def _add_slot(self, driver: DriverProcess) -> None:
        self._slots_made += 1
        name = SlotId(f"slot-{self._slots_made}")
        graph = self.graph(driver.beginning.topology.slots_needed)
        exchange = Exchange(name, "127.0.0.1", SECRET, None)
        hand, files = SteppedExecutor(), FailingStateFiles(self._keeping)
        factory = StageFactory(graph, USUAL, backends_of(StateConfig()))
        deployer = SubtaskDeployer(factory, files, SlotExecutors(hand, hand, hand))
        clock = ProcessClock(lambda: Millis(self.now), lambda: Millis(self.now))
        mailbox = Mailbox(deployer, exchange, driver.hear, clock)
        driver.slots[name] = SlotProcess(exchange, mailbox, hand, files)
        driver.heard.append(attempts.SlotRegistered(name, "executor"))

    def find(self, *splits: SplitId) -> None:
        """Discovery goes on, for every source."""
        for operator in self.driver.job.splits:
            found = SplitsFound(operator, splits, splits[-1], is_final=False)
            self.driver.heard.append(found)

    def kill(self, number: int) -> None:
        self.driver.lose(list(self.driver.slots)[number])

    def ask(self, kind: CheckpointKind, location: str = "") -> RequestId:
        self._asked += 1
        request = RequestId(f"request-{self._asked}")
        self.driver.heard.append(events.CheckpointRequested(request, kind, location))
        return request

    def answer(self, request: RequestId) -> RequestSucceeded | RequestFailed:
        answers = self.driver.answers
        self.until(lambda: request in answers)
        return answers[request]

    def cancel(self) -> None:
        self.driver.heard.append(attempts.CancelRequested())
        self.until(lambda: self.driver.end is not None)
        self.close_slots()

    def close_slots(self) -> None:
        for driver in self.drivers[-1:]:
            for slot in driver.slots.values():
                slot.exchange.close()
            driver.slots.clear()

    # -- time

    def step(self) -> None:
        self.now += 1
        for slot in self.slots:
            slot.step()
        self.driver.step(Millis(self.now))

    def settle(self, steps: int = 10) -> None:
        """Long enough for messages that are under way to have come."""
        for _ in range(steps):
            self.step()

    def until(self, done: Callable[[], object]) -> None:
        deadline = monotonic() + _LONG_ENOUGH
        while not done():
            assert monotonic() < deadline, f"the job is {self.driver.status}"
            self.step()

    def until_running(self) -> None:
        self.until(lambda: self.driver.status is JobStatus.RUNNING)


def _restored(begun: TakenOver, operator: OperatorId, splits: Splits) -> Splits:
    """The pool of the checkpoint; without one all splits are free."""
    resolution = begun.resolution
    if not isinstance(resolution, restore_decision.RestoreFrom):
        return splits
    for named, state in resolution.manifest.coordinators:
        if named == operator and isinstance(state, Pool):
            return Splits(state.free, seen=state.seen, is_final=False)
    return splits


def all_free(*splits: SplitId) -> Splits:
    """All that there are, and the readers wait for more."""
    return Splits(splits, is_final=False)
