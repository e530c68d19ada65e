"""Generates ``spark-defaults.conf`` for the driver in client mode.

Three layers: the sizes that follow from the resources and the options for a fast Java start, both
of which a user may override; the user's settings; and above them what slots, ownership and fencing
depend on. Executors connect to the IP of the driver's pod and not to the Service: while a lost node
still holds an older driver, the Service may resolve to either, and an executor must never reach the
wrong one.

The file has the format of Java's properties. A line break in a value would start another setting
that was never validated, so all special characters are escaped.
"""

from weir.api.environment_variables import WEIR_HOST
from weir_operator.manifests import resource_sizes
from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.object_names import Role, executor_prefix, pod_labels
from weir_operator.manifests.owner_reference import Owner
from weir_operator.manifests.pod_layout import (
    BLOCKS_PORT,
    CONFIG_DIRECTORY,
    EXECUTOR_FILE,
    SPARK_ARCHIVE,
    SPARK_CLASSES,
    SPARK_PORT,
)
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import EXECUTOR_CONTAINER

_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_IN_VALUES = str.maketrans(_ESCAPED)
_IN_KEYS = str.maketrans(_ESCAPED | {sign: f"\\{sign}" for sign in " :=#!"})

SLOT_CORES = 2

AMONG_THEMSELVES = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
"""Driver and executors authenticate each other and encrypt their RPC: it carries the slots' secret
and the user's program. Rows do not use it."""


QUICK_STARTS = {
    "spark.driver.extraClassPath": SPARK_CLASSES,
    "spark.driver.defaultJavaOptions": f"-XX:SharedArchiveFile={SPARK_ARCHIVE}",
    "spark.executor.extraClassPath": SPARK_CLASSES,
    "spark.executor.defaultJavaOptions": f"-XX:SharedArchiveFile={SPARK_ARCHIVE}",
}
"""If the class path has another prefix, Java starts without the archive and logs that."""


def spark_defaults(owner: Owner, driver: DriverAttempt) -> str:
    """The text of the file."""
    lines = (
        f"{key.translate(_IN_KEYS)} = {value.translate(_IN_VALUES)}\n"
        for key, value in sorted(_settings(owner, driver).items())
    )
    return "".join(lines)


def _settings(owner: Owner, driver: DriverAttempt) -> dict[str, str]:
    spec = driver.spec
    return {
        **QUICK_STARTS,
        **_memory(spec),
        **spec.spark_conf,
        **_driver(owner, driver),
        **_executors(spec),
        **_executor_pods(owner, driver),
    }


def _memory(spec: CheckpointedJobSpec) -> dict[str, str]:
    """Split the pods' memory; a heap that the user sets leaves the rest to Python."""
    drivers = resource_sizes.memory_mib(spec.driver.resources)
    executors = resource_sizes.memory_mib(spec.executor.resources)
    chosen = resource_sizes.read_mib(spec.spark_conf.get("spark.executor.memory", ""))
    heap = chosen or resource_sizes.heap_mib(executors, resource_sizes.EXECUTORS_HEAP)
    return {
        "spark.driver.memory": f"{resource_sizes.heap_mib(drivers, resource_sizes.DRIVERS_HEAP)}m",
        "spark.executor.memory": f"{heap}m",
        "spark.executor.memoryOverhead": f"{resource_sizes.overhead_mib(executors, heap)}m",
    }


def _driver(owner: Owner, driver: DriverAttempt) -> dict[str, str]:
    return {
        "spark.app.name": owner.name,
        "spark.driver.host": f"${{env:{WEIR_HOST}}}",
        "spark.driver.bindAddress": f"${{env:{WEIR_HOST}}}",
        "spark.driver.port": str(SPARK_PORT),
        "spark.driver.blockManager.port": str(BLOCKS_PORT),
        "spark.kubernetes.namespace": owner.namespace,
        "spark.kubernetes.driver.pod.name": driver.name,
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        **AMONG_THEMSELVES,
    }


def _executors(spec: CheckpointedJobSpec) -> dict[str, str]:
    """Cores by which Spark counts its tasks: two for each slot, and one for any other task.

    So no executor runs more slots than configured, and Spark's own jobs have capacity beside them.
    The CPU request of a pod is separate, and set by the user.
    """
    requests, limits = spec.executor.resources.requests, spec.executor.resources.limits
    slots = spec.slots_per_executor
    limit = limits.get("cpu")
    return {
        "spark.executor.instances": str(resource_sizes.executors(spec)),
        "spark.executor.cores": str(slots * SLOT_CORES + 1),
        "spark.weir.slotCores": str(SLOT_CORES),
        "spark.kubernetes.executor.request.cores": requests.get("cpu") or limit or str(slots),
        **({} if limit is None else {"spark.kubernetes.executor.limit.cores": limit}),
    }


def _executor_pods(owner: Owner, driver: DriverAttempt) -> dict[str, str]:
    spec = driver.spec
    return {
        "spark.kubernetes.container.image": spec.image,
        "spark.kubernetes.container.image.pullPolicy": spec.image_pull_policy.value,
        "spark.kubernetes.authenticate.executor.serviceAccountName": spec.service_account,
        "spark.kubernetes.executor.podNamePrefix": executor_prefix(owner.name, driver.attempt),
        "spark.kubernetes.executor.podTemplateFile": f"{CONFIG_DIRECTORY}/{EXECUTOR_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        **{
            f"spark.kubernetes.executor.label.{label}": value
            for label, value in pod_labels(owner.name, Role.EXECUTOR, driver.attempt).items()
        },
    }
