"""The custom resources ``CheckpointedJob`` and ``CheckpointedJobSnapshot``.

Models of specification and status, and the validation of what a user wrote; no actions, and no
dependency on Kopf or a client. The CRDs in ``crds/`` are generated from these models, so a field is
described once. Settings of the runtime are inherited from ``weir.api``.
"""

from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.validation import (
    Rejected,
    parse_status,
    validate_job,
    validate_snapshot,
)

__all__ = [
    "CheckpointedJobSnapshotSpec",
    "CheckpointedJobSnapshotStatus",
    "CheckpointedJobSpec",
    "CheckpointedJobStatus",
    "Rejected",
    "parse_status",
    "validate_job",
    "validate_snapshot",
]
