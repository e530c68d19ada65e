"""A simulated driver process: takes its epoch, runs the production job machine, obeys it.

It owns no decision: the production job machine decides, and the production ``ActionRunner`` passes
its actions to the ports. Storage, external commits and links answer through the world's heap, late
or with doubt; every answer goes into ``job.step`` as an event, and the invariants are checked after
every step. A paused driver handles nothing until it wakes, which is how zombies are made.
"""

from typing import Protocol

from simulation import discovery
from simulation.coverage import watch_step
from simulation.driver_ports import (
    PortEnvironment,
    SimulatedCommitters,
    SimulatedSlotLinks,
    SimulatedStorage,
)
from simulation.driver_takeover import DriverTakeover
from simulation.slot import Slot
from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core import restore_decision, takeover
from weir.core.coordinator import actions, events
from weir.core.enumerator import Splits
from weir.core.ids import CheckpointId, Epoch, Millis, OperatorId, RequestId, SlotId
from weir.core.invariants import violations
from weir.core.job_master import Action, Event, Job, Launch, next_deadline, step
from weir.core.lifecycle import JobStatus
from weir.core.snapshots import Manifest
from weir.core.stall_detector import StallDetector
from weir.core.topology import Topology
from weir.driver.action_runner import ActionRunner
from weir.driver.loop_clock import LoopClock
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import SubtaskFailure

DIRECTORY = "job"
REPEATABLE = (events.SubtaskAcked, events.SubtaskDeclined, events.SubtaskProgressed)


class Setting(PortEnvironment, Protocol):
    """What a driver finds in its world."""

    @property
    def current(self) -> "Driver": ...
    def name_slot(self) -> SlotId: ...
    def kill_driver(self, driver: "Driver") -> None: ...
    def check_restore(self, driver: "Driver", manifest: Manifest) -> None: ...
    def ended(self, driver: "Driver", status: JobStatus, *, fenced: bool) -> None: ...
    def answered(
        self,
        driver: "Driver",
        request: RequestId,
        outcome: actions.RequestSucceeded | actions.RequestFailed,
    ) -> None: ...


