"""The environment variables that identify a driver and its restore point.

All of them belong to the operator (``OWN_VARIABLES``): a user can set none. The two keys come from
the job's Secret by reference, and the driver's address from the downward API.
"""

from collections.abc import Iterator

from weir.api.environment_variables import (
    WEIR_ALLOW_NON_RESTORED_STATE,
    WEIR_ATTEMPT,
    WEIR_CLAIM,
    WEIR_CONFIG,
    WEIR_DEPLOYMENT,
    WEIR_FRESH,
    WEIR_FROM,
    WEIR_HOST,
    WEIR_JOB,
    WEIR_LOCAL_DIR,
    WEIR_LOWEST_CHECKPOINT,
    WEIR_MASTER,
    WEIR_NAMESPACE,
    WEIR_PORT,
    WEIR_SECRET,
    WEIR_TERMINATION_LOG,
    WEIR_TOKEN,
)
from weir.api.recovery_config import ClaimMode
from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.executor_template import local_directory
from weir_operator.manifests.job_secret import SECRET, TOKEN
from weir_operator.manifests.object_names import keys_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import (
    API_PORT,
    CONFIG_DIRECTORY,
    JOB_FILE,
    TERMINATION_LOG,
)
from weir_operator.manifests.pod_template import escape_expansion
from weir_operator.resource.status_fields import RestorePoint, RestoreType

MASTER = "k8s://https://kubernetes.default.svc"
YES = "true"


def driver_variables(owner: Owner, driver: DriverAttempt) -> list[Manifest]:
    given = {**_itself(driver), **dict(_start(driver.restore)), **dict(_permissions(driver))}
    return [
        *(_plain(name, value) for name, value in given.items()),
        _field(WEIR_HOST, "status.podIP"),
        _field(WEIR_NAMESPACE, "metadata.namespace"),
        _key(WEIR_TOKEN, owner, TOKEN),
        _key(WEIR_SECRET, owner, SECRET),
    ]


def _itself(driver: DriverAttempt) -> dict[str, str]:
    return {
        "SPARK_CONF_DIR": CONFIG_DIRECTORY,
        WEIR_CONFIG: f"{CONFIG_DIRECTORY}/{JOB_FILE}",
        WEIR_JOB: driver.job_id,
        WEIR_ATTEMPT: str(driver.attempt),
        WEIR_DEPLOYMENT: f"{driver.job_id}-{driver.restore.deployment}",
        WEIR_MASTER: MASTER,
        WEIR_PORT: str(API_PORT),
        WEIR_TERMINATION_LOG: TERMINATION_LOG,
    }


def _start(restore: RestorePoint) -> Iterator[tuple[str, str]]:
    """Yield the restore point; without any variable the driver uses its newest checkpoint."""
    match restore.type:
        case RestoreType.NOTHING:
            yield WEIR_FRESH, YES
        case RestoreType.PATH:
            assert restore.path is not None, "a restore point of type Path has a path"
            yield WEIR_FROM, restore.path
            if restore.claim_mode is ClaimMode.CLAIM:
                yield WEIR_CLAIM, YES
        case RestoreType.LAST_STATE:
            if restore.lowest_checkpoint:
                yield WEIR_LOWEST_CHECKPOINT, str(restore.lowest_checkpoint)


def _permissions(driver: DriverAttempt) -> Iterator[tuple[str, str]]:
    if driver.spec.recovery.allow_non_restored_state and driver.may_restore:
        yield WEIR_ALLOW_NON_RESTORED_STATE, YES
    if driver.keeps_local_copies:
        yield WEIR_LOCAL_DIR, local_directory(driver.spec)


def _plain(name: str, value: str) -> Manifest:
    return {"name": name, "value": escape_expansion(value)}


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _key(name: str, owner: Owner, key: str) -> Manifest:
    source = {"name": keys_name(owner.name), "key": key}
    return {"name": name, "valueFrom": {"secretKeyRef": source}}
