"""The input of a driver's manifests: a specification, and what was decided about this attempt.

The decisions are inputs. Nothing in this package checks whether the attempt is right, or where its
state is stored.
"""

from dataclasses import dataclass

from weir.api.storage_url import is_memory
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status_fields import RestorePoint, RestoreType


@dataclass(frozen=True, slots=True)
class DriverAttempt:
    """One attempt at running a job."""

    name: str
    """Of the driver's pod."""
    attempt: int
    spec: CheckpointedJobSpec
    restore: RestorePoint
    job_id: str
    local_recovery: bool
    """Whether the local volume outlives its pod, if there is one."""

    @property
    def keeps_local_copies(self) -> bool:
        """Only if requested, and only if the copies outlive the pod (spec K8)."""
        return self.spec.state.local_recovery and self.local_recovery

    @property
    def may_restore(self) -> bool:
        """Whether there is any storage that state could come from."""
        storage = self.spec.checkpointing.storage
        has_durable = storage is not None and not is_memory(storage)
        return has_durable or self.restore.type is RestoreType.PATH
