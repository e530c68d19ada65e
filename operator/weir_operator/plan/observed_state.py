"""The observed state of the world that a plan is made from, as values.

The plan itself reads nothing. The report of a driver comes from user code and is trusted only for
its own job: the shell has validated and truncated it, and a report of another attempt is ignored.
The absence of a pod is critical: a pod that a cache does not show may still run, so ``is_live``
tells whether the API server was read.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from weir.api.report import JobPhase, Outcome
from weir.api.storage_url import DurableUrl
from weir_operator.plan.local_recovery import LocalVolume, NoVolume
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status_fields import Failure, LastCheckpoint

_DURABLE: TypeAdapter[str] = TypeAdapter(DurableUrl)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pod has no running container yet."""

    why: str = ""
    """The reason of Kubernetes, such as Unschedulable or ImagePullBackOff."""
    message: str = ""
    """The message of Kubernetes for it."""


@dataclass(frozen=True, slots=True)
class Running:
    """The driver's container runs."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """The driver's container has ended and is not restarted in this pod."""

    exit_code: int
    why: str = ""
    """The reason of Kubernetes, such as OOMKilled or Evicted."""


@dataclass(frozen=True, slots=True)
class Terminating:
    """A pod is being deleted, by the operator or by another client."""

    by: datetime
    """When its grace period ends."""
    held_by: tuple[str, ...] = ()
    """Finalizers of other controllers."""
    is_forced: bool = False
    """Its node is not waited for."""


@dataclass(frozen=True, slots=True)
class MissingObject:
    """An object that a pod needs and that does not exist in its namespace."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class DriverPod:
    """A driver's pod that this resource owns."""

    attempt: int
    name: str
    uid: str
    stage: Waiting | Running | Terminated
    terminating: Terminating | None = None
    is_node_lost: bool = False
    """Its node is known to be lost: no kubelet will terminate the pod."""
    missing: tuple[MissingObject, ...] = ()
    """Missing objects that its start waits for."""

    @property
    def is_terminating(self) -> bool:
        return self.terminating is not None


@dataclass(frozen=True, slots=True)
class LostPod:
    """An executor's pod of this job on a node that is known to be lost."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodProblem:
    """A problem of a pod: a reason of Kubernetes such as OOMKilled, and a message."""

    name: str
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A request to the driver, by its key."""

    id: str
    outcome: Outcome
    path: str | None = None
    checkpoint: int | None = None
    size_bytes: int | None = None
    message: str = ""

    @property
    def durable_path(self) -> str | None:
        """The path of a completed request, if it is on durable storage."""
        if self.outcome is not Outcome.COMPLETED:
            return None
        try:
            return _DURABLE.validate_python(self.path)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class DriverReport:
    """The last report of a driver: from its API, then from its termination message."""

    attempt: int
    phase: JobPhase
    newest: LastCheckpoint | None = None
    completed: int = 0
    """Checkpoints that this driver has completed."""
    restarts: int = 0
    """How often this driver has restarted its job."""
    why: str = ""
    """Why the job failed or restarted last."""
    is_rejected: bool = False
    """The job failed because a person must change something; a retry is useless."""
    scheduler_running: bool | None = None
    slots_missing: int = 0
    """How many more slots the job waits for."""
    requests: tuple[RequestReport, ...] = ()

    def request(self, key: str) -> RequestReport | None:
        return next((request for request in self.requests if request.id == key), None)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """There is no report of a driver whose container runs."""

    why: str
    is_untrusted: bool = False
    """Whether the operator does not trust the driver's certificate, which is not temporary."""


class Dependent(StrEnum):
    """Objects that must exist beside a driver's pod."""

    KEYS = "Secret"
    SERVICE = "Service"
    CONFIG = "ConfigMap"
    BUDGET = "PodDisruptionBudget"
    NETWORK_POLICY = "NetworkPolicy"


class Disposal(StrEnum):
    """The state of the Job that deletes a snapshot's files."""

    ABSENT = "absent"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ObservedSnapshot:
    """A CheckpointedJobSnapshot of this job."""

    name: str
    spec: CheckpointedJobSnapshotSpec
    status: CheckpointedJobSnapshotStatus
    created_at: datetime
    is_deleted: bool = False
    disposal: Disposal = Disposal.ABSENT
    refusal: str | None = None
    """Why the API server rejects the Job that deletes its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that a plan for a job is made from, beside its specification and status."""

    now: datetime
    name: str
    uid: str
    generation: int
    is_live: bool
    """Whether the drivers were read from the API server itself, and not from a cache."""
    drivers: tuple[DriverPod, ...] = ()
    stuck: tuple[DriverPod, ...] = ()
    """Terminating pods that are no longer waited for; the plan sets them apart."""
    lost_executors: tuple[LostPod, ...] = ()
    executor_problems: tuple[PodProblem, ...] = ()
    report: DriverReport | None = None
    unreachable: Unreachable | None = None
    """Why there is no report of a driver whose container runs."""
    dependents: frozenset[Dependent] = frozenset(Dependent)
    """The existing dependents of the driver's pod, read together with the drivers."""
    snapshots: tuple[ObservedSnapshot, ...] = ()
    savepoint_annotation: str | None = None
    checkpoint_annotation: str | None = None
    deleted_at: datetime | None = None
    local_volume: LocalVolume = NoVolume()
    refusal: Failure | None = None
    """The last action that the API server rejected, and since when."""

    def driver(self, attempt: int) -> DriverPod | None:
        return next((pod for pod in self.drivers if pod.attempt == attempt), None)

    def snapshot(self, name: str) -> ObservedSnapshot | None:
        return next((observed for observed in self.snapshots if observed.name == name), None)
