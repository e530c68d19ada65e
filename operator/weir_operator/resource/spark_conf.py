"""Settings of Spark that a user may not set, each with what to do instead.

Slots, fencing and ownership depend on them: with another master the job would run elsewhere, with
another service account it would have other permissions, and with Spark's own limit on failures a
lost executor would end the driver. A key that ends with a dot covers all keys with that prefix.
Secrets are rejected too, because every reader of the resource would see them.
"""

from collections.abc import Iterator, Mapping

from weir.api.config_problem import Problem, shown

OPERATOR = "the operator sets it for each driver", "remove it"
SLOTS = "slots depend on it, and the runtime sets it", "remove it"

OWNED: Mapping[str, tuple[str, str]] = {
    "weir.": ("settings of the job are fields of the resource", "use the field of that name"),
    "spark.master": OPERATOR,
    "spark.weir.": SLOTS,
    "spark.submit.": OPERATOR,
    "spark.app.name": ("the job is called as its resource", "remove it"),
    "spark.driver.host": OPERATOR,
    "spark.driver.bindAddress": OPERATOR,
    "spark.driver.port": OPERATOR,
    "spark.driver.blockManager.port": OPERATOR,
    "spark.authenticate": OPERATOR,
    "spark.network.crypto.enabled": OPERATOR,
    "spark.executor.instances": ("it follows from the parallelism", "set parallelism"),
    "spark.executor.cores": ("it follows from the slots", "set slotsPerExecutor"),
    "spark.executor.maxNumFailures": SLOTS,
    "spark.executor.pyspark.memory": (
        "it limits address space, which breaks memory maps and RocksDB",
        "set executor.resources",
    ),
    "spark.task.cpus": SLOTS,
    "spark.task.maxFailures": SLOTS,
    "spark.locality.": SLOTS,
    "spark.kubernetes.allocation.recoveryMode.enabled": SLOTS,
    "spark.speculation": SLOTS,
    "spark.speculation.": SLOTS,
    "spark.dynamicAllocation.": ("slots hold their executors for good", "set parallelism"),
    "spark.excludeOnFailure.": SLOTS,
    "spark.scheduler.mode": SLOTS,
    "spark.python.daemon.module": SLOTS,
    "spark.python.worker.reuse": SLOTS,
    "spark.kubernetes.namespace": ("a job runs in the namespace of its resource", "remove it"),
    "spark.kubernetes.context": OPERATOR,
    "spark.kubernetes.authenticate.": ("a job acts as its service account", "set serviceAccount"),
    "spark.kubernetes.container.image": ("driver and executors run one image", "set image"),
    "spark.kubernetes.container.image.": ("driver and executors run one image", "set image"),
    "spark.kubernetes.driver.": ("the operator makes the driver's pod", "use the fields of driver"),
    "spark.kubernetes.executor.container.image": ("all run one image", "set image"),
    "spark.kubernetes.executor.podNamePrefix": OPERATOR,
    "spark.kubernetes.executor.podTemplateFile": ("it is made of executor", "use its fields"),
    "spark.kubernetes.executor.podTemplateContainerName": OPERATOR,
    "spark.kubernetes.executor.request.cores": ("it is made of executor", "use its resources"),
    "spark.kubernetes.executor.limit.cores": ("it is made of executor", "use its resources"),
}

SECRET_ENDINGS = (
    "secret.key",
    "secretKey",
    "session.token",
    "oauthToken",
    "assword",
    "spark.authenticate.secret",
)


def owned_keys() -> tuple[str, ...]:
    """The keys that are refused as they stand."""
    return tuple(key for key in OWNED if not key.endswith("."))


def owned_prefixes() -> tuple[str, ...]:
    """The beginnings of the keys that are refused."""
    return tuple(key for key in OWNED if key.endswith("."))


def rejected_settings(conf: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the settings that are not the user's to choose."""
    for key, value in conf.items():
        owner = next((name for name in OWNED if _covers(name, key)), None)
        if owner is not None:
            reason, remedy = OWNED[owner]
            yield Problem(f"sparkConf.{shown(key)}", shown(value), reason, remedy)
        elif key.endswith(SECRET_ENDINGS):
            yield Problem(
                f"sparkConf.{shown(key)}",
                "***",
                "it is a secret, and a resource is shown to all who may read it",
                "put it into a Secret and name that in storageSecrets or in env",
            )


def _covers(name: str, key: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name
