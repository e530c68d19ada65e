"""A simulated slot: the production mailbox over a simulated exchange, storage and executor.

What the real slot does with threads and sockets happens through the world's heap: messages of the
driver, elements of the network and the ends of uploads wake the mailbox, and a turn takes its time.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Protocol, TypeVar

from simulation.external import External
from simulation.network import Network
from simulation.row_router import RowRouter
from simulation.row_values import RowsFormat
from simulation.scenario import Scenario
from simulation.simulated_operators import (
    KeyedOperator,
    MapOperator,
    OperatorEnvironment,
    SimulatedSourceOperator,
    SinkOperator,
    UnionMapOperator,
)
from simulation.slot_observer import DrawnBudget, ObservedTask, ObservedTurns
from simulation.slot_storage import SlotStorage
from simulation.store import Store
from simulation.world import World
from weir.core.coordinator.events import SubtaskAcked
from weir.core.ids import CheckpointId, EdgeId, Epoch, SlotId
from weir.core.topology import Topology
from weir.exchange import Run
from weir.ports.operators import Captured, Operator, TaskInfo
from weir.slot.event_time import EventTime
from weir.slot.mailbox import Mailbox
from weir.slot.pipeline import Pipeline
from weir.slot.snapshot_uploads import UploadMemory
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.subtask_deployment import (
    AlignmentSettings,
    SlotExecutors,
    SubtaskDeployer,
    make_task,
)
from weir.slot.subtask_runner import SubtaskRunner
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import DeploySubtasks

T = TypeVar("T")


class SlotDriver(Protocol):
    """The driver of a slot."""

    epoch: Epoch
    topology: Topology

    def receive(self, slot: SlotId, event: object) -> None: ...


class SlotEnvironment(Protocol):
    """What a slot finds in its world."""

    world: World
    scenario: Scenario
    store: Store
    external: External
    network: Network


class SimulatedFactory:
    """Makes subtasks of operators that count rows."""

    def __init__(self, sim: SlotEnvironment, topology: Topology) -> None:
        self.topology = topology
        self._sim = sim
        self._roles = dict(sim.scenario.shape.roles)
        policy = sim.scenario.policy
        self._alignment = AlignmentSettings(policy.mode, not policy.after_tasks_finish)

    def keys(self, edge: EdgeId) -> Sequence[str]:
        del edge
        return ()

    def operator(self, place: TaskInfo) -> Operator:
        sim, scenario = self._sim, self._sim.scenario
        env = OperatorEnvironment(sim.world, scenario.chances, self.topology, sim.external, place)
        match self._roles[place.subtask.operator]:
            case "source":
                return SimulatedSourceOperator(env, scenario.rows, scenario.pace)
            case "map":
                return MapOperator(env)
            case "union":
                return UnionMapOperator(env)
            case "sink":
                return SinkOperator(env)
            case _:
                return KeyedOperator(env)

    def runner(self, run: Run, operator: Operator, writer: SnapshotWriter) -> SubtaskRunner:
        subtask, topology, world = writer.subtask, self.topology, self._sim.world
        make = partial(ObservedTask, world)
        task = make_task(subtask, topology, self._alignment, self._sim.scenario.credit, make)
        assert isinstance(task, ObservedTask)
        return SubtaskRunner(
            run=run,
            task=task,
            operator=_observed(operator, task),
            pipeline=Pipeline(()),
            routers=(RowRouter(topology, subtask),),
            writer=writer,
            format=writer.format,
            time=EventTime(topology.inputs[subtask]),
            output_limit=self._sim.scenario.output_limit,
            timer=lambda: world.now / 1000,
            budget=DrawnBudget(world),
        )


def _observed(operator: Operator, task: ObservedTask) -> Operator:
    """The task checks each capture; a source reads nothing behind its last savepoint."""
    capture = operator.capture

    def checked(checkpoint: CheckpointId) -> Captured:
        task.check_capture(checkpoint)
        if isinstance(operator, SimulatedSourceOperator):
            operator.source.is_stopped |= task.parts[checkpoint].barrier.kind.is_synchronous
        return capture(checkpoint)

    operator.capture = checked  # type: ignore[method-assign]
    return operator


class SimulatedExecutor(Executor):
    """Does the work at a moment that is drawn."""

    def __init__(self, world: World, latency: Callable[[], int]) -> None:
        self._world = world
        self._latency = latency

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
        assert not kwargs
        self._world.at(self._latency(), fn, *args)
        return Future()


class DrawnMemory(UploadMemory):
    """Full now and then."""

    def __init__(self, world: World, chance: float) -> None:
        super().__init__()
        self._world = world
        self._chance = chance

    def refusal(self, checkpoint: CheckpointId) -> str:
        if self._world.chance(self._chance):
            self._world.saw("fault: snapshot declined")
            return "the memory of the slot is full"
        return super().refusal(checkpoint)


class Slot:
    """One Python process of the job."""

    def __init__(self, name: SlotId, sim: SlotEnvironment, driver: SlotDriver) -> None:
        self.name = name
        self.world = sim.world
        self.is_alive = True
        self.stands_still = False
        self._network = sim.network
        self._driver = driver
        self._exchange = sim.network.connect(name, self.wake)
        self._turns = ObservedTurns(sim.world, sim.scenario)
        self._mailbox = Mailbox(
            self._deployer(sim, driver),
            self._exchange,
            self._report,
            ProcessClock(lambda: sim.world.millis, lambda: sim.world.millis),
            self._turns,
        )
        self._next_step: int | None = None
        self._busy_until = 0

    def _deployer(self, sim: SlotEnvironment, driver: SlotDriver) -> SubtaskDeployer:
        world, store = sim.world, sim.store
        executors = SlotExecutors(
            uploading=SimulatedExecutor(world, store.latency),
            reading=SimulatedExecutor(world, lambda: world.delay(1, 17)),
            materializing=SimulatedExecutor(world, store.latency),
        )
        return SubtaskDeployer(
            SimulatedFactory(sim, driver.topology),
            SlotStorage(store, driver.epoch, sim.scenario),
            executors,
            row_format=RowsFormat(world),
            memory=DrawnMemory(world, sim.scenario.chances.declined),
        )

    def _report(self, event: object) -> None:
        if isinstance(event, SubtaskAcked) and event.snapshot.in_flight:
            self.world.saw("acked in-flight data")
        self._driver.receive(self.name, event)

    # -- what happens to the process

    def post(self, message: object) -> None:
        """A message of the driver."""
        if isinstance(message, DeploySubtasks):
            finished = sum(
                state_assignment.finished for state_assignment in message.state_assignments
            )
            self.world.seen["restored as finished"] += finished
        self._mailbox.post(message)

    def die(self) -> None:
        """Kill -9."""
        if self.is_alive:
            self.is_alive = False
            self._network.lose_slot(self.name)

    def stand_still(self, millis: int) -> None:
        """The process pauses: the machine swaps, or a debugger stops it."""
        self.stands_still = True
        self.world.at(millis, self._go_on)

    def _go_on(self) -> None:
        self.stands_still = False
        self.wake()

    # -- steps

    def wake(self) -> None:
        self._step_at(self.world.now + 1)

    def _step_at(self, due: int) -> None:
        """No earlier than the turn under way ends; a step that is due before is enough."""
        due = max(due, self._busy_until)
        if self._next_step is None or due < self._next_step:
            self._next_step = due
            self.world.at(due - self.world.now, self._step, due)

    def _step(self, due: int) -> None:
        if due != self._next_step:
            return
        self._next_step = None
        if not self.is_alive or self.stands_still:
            return
        self._mailbox.step()
        wait_ms = self._exchange.wait_seconds * 1000
        if wait_ms:
            self._busy_until = self.world.now
            self._step_at(self.world.now + max(round(wait_ms), 1))
        else:
            self._busy_until = self.world.now + self._turns.cost_ms
            self._step_at(self._busy_until)
