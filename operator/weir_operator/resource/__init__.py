"""The resources that people write and read: ``CheckpointedJob`` and ``CheckpointedJobSnapshot``.

Models of specification and status, and the judgement on what a person wrote; nothing that acts, and
nothing that knows Kopf or a client. The definitions in ``crds/`` are made from these models, so a
field is described once. Settings of the runtime are those of ``weir.api``, by inheritance.
"""

from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.validation import Refused, judge_job, judge_snapshot, judge_status

__all__ = [
    "CheckpointedJobSnapshotSpec",
    "CheckpointedJobSnapshotStatus",
    "CheckpointedJobSpec",
    "CheckpointedJobStatus",
    "Refused",
    "judge_job",
    "judge_snapshot",
    "judge_status",
]
