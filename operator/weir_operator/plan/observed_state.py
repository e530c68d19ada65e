"""What was seen of the world when a plan is made, as values.

Nothing here was looked up by the plan itself. What a driver said runs other people's code and is
believed only as far as its own job goes: the shell has checked its shape and cut its length, and a
word of another attempt than the current one is not heard. Absence is the most dangerous sight: a
pod that a cache does not show may well live, so ``is_live`` says whether the API server was asked.
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
    """One word of Kubernetes for it, such as Unschedulable or ImagePullBackOff."""
    said: str = ""
    """What Kubernetes says of it beyond that word."""


@dataclass(frozen=True, slots=True)
class Up:
    """The driver's container runs."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """The driver's container has ended and is not started again in this pod."""

    exit_code: int
    why: str = ""
    """One word of Kubernetes for it, such as OOMKilled or Evicted."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod was told to end, by us or by somebody else."""

    by: datetime
    """When its time to end in peace is over."""
    held_by: tuple[str, ...] = ()
    """Finalizers that others have put on it."""
    is_forced: bool = False
    """Its node is not waited for."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An object that a pod cannot start without and that its namespace does not have."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class DriverPod:
    """A driver's pod that belongs to this very resource."""

    attempt: int
    name: str
    uid: str
    stage: Waiting | Up | Terminated
    leaving: Leaving | None = None
    node_is_lost: bool = False
    """Its node was established as gone: nobody there will end the pod."""
    missing: tuple[Missing, ...] = ()
    """What its start waits for in vain."""

    @property
    def is_leaving(self) -> bool:
        return self.leaving is not None


@dataclass(frozen=True, slots=True)
class LostPod:
    """An executor's pod of this job whose node was established as gone."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """What ails an executor's pod, in a word of Kubernetes such as OOMKilled, and in a sentence."""

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
    def place(self) -> str | None:
        """Where it lies once it is complete, if anything outlives the driver there."""
        if self.outcome is not Outcome.COMPLETED:
            return None
        try:
            return _DURABLE.validate_python(self.path)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What a driver said last: by its API while it lives, by its termination message afterwards."""

    attempt: int
    phase: JobPhase
    newest: LastCheckpoint | None = None
    completed: int = 0
    """Checkpoints that this driver has completed."""
    restarts: int = 0
    """Times that this driver has restarted its job."""
    why: str = ""
    """Why the job failed or restarted last."""
    is_rejected: bool = False
    """The job failed because a person must change something; trying again is of no use."""
    scheduler_running: bool | None = None
    slots_missing: int = 0
    """How many more slots the job waits for."""
    requests: tuple[RequestReport, ...] = ()

    def request(self, key: str) -> RequestReport | None:
        return next((request for request in self.requests if request.id == key), None)


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing is heard of a driver whose container runs."""

    why: str
    is_mistrust: bool = False
    """Whether it is the operator that does not believe who answers, which time does not heal."""


class Part(StrEnum):
    """What stands beside a driver's pod and must exist with it."""

    KEYS = "Secret"
    SERVICE = "Service"
    CONFIG = "ConfigMap"
    BUDGET = "PodDisruptionBudget"
    NETWORK_POLICY = "NetworkPolicy"


class Disposal(StrEnum):
    """How far the Job is that deletes a snapshot's files."""

    ABSENT = "absent"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SeenSnapshot:
    """A CheckpointedJobSnapshot of this job."""

    name: str
    spec: CheckpointedJobSnapshotSpec
    status: CheckpointedJobSnapshotStatus
    created_at: datetime
    is_deleted: bool = False
    disposal: Disposal = Disposal.ABSENT
    refusal: str | None = None
    """Why the API server does not start the Job that deletes its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that a plan for a job is made of, beside its specification and status."""

    now: datetime
    name: str
    uid: str
    generation: int
    is_live: bool
    """Whether the drivers were read from the API server itself, and not from a cache."""
    drivers: tuple[DriverPod, ...] = ()
    stuck: tuple[DriverPod, ...] = ()
    """Those that were told to end and are waited for no longer; the plan sets them apart."""
    lost_executors: tuple[LostPod, ...] = ()
    executor_troubles: tuple[PodTrouble, ...] = ()
    report: DriverReport | None = None
    silence: Silence | None = None
    """Why there is no report of a driver whose container runs."""
    parts: frozenset[Part] = frozenset(Part)
    """What stands beside the driver's pod, from the same reader as the drivers."""
    snapshots: tuple[SeenSnapshot, ...] = ()
    savepoint_annotation: str | None = None
    checkpoint_annotation: str | None = None
    deleted_at: datetime | None = None
    local_volume: LocalVolume = NoVolume()
    refusal: Failure | None = None
    """What the API server refused of the last plan, and since when."""

    def driver(self, attempt: int) -> DriverPod | None:
        return next((pod for pod in self.drivers if pod.attempt == attempt), None)

    def snapshot(self, name: str) -> SeenSnapshot | None:
        return next((seen for seen in self.snapshots if seen.name == name), None)
