"""A simulated driver process: takes its epoch, runs the production job machine, obeys it.

It owns no decision. Storage, external commits and links answer through the world's heap, late or
with doubt; every answer goes into ``job.step`` as an event, and the invariants are checked
after every step. A paused driver handles nothing until it wakes, which is how zombies are made.
"""

from collections.abc import Callable
from typing import Protocol

from simulation import discovery
from simulation.coordinator_faults import CoordinatorFaults
from simulation.coverage import watch_step
from simulation.driver_takeover import DriverTakeover
from simulation.slot import Slot, SlotEnvironment
from simulation.store import OK, UNKNOWN, EntryAnswer
from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core import restore_decision, takeover
from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator import actions, events
from weir.core.enumerator import Splits
from weir.core.ids import (
    AttemptId,
    CheckpointId,
    Epoch,
    Millis,
    OperatorId,
    RequestId,
    SlotId,
    SubtaskId,
)
from weir.core.invariants import violations
from weir.core.job_master import Action, Event, Job, Launch, next_deadline, step
from weir.core.lifecycle import JobStatus
from weir.core.rescale import StateAssignment
from weir.core.snapshots import Manifest
from weir.core.stall_detector import StallDetector
from weir.core.topology import Topology
from weir.driver.loop_clock import LoopClock
from weir.driver.storage_actions import entry_failed
from weir.errors import WeirError
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    SubtaskAddress,
    SubtaskFailure,
    SubtaskMessage,
)

DIRECTORY = "job"
REPEATABLE = (events.SubtaskAcked, events.SubtaskDeclined, events.SubtaskProgressed)


