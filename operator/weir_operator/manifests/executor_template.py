"""The pod template from which Spark makes executors.

Spark adds the image, the command, the labels and the amounts of CPU and memory by itself; any other
resource stands here. An executor acts as the job's service account, so that a cloud knows it, but
holds no token of the API server: only the driver starts pods. Executors are spread over the nodes,
so that the loss of one node is the loss of as few slots as can be.
"""

from collections.abc import Iterator

from weir_operator.manifests import pod_template
from weir_operator.manifests.driver_attempt import DriverOrder
from weir_operator.manifests.object_names import Role, selector
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import LOCAL_DIRECTORY
from weir_operator.manifests.security_context import hardened_pod
from weir_operator.manifests.strategic_merge import laid_over
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.kubernetes_quantity import Amount
from weir_operator.resource.pod_settings import EXECUTOR_CONTAINER

BY_SPARK = ("cpu", "memory")
"""Resources that Spark writes into the pod itself."""


def executor_template(owner: Owner, order: DriverOrder) -> Manifest:
    shape = order.spec.executor
    usual = hardened_pod(EXECUTOR_CONTAINER) | _spread(owner)
    main = pod_template.container(shape, order.spec) | {
        "name": EXECUTOR_CONTAINER,
        "resources": _resources(order.spec),
    }
    decided = {
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [main],
            "volumes": pod_template.volumes(shape, order.spec),
        },
    }
    return laid_over(pod_template.shaped(usual, shape.pod_template, decided), _local_copies(order))


def local_directory(spec: CheckpointedJobSpec) -> str:
    """Where executors see the volume for local copies of state."""
    return next(_mount_paths(spec), LOCAL_DIRECTORY)


def _mount_paths(spec: CheckpointedJobSpec) -> Iterator[str]:
    """Yield where the user has mounted it so that it can be written."""
    for mount in spec.executor.volume_mounts:
        if mount.name == spec.local_recovery_volume and not mount.read_only:
            yield mount.mount_path


def _local_copies(order: DriverOrder) -> Manifest:
    """Mount the volume for them, if the user has not."""
    if not order.keeps_local_copies or any(_mount_paths(order.spec)):
        return {}
    mount = {"name": order.spec.local_recovery_volume, "mountPath": LOCAL_DIRECTORY}
    return {"spec": {"containers": [{"name": EXECUTOR_CONTAINER, "volumeMounts": [mount]}]}}


def _resources(spec: CheckpointedJobSpec) -> Manifest:
    given = spec.executor.resources
    return {"requests": _beside_spark(given.requests), "limits": _beside_spark(given.limits)}


def _beside_spark(amounts: dict[str, Amount]) -> dict[str, str]:
    return {name: amount for name, amount in amounts.items() if name not in BY_SPARK}


def _spread(owner: Owner) -> Manifest:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(owner.name, Role.EXECUTOR)},
    }
    return {"topologySpreadConstraints": [constraint]}
