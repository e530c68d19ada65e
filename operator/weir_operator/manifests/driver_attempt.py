"""What a driver's pod is made of: a specification, and what was decided about this attempt.

The decisions arrive here as values. Nothing in this package asks whether the attempt is right, or
where the state lies that it starts from.
"""

from dataclasses import dataclass

from weir.api.storage_url import is_memory
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status_fields import RestorePoint, RestoreType


@dataclass(frozen=True, slots=True)
class DriverOrder:
    """One attempt at running a job."""

    name: str
    """Of the driver's pod."""
    attempt: int
    spec: CheckpointedJobSpec
    restore: RestorePoint
    job_id: str
    local_recovery: bool
    """Whether the local volume survives its pod, if there is one."""

    @property
    def keeps_local_copies(self) -> bool:
        """Only where they were asked for, and only where they would survive (spec K8)."""
        return self.spec.state.local_recovery and self.local_recovery

    @property
    def may_restore(self) -> bool:
        """Whether there is any place that state could come from."""
        storage = self.spec.checkpointing.storage
        has_durable = storage is not None and not is_memory(storage)
        return has_durable or self.restore.type is RestoreType.PATH
