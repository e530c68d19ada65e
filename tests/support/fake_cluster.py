"""A cluster of one job for the operator's plan: an API server, drivers, a storage, and time.

It executes plans as the controller does: the status first, under a lock, then one action after the
other, and an operator may crash between any two. Its drivers behave as the runtime's: a deployment
starts from its restore point and continues from its newest checkpoint afterwards. It asserts what
must never happen: two drivers at a time, a start from less than was complete, a dropped state
without a request.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from weir.api.report import JobPhase, Outcome
from weir_operator.plan import Observed, Plan, plan, plan_snapshot
from weir_operator.plan.cluster_actions import (
    Action,
    CreateDriver,
    CreateSnapshot,
    DeleteDriver,
    DeleteJob,
    DeleteSnapshot,
    Dispose,
    EmitEvent,
    EnsureDependent,
    ForceDeletePod,
    ReadLive,
    RemoveFinalizer,
    RequestCheckpoint,
    RequestSavepoint,
    RequestStop,
)
from weir_operator.plan.local_recovery import LocalVolume, NoVolume
from weir_operator.plan.observed_state import (
    Dependent,
    Disposal,
    DriverPod,
    DriverReport,
    ObservedSnapshot,
    RequestReport,
    Running,
    Terminated,
    Terminating,
    Waiting,
)
from weir_operator.plan.snapshot_plan import ObservedJob
from weir_operator.plan.spec_versions import read, readable
from weir_operator.resource import (
    CheckpointedJobSnapshotStatus,
    CheckpointedJobStatus,
    validate_job,
)
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import LastCheckpoint, RestorePoint, RestoreType

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "orders"
UID = "0a1b2c3d-0000-0000-0000-000000000000"
SIZE, DURATION_MS = 1_000, 250
"""Of every checkpoint and savepoint."""
GRACE = timedelta(seconds=30)
WAITED_FOR = timedelta(minutes=5)
"""How long after its grace period a pod is waited for whose process may still run."""


def a_spec(**changes: object) -> dict[str, object]:
    """A specification that can be run, with some top-level fields of another value."""
    return {
        "image": "orders:1",
        "job": {"file": "/opt/job/job.py"},
        "parallelism": 2,
        "checkpointing": {
            "storage": "s3://weir/checkpoints",
            "interval": "10 s",
            "savepointDir": "s3://weir/savepoints",
        },
    } | changes


@dataclass
class Storage:
    """The job's log, as far as a restore looks at it."""

    line: list[int] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    deployment: int = 0
    is_closed: bool = False
    newest: int = 0
    owner: int = 0
    """The attempt that took the log over last; all others are fenced."""

    def complete(self, place: str = "") -> int:
        self.newest += 1
        self.line.append(self.newest)
        if place:
            self.places[place] = self.newest
        return self.newest

    def restore(self, point: RestorePoint, attempt: int, *, may_drop: bool) -> bool:
        """Begin or go on; false if this very deployment has ended, or another has taken over."""
        is_same = self.deployment == point.deployment
        if attempt < self.owner or (is_same and self.is_closed):
            return False
        self.owner = attempt
        if not is_same and point.type is RestoreType.PATH:
            assert point.path is not None, "a path has a place"
            found = self.places[point.path]
            assert may_drop or found == max(self.line, default=0), "an older state was restored"
            self.line = [found]
        elif not is_same and point.type is RestoreType.NOTHING:
            assert may_drop or not self.line, "state was dropped without a request"
            self.line = []
        else:
            assert max(self.line, default=0) >= point.lowest_checkpoint, "a restore point was lost"
        self.deployment, self.is_closed = point.deployment, False
        return True


