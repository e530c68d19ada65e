"""The variables by which a driver is told who it is and what to start from.

All of them are ours (``OWN_VARIABLES``): a user can set none. The two secrets arrive from the job's
Secret by reference, and the driver's own address from Kubernetes.
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
from weir_operator.manifests.driver_attempt import DriverOrder
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
from weir_operator.manifests.pod_template import literal
from weir_operator.resource.status_fields import RestorePoint, RestoreType

MASTER = "k8s://https://kubernetes.default.svc"
YES = "true"


def driver_variables(owner: Owner, order: DriverOrder) -> list[Manifest]:
    given = {**_itself(order), **dict(_start(order.restore)), **dict(_permissions(order))}
    return [
        *(_plain(name, value) for name, value in given.items()),
        _field(WEIR_HOST, "status.podIP"),
        _field(WEIR_NAMESPACE, "metadata.namespace"),
        _key(WEIR_TOKEN, owner, TOKEN),
        _key(WEIR_SECRET, owner, SECRET),
    ]


def _itself(order: DriverOrder) -> dict[str, str]:
    return {
        "SPARK_CONF_DIR": CONFIG_DIRECTORY,
        WEIR_CONFIG: f"{CONFIG_DIRECTORY}/{JOB_FILE}",
        WEIR_JOB: order.job_id,
        WEIR_ATTEMPT: str(order.attempt),
        WEIR_DEPLOYMENT: f"{order.job_id}-{order.restore.deployment}",
        WEIR_MASTER: MASTER,
        WEIR_PORT: str(API_PORT),
        WEIR_TERMINATION_LOG: TERMINATION_LOG,
    }


def _start(restore: RestorePoint) -> Iterator[tuple[str, str]]:
    """Yield what the driver starts from; with nothing here, the newest checkpoint if there is."""
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


def _permissions(order: DriverOrder) -> Iterator[tuple[str, str]]:
    if order.spec.recovery.allow_non_restored_state and order.may_restore:
        yield WEIR_ALLOW_NON_RESTORED_STATE, YES
    if order.keeps_local_copies:
        yield WEIR_LOCAL_DIR, local_directory(order.spec)


def _plain(name: str, value: str) -> Manifest:
    return {"name": name, "value": literal(value)}


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _key(name: str, owner: Owner, key: str) -> Manifest:
    source = {"name": keys_name(owner.name), "key": key}
    return {"name": name, "valueFrom": {"secretKeyRef": source}}