class Setting(SlotEnvironment, Protocol):
    """What a driver finds in its world."""

    @property
    def current(self) -> "Driver": ...
    @property
    def stumbling(self) -> CoordinatorFaults: ...
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
        self.links: dict[tuple[str, SlotId], int] = {}
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
        if not self.alive:
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
        for copy in range(self._copies(soft=isinstance(event, REPEATABLE))):
            late = self.world.delay(0, 150) if copy else 0
            self.world.at(self._in_order(("up", slot)) + late, self._received, slot, event)

    def _received(self, slot: SlotId, event: Event) -> None:
        if slot in self.slots:
            if isinstance(event, events.SubtaskAcked):
                self.known.update(file.path for file in event.snapshot.files())
            self.handle(event)

    def _send(self, subtask: SubtaskId, attempt: AttemptId, message: object, *, soft: bool) -> None:
        assert self.job is not None
        slot = self.job.attempt.graph.slot_of(subtask)
        if isinstance(message, CheckpointAborted) and self.world.chance(
            self.sim.scenario.chances.lost_control * 10
        ):
            return
        for copy in range(self._copies(soft=soft)):
            wait = self._in_order(("down", slot)) + (self.world.delay(0, 150) if copy else 0)
            self.world.at(wait, self._deliver, slot, SubtaskMessage(subtask, attempt, message))

    def _deliver(self, slot: SlotId, message: object) -> None:
        if slot in self.slots:
            self.slots[slot].post(message)

    def _copies(self, *, soft: bool) -> int:
        chances = self.sim.scenario.chances
        if soft and self.world.chance(chances.lost_control):
            self.world.saw("fault: control message lost")
            return 0
        if soft and self.world.chance(chances.doubled_control):
            self.world.saw("fault: control message doubled")
            return 2
        return 1

    def _in_order(self, link: tuple[str, SlotId]) -> int:
        due = max(
            self.world.now + self.world.delay(*self.sim.scenario.delays), self.links.get(link, 0)
        )
        self.links[link] = due
        return due - self.world.now

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

    def _carry_out(self, action: Action) -> None:  # noqa: C901 - one case for each action
        match action:
            case (
                actions.Trigger()
                | actions.NotifyAborted()
                | actions.NotifyCompleted()
                | actions.SendToSubtask()
            ):
                self._notify_subtasks(action)
            case actions.CompleteRequest(request, outcome):
                self.sim.answered(self, request, outcome)
            case actions.EndDriver(status, fenced):
                self.alive = False
                for slot in self.slots.values():
                    slot.die()
                self.sim.ended(self, status, fenced=fenced)
            case Launch():
                self._launch(action)
            case attempts.ResetSubtasks(slot_id, subtasks):
                self._send_in_order(slot_id, CancelSubtasks(subtasks))
            case attempts.RecycleSlot(slot_id):
                self.lose_slot(slot_id)
            case attempts.ReportStatus(status):
                self.status = status
            case _:
                self._ask_outside(action)

    def _notify_subtasks(
        self,
        action: actions.Trigger
        | actions.NotifyAborted
        | actions.NotifyCompleted
        | actions.SendToSubtask,
    ) -> None:
        match action:
            case actions.Trigger(barrier, targets):
                self._send_all(targets, barrier)
            case actions.NotifyAborted(checkpoint, targets):
                self._send_all(targets, CheckpointAborted(checkpoint))
            case actions.NotifyCompleted(checkpoint, kind, targets, leaving):
                self._send_all(targets, CheckpointCompleted(checkpoint, kind, leaving))
                if kind.is_synchronous:
                    self._maybe_die()
            case actions.SendToSubtask(_, (subtask, attempt), message):
                self._send(subtask, attempt, message, soft=False)

    def _send_all(self, targets: tuple[actions.Target, ...], message: object) -> None:
        for subtask, attempt in targets:
            self._send(subtask, attempt, message, soft=True)

    def _ask_outside(self, action: Action) -> None:  # noqa: C901 - one case for each action
        store = self.sim.store
        match action:
            case actions.WriteManifest(manifest):
                path = manifest_path(manifest.location)
                self.known.add(path)
                store.put(path, manifest, self.epoch, self._manifest_answer(manifest.checkpoint))
            case actions.CreateEntry(index, entry):
                store.create_entry(index, entry, self._entry_answer(index))
            case actions.LookForSuccessor(index):
                store.look(index, self._look_answer(index))
            case actions.TruncateLog(below):
                store.truncate(below)
            case actions.DeleteFiles(ticket, paths):
                store.delete(paths, self._delete_answer(ticket))
            case actions.CommitTransactions():
                self.world.at(self.world.delay(1, 12), self._commit, action)
            case actions.ResolveTransactions():
                self.world.at(self.world.delay(1, 12), self._resolve, action)
            case actions.SnapshotOperators(checkpoint, operators):
                for operator in operators:
                    self._snapshot_hook(checkpoint, operator)
            case actions.PrepareLocation(checkpoint, _):
                self._prepare_location(checkpoint)
            case _:
                pass

    def _maybe_die(self) -> None:
        """The worst moment: the stop is decided and not yet carried out."""
        if self is self.sim.current and self.world.chance(
            self.sim.scenario.chances.death_while_stopping
        ):
            self.world.saw("fault: driver dies while stopping")
            self.world.at(self.world.delay(0, 15), self.sim.kill_driver, self)

    def _launch(self, launch: Launch) -> None:
        restored = CheckpointId(0)
        if isinstance(launch.restore, actions.RestoreManifest):
            restored = launch.restore.manifest.checkpoint
            self.sim.check_restore(self, launch.restore.manifest)
        assert self.job is not None
        execution_graph = self.job.attempt.graph
        places = [(subtask, execution_graph.slot_of(subtask)) for subtask in self.topology.subtasks]
        seats = tuple(SubtaskAddress(subtask, slot, "", 0) for subtask, slot in places)
        by_slot: dict[SlotId, list[StateAssignment]] = {}
        for _, slot, state_assignment in launch.placements:
            by_slot.setdefault(slot, []).append(state_assignment)
        for slot, own in by_slot.items():
            deploy = DeploySubtasks(self.epoch, launch.attempt, restored, tuple(own), seats)
            self._send_in_order(slot, deploy)

    def _send_in_order(self, slot: SlotId, message: object) -> None:
        self.world.at(self._in_order(("down", slot)), self._deliver, slot, message)

    def _manifest_answer(self, checkpoint: CheckpointId) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            if outcome == OK:
                self.handle(events.ManifestWritten(checkpoint))
            elif outcome == UNKNOWN:
                self.handle(events.ManifestInDoubt(checkpoint))
            else:
                self.handle(events.ManifestNotWritten(checkpoint, "storage failed"))

        return answered

    def _entry_answer(self, index: int) -> EntryAnswer:
        def answered(outcome: str | WeirError) -> None:
            if isinstance(outcome, WeirError):
                self.handle(entry_failed(index, outcome))
            elif outcome == OK:
                self.handle(events.EntryCreated(index))
            else:
                self.handle(events.EntryTaken(index))

        return answered

    def _look_answer(self, index: int) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            if outcome == "taken":
                self.handle(events.EntryTaken(index))
            elif outcome == "free":
                self.handle(events.NoSuccessorSeen(index))
            else:
                self.handle(events.SuccessorUnknown(index))

        return answered

    def _delete_answer(self, ticket: int) -> Callable[[str], None]:
        def answered(outcome: str) -> None:
            done = events.FilesDeleted if outcome == OK else events.FilesNotDeleted
            self.handle(done(ticket))

        return answered

    def _commit(self, action: actions.CommitTransactions) -> None:
        """The external system may act and fall silent, or not act at all."""
        commit = action.commit
        if not self.world.calm and self.sim.stumbling.is_now():
            self.world.saw("fault: committer raises")
            refused = "commit() raised", "KeyError"
            self.handle(events.CommitInDoubt(commit.sink, commit.sequence, *refused))
            return
        if self.world.chance(self.sim.scenario.chances.commit_lost):
            self.world.saw("fault: commit without an answer")
            if self.world.rng.random() < 0.5:
                self.sim.external.commit(commit)
            self.handle(events.CommitInDoubt(commit.sink, commit.sequence))
            return
        self.sim.external.commit(commit)
        self.handle(events.CommitConfirmed(commit.sink, commit.sequence))

    def _resolve(self, action: actions.ResolveTransactions) -> None:
        if self.world.chance(self.sim.scenario.chances.commit_lost):
            self.handle(events.TransactionsUnresolved(action.operation))
            return
        owner = (int(self.epoch), int(action.attempt))
        self.sim.external.resolve(action.subtasks, owner, action.keep)
        self.handle(events.TransactionsResolved(action.operation))

    def _snapshot_hook(self, checkpoint: CheckpointId, operator: OperatorId) -> None:
        wait = self.world.delay(1, self.sim.scenario.hook_delay)
        if self.world.chance(self.sim.scenario.chances.hook_failure):
            self.world.saw("fault: hook fails")
            failed = events.OperatorNotSnapshotted(checkpoint, operator, "the hook raised")
            self.world.at(wait, self.handle, failed)
            return
        done = events.OperatorSnapshotted(checkpoint, operator, f"hook at {checkpoint}")
        self.world.at(wait, self.handle, done)

    def _prepare_location(self, checkpoint: CheckpointId) -> None:
        wait = self.world.delay(1, 8)
        if self.world.chance(self.sim.scenario.chances.store_fails * 4):
            refused = events.LocationNotPrepared(checkpoint, "storage failed")
            self.world.at(wait, self.handle, refused)
            return
        self.world.at(wait, self.handle, events.LocationPrepared(checkpoint))


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
