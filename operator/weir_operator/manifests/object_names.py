"""The names and labels of everything that the operator makes.

Names are made of the job's name and the attempt's number alone, so that whoever makes an object
again meets the one that is there. What outlives an attempt has no number: the Service, the keys,
the NetworkPolicy and the budget of the executors. Labels are how others find the pods: a Service, a
NetworkPolicy, a person with ``kubectl``. That a pod is ours its owner says, never its labels.
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
    """With the attempt: executors of the one before may still be going when the next come."""
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
    """A snapshot's name may be longer than a Job's; such a one is cut and told apart by a hash."""
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
    """Whose snapshot it is, its owner says: a snapshot's name may be too long for a label."""
    return {ROLE_LABEL: Role.DISPOSAL.value, **_ours()}


def selector(job: str, role: Role) -> dict[str, str]:
    """The labels by which a job's pods of one role are found, whatever their attempt."""
    return {JOB_LABEL: job, ROLE_LABEL: role.value}


def _ours() -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "weir",
        "app.kubernetes.io/managed-by": "weir-operator",
    }
