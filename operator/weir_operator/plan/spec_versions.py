"""Which version of the specification is to run, and whether it needs a new driver.

An invalid edit leaves the deployed version as it is, and so does one that was rolled back, until
the next edit. Fields that only the operator reads (schedules, deadlines, policies) take effect at
once and restart nothing. A version may have been accepted by another release of the operator:
unknown fields are dropped, and a version that cannot be read at all is never run, but can be
upgraded from.
"""

from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from pydantic import ValidationError

from weir_operator.plan.bounded_cache import BoundedCache
from weir_operator.plan.upgrade_steps import is_in_progress
from weir_operator.resource.compression import packed, unpacked
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import SpecVersion, StepState, Upgrade, UpgradeCause
from weir_operator.resource.validation import Rejected

CACHED_BYTES = 1_024 * 1_024
"""Of compressed specifications. A typical one has less than 2 KB; parsed, it takes many times that.
"""
_READ_BY_THE_OPERATOR = frozenset(
    {
        "suspend",
        "upgrade",
        "rollback",
        "savepoints",
        "start_deadlines",
        "restart_nonce",
        "savepoint_nonce",
        "redeploy_nonce",
        "ttl_after_end",
        "recovery",
    }
)


@dataclass(frozen=True, slots=True)
class DesiredVersion:
    """The version that is to run."""

    version: SpecVersion
    spec: CheckpointedJobSpec


def desired_version(
    spec: CheckpointedJobSpec | Rejected, status: CheckpointedJobStatus, generation: int
) -> DesiredVersion | None:
    """The version to run; none as long as no specification was ever accepted."""
    back = status.rollback
    if back is not None and (isinstance(spec, Rejected) or back.from_generation == generation):
        stable = _accepted_version(status.stable)
        if stable is not None:
            return stable
    if isinstance(spec, Rejected):
        return _accepted_version(status.deployed)
    version = SpecVersion(
        generation=generation,
        hash=spec.hash(),
        compressed_spec=packed(spec.model_dump(mode="json", exclude_none=True)),
    )
    return DesiredVersion(version, spec)


def _accepted_version(version: SpecVersion | None) -> DesiredVersion | None:
    """A version that was accepted before."""
    spec = None if version is None else readable(version)
    return None if version is None or spec is None else DesiredVersion(version, spec)


def read(version: SpecVersion) -> CheckpointedJobSpec:
    """The specification of a version that a plan executes."""
    spec = readable(version)
    assert spec is not None, "a version that cannot be read is not executed"
    return spec


def readable(version: SpecVersion) -> CheckpointedJobSpec | None:
    """The specification of an accepted version, unless this release cannot read it."""
    return specifications(version.compressed_spec)


def deployed_spec(status: CheckpointedJobStatus) -> CheckpointedJobSpec | None:
    """The specification that was deployed last, if this release can read it."""
    return None if status.deployed is None else readable(status.deployed)


def _understood(compressed: str) -> CheckpointedJobSpec | None:
    """A specification without the fields that this release does not know."""
    given: Any = unpacked(compressed)
    while True:
        try:
            return CheckpointedJobSpec.model_validate(given)
        except ValidationError as error:
            details = error.errors(include_url=False)
        unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
        if not unknown:
            return None
        for *parents, last in unknown:
            del reduce(getitem, parents, given)[last]


specifications = BoundedCache(_understood, CACHED_BYTES)
"""One reconcile reads the same specification many times."""


def upgrade_cause(desired: DesiredVersion, status: CheckpointedJobStatus) -> UpgradeCause | None:
    """Why the job needs another driver, or none, on purpose."""
    assert status.deployed is not None, "only what was deployed can be changed"
    answered, spec = status.answered, desired.spec
    if spec.suspend or is_suspended(status):
        return _suspension(desired, status)
    if spec.redeploy_nonce not in (None, answered.redeploy_nonce):
        return UpgradeCause.REDEPLOY_NONCE
    changed = _changed(readable(status.deployed), spec)
    if changed:
        return UpgradeCause.RESCALED if changed == {"parallelism"} else UpgradeCause.SPEC_CHANGED
    if spec.restart_nonce not in (None, answered.restart_nonce):
        return UpgradeCause.RESTART_NONCE
    return None


def is_suspended(status: CheckpointedJobStatus) -> bool:
    """Whether the job is suspended, or is being suspended."""
    upgrade = status.upgrade
    return (
        upgrade is not None and upgrade.cause is UpgradeCause.SUSPENDED and not is_aborted(upgrade)
    )


def is_fully_suspended(status: CheckpointedJobStatus) -> bool:
    """Whether a suspension is complete, so that nothing runs until the job is resumed."""
    return is_suspended(status) and not is_in_progress(status.upgrade)


def has_failed(status: CheckpointedJobStatus) -> bool:
    """Whether a job that has ended needs a person."""
    ended, failure = status.ended_at, status.last_failure
    return ended is not None and failure is not None and failure.at >= ended


def is_aborted(upgrade: Upgrade) -> bool:
    """Whether an upgrade could not begin, so that the old version keeps running."""
    return any(step.state is StepState.FAILED for step in upgrade.steps)


def needs_driver(old: SpecVersion, new: CheckpointedJobSpec) -> bool:
    """Whether the new version changes a field that drivers read."""
    return bool(_changed(readable(old), new))


def _suspension(desired: DesiredVersion, status: CheckpointedJobStatus) -> UpgradeCause | None:
    if desired.spec.suspend:
        return None if is_suspended(status) else UpgradeCause.SUSPENDED
    if desired.spec.redeploy_nonce not in (None, status.answered.redeploy_nonce):
        return UpgradeCause.REDEPLOY_NONCE
    return UpgradeCause.RESUMED


def _changed(old: CheckpointedJobSpec | None, new: CheckpointedJobSpec) -> set[str]:
    """The changed fields that drivers read; all of them if the old version cannot be read."""
    read_by_drivers = set(type(new).model_fields) - _READ_BY_THE_OPERATOR
    if old is None:
        return read_by_drivers
    return {field for field in read_by_drivers if getattr(old, field) != getattr(new, field)}