@dataclass
class Driver:
    """A driver's pod and the process in it."""

    pod: DriverPod
    restore: RestorePoint
    version: int
    image: str
    is_periodic: bool = True
    phase: JobPhase | None = None
    completed: int = 0
    newest: LastCheckpoint | None = None
    requests: dict[str, RequestReport] = field(default_factory=dict)
    is_silent: bool = False
    why: str = ""
    is_rejected: bool = False
    restarts: int = 0

    def report(self) -> DriverReport | None:
        if self.phase is None or self.is_silent:
            return None
        return DriverReport(
            self.pod.attempt,
            self.phase,
            self.newest,
            self.completed,
            self.restarts,
            why=self.why,
            is_rejected=self.is_rejected,
            scheduler_running=self.phase is JobPhase.RUNNING,
            requests=tuple(self.requests.values()),
        )


class OperatorDiedError(Exception):
    """The operator's process has ended between two calls."""


@dataclass
class FakeCluster:
    """The world around one CheckpointedJob."""

    spec: dict[str, object] = field(default_factory=a_spec)
    now: datetime = BEGINNING
    generation: int = 1
    status: CheckpointedJobStatus = field(default_factory=CheckpointedJobStatus)
    drivers: list[Driver] = field(default_factory=list)
    storage: Storage = field(default_factory=Storage)
    snapshots: dict[str, ObservedSnapshot] = field(default_factory=dict)
    annotation: str | None = None
    checkpoint_annotation: str | None = None
    dependents: set[Dependent] = field(default_factory=set)
    deleted_at: datetime | None = None
    is_gone: bool = False
    events: list[EmitEvent] = field(default_factory=list)
    snapshot_events: list[EmitEvent] = field(default_factory=list)
    may_drop: bool = False
    """Whether the user has asked to start from less than there is."""
    bad_images: set[str] = field(default_factory=set)
    refusing_images: set[str] = field(default_factory=set)
    fails_savepoints: bool = False
    savepoints_taken: int = 0
    checkpoints_taken: int = 0
    """Requested snapshots."""
    dies_in: int | None = None
    """After how many more writes the operator dies; the next one is then in its place."""
    never_ends: bool = False
    """Deleted pods do not terminate, and no kubelet reports their processes."""
    held_by: tuple[str, ...] = ()
    """Finalizers of others, with which pods stay though their processes have ended."""
    local_volume: LocalVolume = NoVolume()
    _uids: int = 0

    def edit(self, **changes: object) -> None:
        self.spec = self.spec | changes
        self.generation += 1

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # --- the operator ---

    def observed(self, *, is_live: bool = True) -> Observed:
        pods = tuple(driver.pod for driver in self.drivers)
        current = self.status.driver
        reports = (d.report() for d in self.drivers if current and d.pod.attempt == current.attempt)
        return Observed(
            now=self.now,
            name=NAME,
            uid=UID,
            generation=self.generation,
            is_live=is_live,
            drivers=pods,
            report=next(reports, None),
            snapshots=tuple(self.snapshots.values()),
            savepoint_annotation=self.annotation,
            checkpoint_annotation=self.checkpoint_annotation,
            dependents=frozenset(self.dependents),
            deleted_at=self.deleted_at,
            local_volume=self.local_volume,
        )

    def planned(self, seen: Observed | None = None) -> Plan:
        before = None if self.status.deployed is None else readable(self.status.deployed)
        return plan(validate_job(NAME, self.spec, before), self.status, seen or self.observed())

    def turn(self, seen: Observed | None = None) -> Plan:
        """One reconcile of the operator, which may crash before any write."""
        made = self.planned(seen)
        for write in (made.status, *made.actions):
            self._live_or_die()
            if isinstance(write, CheckpointedJobStatus):
                self._store(write)
            else:
                self.perform(write)
        for name in sorted(self.snapshots):
            self._turn_of_snapshot(name)
        return made

    def _live_or_die(self) -> None:
        if self.dies_in == 0:
            self.dies_in = None
            raise OperatorDiedError
        if self.dies_in is not None:
            self.dies_in -= 1

    def _store(self, status: CheckpointedJobStatus) -> None:
        written = status.model_dump(mode="json", exclude_none=True)
        self.status = CheckpointedJobStatus.model_validate(written)

    def perform(self, action: Action) -> None:
        """What the API server or the driver does about an action."""
        match action:
            case CreateDriver():
                self._create(action)
            case DeleteDriver():
                self._delete(action)
            case RequestStop() | RequestSavepoint() | RequestCheckpoint():
                self._request(action)
            case EmitEvent():
                self.events.append(action)
            case EnsureDependent(part):
                self.dependents.add(part)
            case _:
                self._perform_on_resources(action)

    def _perform_on_resources(self, action: Action) -> None:
        match action:
            case CreateSnapshot(name, spec):
                fresh = ObservedSnapshot(name, spec, CheckpointedJobSnapshotStatus(), self.now)
                self.snapshots.setdefault(name, fresh)
            case DeleteSnapshot(name):
                self.snapshots[name] = replace(self.snapshots[name], is_deleted=True)
            case DeleteJob():
                self.deleted_at = self.deleted_at or self.now
            case RemoveFinalizer():
                self.is_gone = True
                self.drivers.clear()
            case _:
                assert isinstance(action, ForceDeletePod | ReadLive), "nothing else is left"

    def _create(self, action: CreateDriver) -> None:
        if any(driver.pod.name == action.name for driver in self.drivers):
            return
        assert all(map(self._was_waited_for, self.drivers)), "a second driver was made too soon"
        assert not self.is_gone, "a driver was made for a resource that is gone"
        assert self.dependents == set(Dependent), "a driver was made without what stands beside it"
        self._uids += 1
        pod = DriverPod(action.attempt, action.name, f"uid-{self._uids}", Waiting())
        spec, generation = read(action.version), action.version.generation
        is_periodic = spec.checkpointing.is_periodic
        self.drivers.append(Driver(pod, action.restore, generation, spec.image, is_periodic))

    def _was_waited_for(self, driver: Driver) -> bool:
        """Whether a driver's process has ended, its node is lost, or both were waited for."""
        pod = driver.pod
        if pod.terminating is None:
            return False
        is_over = isinstance(pod.stage, Terminated) or pod.terminating.is_forced
        return is_over or self.now - pod.terminating.by >= WAITED_FOR

    def _delete(self, action: DeleteDriver) -> None:
        for driver in list(self.drivers):
            if driver.pod.uid != action.uid:
                continue
            if action.force and not self.held_by:
                self.drivers.remove(driver)
            by = self.now if action.force else self.now + GRACE
            left = Terminating(by, self.held_by, is_forced=action.force)
            driver.pod = replace(driver.pod, terminating=left)

    def remove_finalizer(self) -> None:
        """Remove the finalizers of pods, and let kubelets respond again."""
        self.held_by, self.never_ends = (), False

    def _request(self, action: RequestStop | RequestSavepoint | RequestCheckpoint) -> None:
        for driver in self.drivers:
            if driver.pod.attempt != action.attempt or driver.phase is not JobPhase.RUNNING:
                continue
            if action.key not in driver.requests:
                driver.requests[action.key] = self._answer(driver, action)

    def _answer(
        self, driver: Driver, action: RequestStop | RequestSavepoint | RequestCheckpoint
    ) -> RequestReport:
        if self.fails_savepoints:
            return RequestReport(action.key, Outcome.FAILED, message="the bucket is full")
        if isinstance(action, RequestCheckpoint):
            self.checkpoints_taken += 1
        else:
            self.savepoints_taken += 1
        place = f"s3://weir/savepoints/{self.storage.newest + 1}"
        if isinstance(action, RequestSavepoint):
            self.storage.newest += 1
            self.storage.places[place] = self.storage.newest
            return RequestReport(action.key, Outcome.COMPLETED, place, self.storage.newest)
        done = self._complete(driver, place)
        if isinstance(action, RequestStop):
            driver.phase = JobPhase.STOPPED
            driver.pod = replace(driver.pod, stage=Terminated(0, "Completed"))
            self.storage.is_closed = True
        return RequestReport(action.key, Outcome.COMPLETED, place, done)

    def _turn_of_snapshot(self, name: str) -> None:
        seen = self.snapshots[name]
        job = None if self.is_gone else ObservedJob(self.status, self.observed().report)
        made = plan_snapshot(seen, job, self.now)
        self.snapshots[name] = replace(seen, status=made.status)
        for action in made.actions:
            match action:
                case RemoveFinalizer():
                    del self.snapshots[name]
                case Dispose():
                    self.snapshots[name] = replace(self.snapshots[name], disposal=Disposal.DONE)
                case EmitEvent():
                    self.snapshot_events.append(action)
                case _:
                    self.perform(action)

    # --- the drivers ---

    def _complete(self, driver: Driver, place: str = "") -> int:
        done = self.storage.complete(place)
        driver.completed += 1
        driver.newest = LastCheckpoint(
            id=done,
            path=place or f"s3://weir/checkpoints/{done}",
            completed_at=self.now,
            size_bytes=SIZE,
            duration=DURATION_MS,
        )
        self.storage.places[str(driver.newest.path)] = done
        return done

    def drivers_go_on(self) -> None:
        """Every driver does the next thing that it would do: end, start, restore, checkpoint."""
        for driver in list(self.drivers):
            pod = driver.pod
            if pod.is_terminating and not (pod.is_node_lost or self.never_ends):
                self._end(driver)
            elif isinstance(pod.stage, Waiting):
                if driver.image not in self.bad_images:
                    driver.pod = replace(pod, stage=Running())
            elif isinstance(pod.stage, Running) and not pod.is_node_lost:
                self._work(driver)

    def _end(self, driver: Driver) -> None:
        if self.held_by:
            driver.phase = None
            driver.pod = replace(driver.pod, stage=Terminated(143))
        else:
            self.drivers.remove(driver)

    def _work(self, driver: Driver) -> None:
        if driver.phase is JobPhase.RUNNING:
            if driver.is_periodic and self.storage.owner == driver.pod.attempt:
                self._complete(driver)
        elif driver.image in self.refusing_images:
            driver.phase, driver.why, driver.is_rejected = JobPhase.FAILED, "unknown uid", True
            driver.pod = replace(driver.pod, stage=Terminated(1, "Error"))
        elif driver.phase is None and self._restore(driver):
            driver.phase = JobPhase.WAITING_FOR_SLOTS
        elif driver.phase is None:
            driver.phase = JobPhase.STOPPED
            driver.pod = replace(driver.pod, stage=Terminated(0, "Completed"))
        else:
            driver.phase = JobPhase.RUNNING

    def _restore(self, driver: Driver) -> bool:
        attempt = driver.pod.attempt
        return self.storage.restore(driver.restore, attempt, may_drop=self.may_drop)

    def driver_dies(self, why: str = "OOMKilled") -> None:
        for driver in self.drivers:
            if isinstance(driver.pod.stage, Running):
                driver.phase = None
                driver.pod = replace(driver.pod, stage=Terminated(137, why))

    def lose_node(self) -> None:
        for driver in self.drivers:
            driver.is_silent = True
            driver.pod = replace(driver.pod, is_node_lost=True)

    # --- both together ---

    def settle(self, rounds: int = 60, seconds: float = 15) -> None:
        """Let operator and drivers act until nothing changes any more."""
        for _ in range(rounds):
            with suppress(OperatorDiedError):
                self.turn()
            self.drivers_go_on()
            self.pass_time(seconds)
            if self.is_gone:
                return
        with suppress(OperatorDiedError):
            self.turn()

    def settle_until(self, *states: LifecycleState) -> None:
        """Let operator and drivers act until the job is in one of these states, and stays."""
        for _ in range(200):
            self.turn()
            self.drivers_go_on()
            self.pass_time(15)
            if self.is_gone or (self.status.state in states and self._is_at_goal()):
                return
        raise AssertionError(f"no way out of {self.status.state}: {self.status.last_failure}")

    def _is_at_goal(self) -> bool:
        deployed = self.status.deployed
        return deployed is not None and deployed.spec["image"] == self.spec["image"]
