"""The driver's pod: one attempt at running the job, started again by nobody but the operator.

The probes ask the driver's own API, which is there once the program has submitted its job. How long
that may take is a deadline of the specification, which the operator keeps and explains; so the
kubelet waits twice as long and steps in only where no operator does. Of a driver that has once
answered, a long silence means that it hangs.
"""

import math

from weir_operator.manifests import pod_template
from weir_operator.manifests.driver_attempt import DriverOrder
from weir_operator.manifests.environment import driver_variables
from weir_operator.manifests.object_names import Role, config_name, pod_labels
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import (
    API_PORT,
    CONFIG_DIRECTORY,
    PORTS,
    PROGRAM_DIRECTORY,
)
from weir_operator.manifests.security_context import hardened_pod
from weir_operator.manifests.strategic_merge import laid_over
from weir_operator.resource.api_group import JOB
from weir_operator.resource.job_program import Program
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import DRIVER_CONTAINER

CONFIG_VOLUME = "weir-config"
PROGRAM_VOLUME = "weir-program"

STARTUP_PERIOD_S = 2
PATIENCE_WITH_SILENCE = 12
"""Times ten seconds."""


def driver_pod(owner: Owner, order: DriverOrder) -> Manifest:
    spec = order.spec
    probed = {"containers": [{"name": DRIVER_CONTAINER} | _probes(spec)]}
    usual = laid_over(hardened_pod(DRIVER_CONTAINER), probed)
    role = pod_labels(owner.name, Role.DRIVER, order.attempt) | {"spark-role": "driver"}
    decided = {
        "metadata": owner.metadata(JOB, order.name, role),
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": spec.service_account,
            "automountServiceAccountToken": True,
            "containers": [_container(owner, order)],
            "volumes": [*pod_template.volumes(spec.driver, spec), *_volumes(owner, order)],
        },
    }
    return pod_template.shaped(usual, spec.driver.pod_template, decided)


def _container(owner: Owner, order: DriverOrder) -> Manifest:
    spec = order.spec
    given = pod_template.container(spec.driver, spec)
    ours: Manifest = {
        "name": DRIVER_CONTAINER,
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy.value,
        "args": _command(spec.job),
        "env": driver_variables(owner, order),
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "resources": spec.driver.resources.model_dump(),
        "volumeMounts": _mounts(spec.job),
    }
    return laid_over(given, ours)


def _command(job: Program) -> list[str]:
    """To the image's entrypoint; an argument reaches the program as it was written."""
    main = job.file or job.url
    if job.config_map is not None:
        main = f"{PROGRAM_DIRECTORY}/{job.config_map.key}"
    assert main is not None, "a program has one main file"
    given = [pod_template.literal(argument) for argument in (main, *job.arguments)]
    return ["python3", "-m", "weir.cli", "drive", *given]


def _mounts(job: Program) -> list[Manifest]:
    mounts = {CONFIG_VOLUME: CONFIG_DIRECTORY}
    if job.config_map is not None:
        mounts[PROGRAM_VOLUME] = PROGRAM_DIRECTORY
    return [{"name": name, "mountPath": place, "readOnly": True} for name, place in mounts.items()]


def _volumes(owner: Owner, order: DriverOrder) -> list[Manifest]:
    maps = {CONFIG_VOLUME: config_name(owner.name, order.attempt)}
    if order.spec.job.config_map is not None:
        maps[PROGRAM_VOLUME] = order.spec.job.config_map.name
    return [{"name": volume, "configMap": {"name": name}} for volume, name in maps.items()]


def _probes(spec: CheckpointedJobSpec) -> Manifest:
    scheme = "HTTP" if spec.tls_secret is None and spec.tls_dir is None else "HTTPS"
    ask = {"httpGet": {"path": "/healthz", "port": API_PORT, "scheme": scheme}, "timeoutSeconds": 5}
    tries = math.ceil(2 * spec.start_deadlines.driver / (1_000 * STARTUP_PERIOD_S))
    return {
        "startupProbe": ask | {"periodSeconds": STARTUP_PERIOD_S, "failureThreshold": tries},
        "livenessProbe": ask | {"periodSeconds": 10, "failureThreshold": PATIENCE_WITH_SILENCE},
        "readinessProbe": ask | {"periodSeconds": 10},
    }
