"""One schedule from its first deployment to its last: chaos, people, and the ends of drivers.

A deployment is a submission of the job; when one is stopped, cancelled or fails, the next one takes
up its state, often at another parallelism. Chaos strikes until the schedule's calm begins; then
everything must heal, the sources run dry, and the job has to finish by itself.
"""

from collections.abc import Iterator

from simulation.coordinator_faults import CoordinatorFaults
from simulation.driver import DIRECTORY, Driver
from simulation.duplicate_start import DuplicateStart
from simulation.external import External
from simulation.network import Network
from simulation.oracle import Ending, Oracle
from simulation.scenario import Scenario
from simulation.store import Store
from simulation.world import World
from weir.core import attempt as attempts
from weir.core import restore_decision
from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator import actions, events
from weir.core.ids import AttemptId, CheckpointId, RequestId, SlotId
from weir.core.job_master import OperatorCoordinatorFailed, OperatorCoordinatorRecovered
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged
from weir.core.policy import Mode, Retention
from weir.core.snapshots import (
    CheckpointKind,
    KeyedHandle,
    KeyGroupRange,
    Manifest,
    StateFile,
    SubtaskSnapshot,
)

LONGEST = 60_000
"""Simulated milliseconds after which a job that has not finished never will."""

HOUR = 3_600_000
"""Longer than any schedule lasts: who waits for a wall clock that was set back never wakes."""

KINDS = (
    CheckpointKind.CHECKPOINT,
    CheckpointKind.FULL_CHECKPOINT,
    CheckpointKind.SAVEPOINT,
    CheckpointKind.SAVEPOINT,
)


