"""What the next driver starts from, decided independently of any pod (spec K4).

A deployment starts from a path, from nothing, or from the job's last state. Within a deployment a
new driver continues from the newest checkpoint by itself. So a restore point without a reported
checkpoint is kept under its deployment number: if there was a checkpoint nevertheless, the driver
finds it, and if the first driver never started, nothing is lost. Only the mode stateless, written
by the user, drops state.
"""

from datetime import datetime

from weir.api.recovery_config import RecoveryConfig
from weir_operator.resource.status_fields import LastCheckpoint, RestorePoint, RestoreType
from weir_operator.resource.upgrade_policy import UpgradeMode


def first(recovery: RecoveryConfig, mode: UpgradeMode, now: datetime) -> RestorePoint:
    """For a job that never ran."""
    if recovery.path is not None:
        return from_path(recovery, None, now)
    if mode is UpgradeMode.STATELESS:
        return nothing(None, now)
    return RestorePoint(type=RestoreType.LAST_STATE, deployment=1, recorded_at=now)


def from_path(recovery: RecoveryConfig, before: RestorePoint | None, now: datetime) -> RestorePoint:
    """The path that the user chose."""
    return RestorePoint(
        type=RestoreType.PATH,
        path=recovery.path,
        claim_mode=recovery.claim_mode,
        deployment=_next(before),
        recorded_at=now,
    )


def from_savepoint(path: str, before: RestorePoint | None, now: datetime) -> RestorePoint:
    """The savepoint that the old version stopped with. The user keeps owning it."""
    return RestorePoint(type=RestoreType.PATH, path=path, deployment=_next(before), recorded_at=now)


def nothing(before: RestorePoint | None, now: datetime) -> RestorePoint:
    return RestorePoint(type=RestoreType.NOTHING, deployment=_next(before), recorded_at=now)


def last_state(before: RestorePoint, now: datetime) -> RestorePoint:
    """The job's newest checkpoint, for a new deployment or for the one that never got further."""
    if before.type is not RestoreType.LAST_STATE:
        return before
    return before.model_copy(update={"deployment": _next(before), "recorded_at": now})


def as_recorded(point: RestorePoint, before: RestorePoint | None) -> RestorePoint:
    """The point, with the time at which the same one was recorded before."""
    if before is None or point != before.model_copy(update={"recorded_at": point.recorded_at}):
        return point
    return before


def raised(point: RestorePoint, newest: LastCheckpoint) -> RestorePoint:
    """A checkpoint of this deployment is complete: nothing older is acceptable from now on."""
    if point.type is RestoreType.LAST_STATE and point.lowest_checkpoint >= newest.id:
        return point
    return RestorePoint(
        type=RestoreType.LAST_STATE,
        lowest_checkpoint=newest.id,
        deployment=point.deployment,
        recorded_at=point.recorded_at,
    )


def as_left(point: RestorePoint, newest: LastCheckpoint | None) -> RestorePoint:
    """The state of a version when it stopped, by path, so that newer checkpoints do not hide it."""
    if point.type is not RestoreType.LAST_STATE or newest is None or newest.path is None:
        return point
    return RestorePoint(
        type=RestoreType.PATH,
        path=newest.path,
        deployment=point.deployment,
        recorded_at=point.recorded_at,
    )


def describe(point: RestorePoint) -> str:
    """For users: what a driver of this deployment starts from."""
    match point.type:
        case RestoreType.NOTHING:
            return "without state"
        case RestoreType.PATH:
            return f"from {point.path}"
        case RestoreType.LAST_STATE if point.lowest_checkpoint:
            return f"from the newest checkpoint, {point.lowest_checkpoint} or later"
        case _:
            return "from the newest checkpoint, if there is one"


def _next(before: RestorePoint | None) -> int:
    return 1 if before is None else before.deployment + 1
