"""The names and labels of all objects that the operator creates.

Names are derived from the job's name and the attempt alone, so that creating an object again finds
the existing one. Objects that outlive an attempt have no number: the Service, the Secret, the
NetworkPolicy and the PodDisruptionBudget. Labels are for selectors: of a Service, of a
NetworkPolicy, of a user with ``kubectl``. Ownership is determined by owner references, never by
labels.
"""

import hashlib
from enum import StrEnum

from weir_operator.resource.api_group import GROUP

JOB_LABEL = f"{GROUP}/job"
ROLE_LABEL = f"{GROUP}/role"
ATTEMPT_LABEL = f"{GROUP}/attempt"

LONGEST_NAME = 63
"""A Job's name becomes a label of its pods."""

_DISPOSES = "-dispose"


class Role(StrEnum):
    """What a pod is for."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    DISPOSAL = "disposal"
    """It deletes the files of a snapshot."""


def driver_name(job: str, attempt: int) -> str:
    return f"{job}-driver-{attempt}"


def executor_prefix(job: str, attempt: int) -> str:
    """With the attempt: executors of the previous attempt may still be terminating."""
    return f"{job}-{attempt}"


def service_name(job: str) -> str:
    return job


def keys_name(job: str) -> str:
    return f"{job}-keys"


def config_name(job: str, attempt: int) -> str:
    return f"{job}-config-{attempt}"


def budget_name(job: str) -> str:
    return f"{job}-executors"


def network_policy_name(job: str) -> str:
    return f"{job}-network"


def disposal_name(snapshot: str) -> str:
    """A snapshot's name may be too long for a Job; then it is truncated and has a hash."""
    name = f"{snapshot}{_DISPOSES}"
    if len(name) <= LONGEST_NAME:
        return name
    mark = f"-{hashlib.sha256(snapshot.encode()).hexdigest()[:8]}{_DISPOSES}"
    return f"{snapshot[: LONGEST_NAME - len(mark)].rstrip('-.')}{mark}"


def labels(job: str) -> dict[str, str]:
    """Of everything that belongs to a job."""
    return {JOB_LABEL: job, "app.kubernetes.io/instance": job, **_ours()}


def attempt_labels(job: str, attempt: int) -> dict[str, str]:
    """Of what belongs to one attempt."""
    return {**labels(job), ATTEMPT_LABEL: str(attempt)}


def pod_labels(job: str, role: Role, attempt: int) -> dict[str, str]:
    return {**attempt_labels(job, attempt), ROLE_LABEL: role.value}


def disposal_labels() -> dict[str, str]:
    """Without the snapshot's name, which may be too long; the owner reference has it."""
    return {ROLE_LABEL: Role.DISPOSAL.value, **_ours()}


def selector(job: str, role: Role) -> dict[str, str]:
    """The labels that select a job's pods of one role, whatever their attempt."""
    return {JOB_LABEL: job, ROLE_LABEL: role.value}


def _ours() -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "weir",
        "app.kubernetes.io/managed-by": "weir-operator",
    }
