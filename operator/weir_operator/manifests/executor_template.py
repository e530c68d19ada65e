"""The pod template from which Spark creates executors.

Spark adds the image, the command, the labels and the amounts of CPU and memory; any other resource
is set here. An executor runs with the job's service account, for the identity in a cloud, but has
no token for the API server: only the driver creates pods. Executors are spread over the nodes, so
that a lost node costs as few slots as possible.
"""

from collections.abc import Iterator

from weir_operator.manifests import pod_template
from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.object_names import Role, selector
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import LOCAL_DIRECTORY
from weir_operator.manifests.security_context import restricted_pod
from weir_operator.manifests.strategic_merge import strategic_merge
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.kubernetes_quantity import KubernetesQuantity
from weir_operator.resource.pod_settings import EXECUTOR_CONTAINER

BY_SPARK = ("cpu", "memory")
"""Resources that Spark sets itself."""


def executor_template(owner: Owner, driver: DriverAttempt) -> Manifest:
    pod = driver.spec.executor
    defaults = restricted_pod(EXECUTOR_CONTAINER) | _spread(owner)
    main = pod_template.container(pod, driver.spec) | {
        "name": EXECUTOR_CONTAINER,
        "resources": _resources(driver.spec),
    }
    overrides = {
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [main],
            "volumes": pod_template.volumes(pod, driver.spec),
        },
    }
    return strategic_merge(
        pod_template.merged_pod(defaults, pod.pod_template, overrides), _local_copies(driver)
    )


def local_directory(spec: CheckpointedJobSpec) -> str:
    """Where executors mount the volume for local copies of state."""
    return next(_mount_paths(spec), LOCAL_DIRECTORY)


def _mount_paths(spec: CheckpointedJobSpec) -> Iterator[str]:
    """Yield the writable paths at which the user mounts it."""
    for mount in spec.executor.volume_mounts:
        if mount.name == spec.local_recovery_volume and not mount.read_only:
            yield mount.mount_path


def _local_copies(driver: DriverAttempt) -> Manifest:
    """Mount the volume for them, unless the user does."""
    if not driver.keeps_local_copies or any(_mount_paths(driver.spec)):
        return {}
    mount = {"name": driver.spec.local_recovery_volume, "mountPath": LOCAL_DIRECTORY}
    return {"spec": {"containers": [{"name": EXECUTOR_CONTAINER, "volumeMounts": [mount]}]}}


def _resources(spec: CheckpointedJobSpec) -> Manifest:
    given = spec.executor.resources
    return {"requests": _beside_spark(given.requests), "limits": _beside_spark(given.limits)}


def _beside_spark(amounts: dict[str, KubernetesQuantity]) -> dict[str, str]:
    return {name: amount for name, amount in amounts.items() if name not in BY_SPARK}


def _spread(owner: Owner) -> Manifest:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(owner.name, Role.EXECUTOR)},
    }
    return {"topologySpreadConstraints": [constraint]}
