"""Edits of a running job's specification that are rejected, though old and new are valid.

Most edits are upgrades. Rejected are those that would lose state silently: another number of key
groups, and a storage without the last state. The API server rejects the same
(``weir_operator.crd.cel_rules``).
"""

from collections.abc import Iterator

from weir.api.config_problem import Problem, shown
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec
from weir_operator.resource.upgrade_policy import UpgradeMode


def rejected_changes(old: CheckpointedJobSpec, new: CheckpointedJobSpec) -> Iterator[Problem]:
    """Yield what an edit must not change."""
    if new.upgrade.mode is UpgradeMode.STATELESS:
        return
    before, after = old.max_parallelism, new.max_parallelism
    if before is not None and after is not None and before != after:
        yield new.problem(
            "max_parallelism",
            f"it was {before}, and the number of key groups is fixed for the life of the state",
            f"set it back to {before}, or upgrade.mode to stateless if the state may be lost",
        )
    was, becomes = old.checkpointing.storage, new.checkpointing.storage
    if was != becomes and new.upgrade.mode is UpgradeMode.LAST_STATE:
        yield new.checkpointing.problem(
            "storage",
            "there was none before, so there is no last state to go on from"
            if was is None
            else f"it was {shown(was)}, and there the last state stays",
            "set upgrade.mode to savepoint for this change, or to stateless if the state may be"
            " lost",
        ).under("checkpointing")


def rejected_snapshot_changes(
    old: CheckpointedJobSnapshotSpec, new: CheckpointedJobSnapshotSpec
) -> Iterator[Problem]:
    """Yield every change but that of ``disposeOnDelete``."""
    for field in type(new).model_fields:
        if field != "dispose_on_delete" and getattr(old, field) != getattr(new, field):
            yield new.problem(
                field,
                f"it was {shown(getattr(old, field))}, and a snapshot is taken once",
                "make another snapshot",
            )
