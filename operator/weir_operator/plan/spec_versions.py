"""Which version of the specification is to run, and whether going there needs a new driver.

An edit that cannot be run leaves the deployed version as it is, and so does one that was rolled
back, until the next edit. What only the operator reads (schedules, deadlines, policies) takes
effect at once and restarts nothing. A version may have been accepted by another release of the
operator: fields that this one does not know are left out, and one that it cannot read at all is
never run, but can be upgraded away from.
"""

from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from pydantic import ValidationError

from weir_operator.plan.bounded_cache import Memo
from weir_operator.plan.upgrade_steps import is_moving
from weir_operator.resource.compression import packed, unpacked
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import SpecVersion, StepState, Upgrade, UpgradeCause
from weir_operator.resource.validation import Refused

REMEMBERED_BYTES = 1_024 * 1_024
"""Of compressed specifications. A usual one has less than 2 KB; read, one takes many times that."""
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
class Goal:
    """The version that is to run."""

    version: SpecVersion
    spec: CheckpointedJobSpec


def goal_of(
    spec: CheckpointedJobSpec | Refused, status: CheckpointedJobStatus, generation: int
) -> Goal | None:
    """What to run; nothing as long as no specification was ever accepted."""
    back = status.rollback
    if back is not None and (isinstance(spec, Refused) or back.from_generation == generation):
        stable = _goal(status.stable)
        if stable is not None:
            return stable
    if isinstance(spec, Refused):
        return _goal(status.deployed)
    version = SpecVersion(
        generation=generation,
        hash=spec.hash(),
        compressed_spec=packed(spec.model_dump(mode="json", exclude_none=True)),
    )
    return Goal(version, spec)


def _goal(version: SpecVersion | None) -> Goal | None:
    """A version as it was once accepted."""
    spec = None if version is None else readable(version)
    return None if version is None or spec is None else Goal(version, spec)


def read(version: SpecVersion) -> CheckpointedJobSpec:
    """A version that a plan carries out; such a one can be read."""
    spec = readable(version)
    assert spec is not None, "what cannot be read is not carried out"
    return spec


def readable(version: SpecVersion) -> CheckpointedJobSpec | None:
    """A version that was once accepted, unless this release cannot make sense of it."""
    return specifications(version.compressed_spec)


def deployed_spec(status: CheckpointedJobStatus) -> CheckpointedJobSpec | None:
    """What was deployed last, if anything was and this release can make sense of it."""
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


specifications = Memo(_understood, REMEMBERED_BYTES)
"""One look reads the same specification many times."""


def cause_of(goal: Goal, status: CheckpointedJobStatus) -> UpgradeCause | None:
    """Why the job needs another driver, or none, on purpose."""
    assert status.deployed is not None, "only what was deployed can be changed"
    answered, spec = status.answered, goal.spec
    if spec.suspend or is_suspended(status):
        return _suspension(goal, status)
    if spec.redeploy_nonce not in (None, answered.redeploy_nonce):
        return UpgradeCause.REDEPLOY_NONCE
    changed = _changed(readable(status.deployed), spec)
    if changed:
        return UpgradeCause.RESCALED if changed == {"parallelism"} else UpgradeCause.SPEC_CHANGED
    if spec.restart_nonce not in (None, answered.restart_nonce):
        return UpgradeCause.RESTART_NONCE
    return None


def is_suspended(status: CheckpointedJobStatus) -> bool:
    """Whether the job is stopped, or is being stopped, to go on later."""
    upgrade = status.upgrade
    return (
        upgrade is not None and upgrade.cause is UpgradeCause.SUSPENDED and not is_given_up(upgrade)
    )


def is_at_rest(status: CheckpointedJobStatus) -> bool:
    """Whether a suspension is through, so that nothing runs until it ends."""
    return is_suspended(status) and not is_moving(status.upgrade)


def has_failed(status: CheckpointedJobStatus) -> bool:
    """Whether a job that has ended needs a person."""
    ended, failure = status.ended_at, status.last_failure
    return ended is not None and failure is not None and failure.at >= ended


def is_given_up(upgrade: Upgrade) -> bool:
    """Whether an upgrade could not begin, so that the old version goes on."""
    return any(step.state is StepState.FAILED for step in upgrade.steps)


def needs_driver(old: SpecVersion, new: CheckpointedJobSpec) -> bool:
    """Whether the new version has anything to say to a driver."""
    return bool(_changed(readable(old), new))


def _suspension(goal: Goal, status: CheckpointedJobStatus) -> UpgradeCause | None:
    if goal.spec.suspend:
        return None if is_suspended(status) else UpgradeCause.SUSPENDED
    if goal.spec.redeploy_nonce not in (None, status.answered.redeploy_nonce):
        return UpgradeCause.REDEPLOY_NONCE
    return UpgradeCause.RESUMED


def _changed(old: CheckpointedJobSpec | None, new: CheckpointedJobSpec) -> set[str]:
    """The fields that a driver must hear of; all of them, if the old version cannot be read."""
    read_by_drivers = set(type(new).model_fields) - _READ_BY_THE_OPERATOR
    if old is None:
        return read_by_drivers
    return {field for field in read_by_drivers if getattr(old, field) != getattr(new, field)}