class Driver:
    """One driver process of one deployment."""

    def __init__(
        self, sim: Setting, name: str, restore_request: restore_decision.RestoreRequest, salt: int
    ) -> None:
        self.sim = sim
        self.world = sim.world
        self.name = name
        self.restore_request = restore_request
        self.topology: Topology = sim.scenario.topology(salt=salt)
        self.alive = True
        self.paused = False
        self.epoch = Epoch(0)
        self.job: Job | None = None
        self.slots: dict[SlotId, Slot] = {}
        self._links = SimulatedSlotLinks(sim, self)
        self.asked: set[str] = set()
        self.known: set[str] = set()
        self.skew = 0
        """How far this machine's wall clock has been set, in ms."""
        self.time = LoopClock(
            ProcessClock(lambda: self.world.millis, lambda: Millis(self.world.now + self.skew))
        )
        self.salt = salt
        self.status = JobStatus.CREATED
        self._inbox: list[Event] = []
        self._deadline = -1

    # -- taking over

    def start(self) -> None:
        DriverTakeover(self.world, self.sim.store, self).read_log()

    def over(self, status: JobStatus) -> None:
        """This very submission has ended before."""
        self.alive = False
        self.sim.ended(self, status, fenced=False)

    def begin_epoch(self, claimed: takeover.Claim, resolution: restore_decision.Resolution) -> None:
        state_of_epoch = takeover.epoch_state(claimed, resolution, DIRECTORY)
        self.epoch = state_of_epoch.epoch
        self._runner = self._action_runner()
        self.world.record(self.name, f"runs as epoch {self.epoch}")
        self.sim.external.widths = {o.id: o.parallelism for o in self.topology.operators}
        state, commits = checkpoints.begin(self.sim.scenario.policy, self.topology, state_of_epoch)
        self.job = Job(
            attempts.initial(self.topology, self.sim.scenario.strategy),
            state,
            self._splits(resolution),
            without_in_flight=False,
            health=StallDetector(self.sim.scenario.health_ms),
        )
        self._carry_out_all(commits)
        if isinstance(resolution, restore_decision.ReplayCommit):
            self.handle(events.StatusReported(JobStatus.STOPPED, 0.5))
            return
        for _ in range(self.topology.slots_needed + self.sim.scenario.standby):
            self._new_slot()
        self.handle(attempts.JobStarted())

    def _action_runner(self) -> ActionRunner:
        return ActionRunner(
            self.epoch,
            self._links,
            SimulatedStorage(self.sim, self),
            SimulatedCommitters(self.sim, self, self._links),
            lambda request, outcome: self.sim.answered(self, request, outcome),
            self.handle,
        )

    def _splits(self, resolution: restore_decision.Resolution) -> dict[OperatorId, Splits]:
        found = discovery.pools(self.sim.scenario, self.topology, resolution)
        for operator, pool in found.items():
            if not pool.is_final:
                self.world.at(self.world.delay(20, 300), self._find, operator)
        return found

    def _find(self, operator: OperatorId) -> None:
        self.world.saw("splits were found late")
        self.handle(discovery.second_look(self.sim.scenario, self.topology, operator))

    # -- slots come and go

    def _new_slot(self) -> None:
        if not self.alive or self._links.are_dismissed:
            return
        name = self.sim.name_slot()
        self.slots[name] = Slot(name, self.sim, self)
        executor = f"executor-{len(self.slots) % 2}"
        self.receive(name, attempts.SlotRegistered(name, executor))

    def lose_slot(self, name: SlotId) -> None:
        """The process died; the driver notices, and Spark starts another."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        slot.die()
        lost = attempts.SlotLost(name, self.world.rng.random())
        self.world.at(self.world.delay(1, 30), self.handle, lost)
        self.world.at(self.world.delay(5, 60), self._new_slot)

    def die(self) -> None:
        """The driver's process and, a moment later, its slots."""
        self.alive = False
        self.world.record(self.name, "died")
        for slot in self.slots.values():
            self.world.at(self.world.delay(0, 40), slot.die)

    # -- links

    def receive(self, slot: SlotId, event: object) -> None:
        """A slot reports something. Only what may repeat or be missed is ever lost or doubled."""
        if isinstance(event, SubtaskFailure):
            draw = self.world.rng.random()
            event = attempts.SubtaskFailed(event.attempt, event.subtask, event.cause, draw)
        for copy in range(self._links.copies(is_repeatable=isinstance(event, REPEATABLE))):
            late = self.world.delay(0, 150) if copy else 0
            self.world.at(self._links.in_order("up", slot) + late, self._received, slot, event)

    def _received(self, slot: SlotId, event: Event) -> None:
        if slot in self.slots:
            if isinstance(event, events.SubtaskAcked):
                self.known.update(file.path for file in event.snapshot.files())
            self.handle(event)

    # -- the loop

    def handle(self, event: Event) -> None:
        if not self.alive or self.job is None:
            return
        if self.paused:
            self._inbox.append(event)
            return
        self._pass_time()
        if self.alive:
            self._step(event)
        self._watch_time()

    def wake(self) -> None:
        """SIGCONT: everything that piled up is handled at once."""
        self.paused = False
        waiting, self._inbox = self._inbox, []
        for event in waiting:
            self.handle(event)
        self._watch_time()

    def _step(self, event: Event) -> None:
        assert self.job is not None
        before = self.job
        self.job, decided = step(before, event)
        self.world.record(self.name, event)
        watch_step(self.world, before, self.job, event, decided)
        if not _only_time_passed(before, self.job):
            for violation in violations(self.job):
                self.world.violated(violation)
        self._carry_out_all(decided)

    def _carry_out_all(self, decided: tuple[Action, ...]) -> None:
        for action in decided:
            if self.alive:
                self.world.record(self.name, action)
                self._carry_out(action)

    def _watch_time(self) -> None:
        if not self.alive or self.job is None:
            return
        deadline = next_deadline(self.job)
        if deadline is not None and deadline != self._deadline:
            self._deadline = deadline
            self.world.at(max(self.time.left_ms(deadline), 1), self._time, deadline)

    def _time(self, deadline: int) -> None:
        """A paused driver looks at its deadlines when it wakes."""
        if deadline != self._deadline:
            return
        self._deadline = -1
        if self.alive and not self.paused:
            self._pass_time()
            self._watch_time()

    def _pass_time(self) -> None:
        passed = self.time.passed(self.world.rng.random)
        if passed is not None:
            self._step(passed)

    # -- actions

    def _carry_out(self, action: Action) -> None:
        """The production runner picks the port; faults and checks stand around it."""
        match action:
            case actions.EndDriver(status, fenced):
                self.alive = False
                for slot in self.slots.values():
                    slot.die()
                self.sim.ended(self, status, fenced=fenced)
                return
            case actions.SnapshotOperators(checkpoint, operators):
                for operator in operators:
                    self._snapshot_hook(checkpoint, operator)
                return
            case Launch(restore=actions.RestoreManifest(manifest)):
                self.sim.check_restore(self, manifest)
            case attempts.ReportStatus(status):
                self.status = status
            case _:
                pass
        assert self.job is not None
        self._runner.carry_out(action, self.job)
        if isinstance(action, actions.NotifyCompleted) and action.kind.is_synchronous:
            self._maybe_die()

    def _maybe_die(self) -> None:
        """The worst moment: the stop is decided and not yet carried out."""
        if self is self.sim.current and self.world.chance(
            self.sim.scenario.chances.death_while_stopping
        ):
            self.world.saw("fault: driver dies while stopping")
            self.world.at(self.world.delay(0, 15), self.sim.kill_driver, self)

    def _snapshot_hook(self, checkpoint: CheckpointId, operator: OperatorId) -> None:
        wait = self.world.delay(1, self.sim.scenario.hook_delay)
        if self.world.chance(self.sim.scenario.chances.hook_failure):
            self.world.saw("fault: hook fails")
            failed = events.OperatorNotSnapshotted(checkpoint, operator, "the hook raised")
            self.world.at(wait, self.handle, failed)
            return
        done = events.OperatorSnapshotted(checkpoint, operator, f"hook at {checkpoint}")
        self.world.at(wait, self.handle, done)


def _only_time_passed(before: Job, after: Job) -> bool:
    """Whether nothing changed that an invariant is about."""
    old, new = before.coordinator, after.coordinator
    return (
        before.attempt.graph is after.attempt.graph
        and old.checkpoints is new.checkpoints
        and old.subtasks is new.subtasks
        and old.requests is new.requests
        and old.commits is new.commits
        and old.stage is new.stage
        and old.status is new.status
        and old.log is new.log
    )