class Simulation:
    """The world of one seed."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.world = World(scenario.seed)
        self.store = Store(self.world, self.scenario.chances)
        self.external = External(self.world)
        self.network = Network(self.world, self.scenario.delays)
        self.oracle = Oracle(self.world, self.scenario, self.store, self.external)
        self.store.protected = self.oracle.is_protected
        self.drivers: list[Driver] = []
        self.namesake = DuplicateStart(self.world, self.store, self.drivers, scenario.seed)
        self.stumbling = CoordinatorFaults(scenario.seed)
        self.deployments = 0
        self.slots_made = 0
        self.finished = False
        self.requests = 0
        exactly_once = self.scenario.policy.mode is Mode.EXACTLY_ONCE
        self.world.order_is_checked = exactly_once and self.scenario.shape.keeps_order
        has_one_region = self.scenario.shape.name != "chain"
        self.world.time_is_checked = exactly_once and has_one_region

    # -- running

    def run(self) -> None:
        for _ in self.moments():
            pass

    def moments(self) -> Iterator[int]:
        """The whole schedule, moment by moment, with the verdict at its end."""
        self.oracle.check_graph_validation()
        self.deploy()
        self.world.at(10, self.chaos)
        self.world.at(self.scenario.calm_at, self.calm)
        while not self.is_over():
            if self.world.now > LONGEST or not self.world.step():
                self.world.violated(f"the job did not finish in {self.world.now} ms")
            yield self.world.now
        self.namesake.start_again()
        final = self.current
        self.oracle.judge(
            Ending(final.epoch, final.topology, frozenset(final.known), frozenset(final.asked))
        )

    def is_over(self) -> bool:
        """The job has finished, and every driver that believed to run it has ended."""
        return self.finished and not any(driver.alive for driver in self.drivers)

    def calm(self) -> None:
        self.world.calm = True
        self.world.record("world", "calm from here on")

    # -- deployments

    def deploy(self, path: str = "", *, claims: bool = False) -> None:
        self.deployments += 1
        salt = self.deployments - 1 if self.world.rng.random() < 0.7 else 0
        salt = self.deployments - 1 if self.deployments > 1 else salt
        restore_request = restore_decision.RestoreRequest(
            f"deployment-{self.deployments}", path, claims
        )
        if path:
            self.world.saw("claimed on restore" if claims else "borrowed on restore")
            if not claims:
                self.oracle.borrowed.add(path)
        self._start(restore_request, salt)

    def _start(self, restore_request: restore_decision.RestoreRequest, salt: int) -> None:
        driver = Driver(self, f"driver-{len(self.drivers) + 1}", restore_request, salt)
        driver.salt = salt
        if self.drivers and self.drivers[-1].topology.subtasks != driver.topology.subtasks:
            self.world.saw("rescaled on restore")
        self.drivers.append(driver)
        self.world.record("world", f"{driver.name} starts for {restore_request}")
        self.world.at(self.world.delay(1, 20), driver.start)

    def replace_driver(self, old: Driver) -> None:
        """Kubernetes starts a new driver of the same deployment."""
        self._start(old.restore_request, old.salt)

    def kill_driver(self, driver: Driver) -> None:
        if driver.alive:
            driver.die()
            if driver is self.current:
                self.replace_driver(driver)

    @property
    def current(self) -> Driver:
        return self.drivers[-1]

    def name_slot(self) -> SlotId:
        self.slots_made += 1
        return SlotId(f"slot-{self.slots_made}")

    # -- what drivers report

    def ended(self, driver: Driver, status: JobStatus, *, fenced: bool) -> None:
        self.world.record("world", f"{driver.name} ended: {status}, fenced {fenced}")
        if fenced:
            self.world.saw("driver: fenced")
            if driver is self.current:
                self.world.violated(f"{driver.name} was fenced though no driver took over")
            return
        if driver is not self.current:
            return
        if status is JobStatus.FINISHED:
            self.finished = True
        elif status is JobStatus.STOPPED:
            self._resume(self.oracle.stopped_with(driver.restore_request.deployment))
        else:
            self.deploy()

    def _resume(self, path: str) -> None:
        """A deployment that names no path goes on from the same savepoint."""
        drawn = self.world.rng.random()
        if drawn < 0.8:
            self.deploy(path, claims=drawn < 0.4)
        else:
            self.world.saw("resumed without a path")
            self.deploy()
        if self.world.chance(0.5):
            self.world.saw("fault: driver dies soon after a resume")
            self.world.at(self.world.delay(30, 150), self.kill_driver, self.current)

    def answered(
        self,
        driver: Driver,
        request: RequestId,
        outcome: actions.RequestSucceeded | actions.RequestFailed,
    ) -> None:
        if request not in driver.asked:
            self.world.violated(f"{request} was answered twice, or never asked")
        driver.asked.discard(request)
        if driver is not self.current or not isinstance(outcome, actions.RequestSucceeded):
            return
        newest = [e for _, e in sorted(self.store.log.items()) if isinstance(e, CheckpointLogged)]
        is_newest = newest and newest[-1].checkpoint == outcome.checkpoint
        if is_newest and newest[-1].kind is CheckpointKind.SAVEPOINT:
            self._fork(driver, outcome)

    def _fork(self, driver: Driver, outcome: actions.RequestSucceeded) -> None:
        """Sometimes a plain savepoint is what the next deployment starts from.

        Its transactions are committed by that deployment, so nothing may have ended them before.
        """
        is_exact = not self.oracle.commits_after(outcome.checkpoint)
        if not is_exact or driver.status.is_terminal or not self.world.chance(0.3):
            return
        self.world.saw("restored from a plain savepoint")
        driver.die()
        self.deploy(manifest_path(outcome.location))

    # -- checks that need the whole world

    def check_restore(self, driver: Driver, manifest: Manifest) -> None:
        """An attempt starts from the newest committing checkpoint, or rows would repeat.

        After a drain, rows come behind the watermark that ended all time.
        """
        if manifest.finished:
            self.world.passed_is_checked = False
        if manifest.kind.drains:
            self.world.time_is_checked = False
        if driver.epoch == self.store.epoch():
            self.oracle.check_restore(driver.restore_request, manifest)

    # -- chaos and people

    def chaos(self) -> None:
        if self.world.calm or self.finished:
            return
        self.world.at(self.world.delay(8, 20), self.chaos)
        driver, chances = self.current, self.scenario.chances
        if not driver.alive or driver.job is None or self.store.is_closed():
            return
        self.namesake.start_beside(driver)
        self._stumble(driver)
        self._strike_driver(driver)
        if not driver.alive or driver is not self.current:
            return
        if driver.slots and self.world.chance(chances.slot_death):
            self.world.saw("fault: slot dies")
            driver.lose_slot(self.world.rng.choice(sorted(driver.slots)))
        if driver.slots and self.world.chance(chances.standstill):
            self.world.saw("fault: slot stands still")
            slot = driver.slots[self.world.rng.choice(sorted(driver.slots))]
            slot.stand_still(self.world.delay(20, 200))
        if self.world.chance(chances.connection):
            self._drop_connection()
        if driver.slots and self.world.chance(chances.stray_ack):
            self._stray_ack(driver)
        self._people(driver)

    def _strike_driver(self, driver: Driver) -> None:
        world, chances = self.world, self.scenario.chances
        if world.chance(chances.driver_death):
            world.saw("fault: driver dies")
            self.kill_driver(driver)
        elif world.chance(chances.zombie):
            world.saw("fault: driver becomes a zombie")
            driver.paused = world.rng.random() < 0.6
            world.at(world.delay(5, 400), self._wake, driver)
            self.replace_driver(driver)
        elif world.chance(chances.upgrade) and not driver.status.is_terminal:
            world.saw("fault: upgrade without a savepoint")
            driver.die()
            self.deploy()
        elif world.chance(chances.rollback):
            self._roll_back(driver)
        elif world.chance(chances.clock_jump):
            world.saw("fault: clock jumps")
            jump = world.rng.choice((-HOUR, -40, 60, HOUR))
            driver.skew += jump
            if jump == -HOUR:
                world.saw("fault: clock goes back by an hour")

    def _stumble(self, driver: Driver) -> None:
        """An enumerator raises, and works again with its next look or not."""
        if self.stumbling.is_now():
            self.world.saw("fault: enumerator raises")
            source = driver.topology.sources[0]
            driver.handle(OperatorCoordinatorFailed(source, "latestOffset() raised", "KeyError"))
            if self.stumbling.is_now():
                driver.handle(OperatorCoordinatorRecovered(source))

    def _roll_back(self, driver: Driver) -> None:
        """The job goes back to an older checkpoint. Output repeats, so only where it may."""
        older = self.oracle.older_checkpoint()
        repeats = self.scenario.policy.mode is Mode.AT_LEAST_ONCE
        if repeats and older and not driver.status.is_terminal:
            self.world.saw("fault: rollback to an older checkpoint")
            driver.die()
            self.deploy(older)

    def _wake(self, driver: Driver) -> None:
        self.world.saw("fault: zombie wakes")
        driver.wake()

    def _drop_connection(self) -> None:
        living = self.network.connections(self.current.epoch)
        if living:
            self.world.saw("fault: connection drops")
            self.network.break_connection(self.world.rng.choice(living))

    def _stray_ack(self, driver: Driver) -> None:
        """An ack comes for a checkpoint that was never begun; its file must not stay."""
        assert driver.job is not None
        self.world.saw("fault: stray ack")
        future = CheckpointId(driver.job.coordinator.log.next_id + 1000)
        subtask = self.world.rng.choice(driver.topology.subtasks)
        path = f"{DIRECTORY}/chk-{future}/stray-{self.world.events}"
        self.store.files[path] = "stray"
        self.store.epochs[path] = driver.epoch
        file = KeyedHandle(KeyGroupRange(0, 0), StateFile(path, 1))
        snapshot = SubtaskSnapshot(subtask, keyed=(file,))
        stray = events.SubtaskAcked(AttemptId(1), future, subtask, snapshot)
        driver.receive(min(driver.slots), stray)

    def _people(self, driver: Driver) -> None:
        world, chances = self.world, self.scenario.chances
        if world.chance(chances.request):
            for _ in range(world.rng.choice((1, 1, 2, 5))):
                self.ask(driver, world.rng.choice(KINDS))
        if world.chance(chances.stop):
            kind = world.rng.choice(
                (CheckpointKind.SAVEPOINT_SUSPEND, CheckpointKind.SAVEPOINT_TERMINATE)
            )
            self.ask(driver, kind)
        keeps = self.scenario.policy.retention is Retention.RETAIN_ON_CANCELLATION
        if keeps and world.chance(chances.stop / 3):
            driver.handle(attempts.CancelRequested())

    def ask(self, driver: Driver, kind: CheckpointKind) -> None:
        self.requests += 1
        request = RequestId(f"request-{self.requests}")
        driver.asked.add(request)
        location = f"{DIRECTORY}/wanted-{self.requests}" if self.world.rng.random() < 0.3 else ""
        driver.handle(events.CheckpointRequested(request, kind, location))
