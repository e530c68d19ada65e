"""The driver's pod: one attempt at running the job, restarted only by the operator.

The probes use the driver's API, which is available once the program has submitted its job. How long
that may take is a deadline of the specification, which the operator enforces and reports; so the
kubelet waits twice as long and acts only where no operator does. A driver that has answered once
and then stops answering hangs.
"""

import math

from weir_operator.manifests import pod_template
from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.environment import driver_variables
from weir_operator.manifests.object_names import Role, config_name, pod_labels
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import (
    API_PORT,
    CONFIG_DIRECTORY,
    PORTS,
    PROGRAM_DIRECTORY,
)
from weir_operator.manifests.security_context import restricted_pod
from weir_operator.manifests.strategic_merge import strategic_merge
from weir_operator.resource.api_group import JOB
from weir_operator.resource.job_program import JobProgram
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import DRIVER_CONTAINER

CONFIG_VOLUME = "weir-config"
PROGRAM_VOLUME = "weir-program"

STARTUP_PERIOD_S = 2
PATIENCE_WITH_SILENCE = 12
"""In periods of ten seconds."""


def driver_pod(owner: Owner, driver: DriverAttempt) -> Manifest:
    spec = driver.spec
    probed = {"containers": [{"name": DRIVER_CONTAINER} | _probes(spec)]}
    defaults = strategic_merge(restricted_pod(DRIVER_CONTAINER), probed)
    role = pod_labels(owner.name, Role.DRIVER, driver.attempt) | {"spark-role": "driver"}
    overrides = {
        "metadata": owner.metadata(JOB, driver.name, role),
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": spec.service_account,
            "automountServiceAccountToken": True,
            "containers": [_container(owner, driver)],
            "volumes": [*pod_template.volumes(spec.driver, spec), *_volumes(owner, driver)],
        },
    }
    return pod_template.merged_pod(defaults, spec.driver.pod_template, overrides)


def _container(owner: Owner, driver: DriverAttempt) -> Manifest:
    spec = driver.spec
    given = pod_template.container(spec.driver, spec)
    ours: Manifest = {
        "name": DRIVER_CONTAINER,
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy.value,
        "args": _command(spec.job),
        "env": driver_variables(owner, driver),
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "resources": spec.driver.resources.model_dump(),
        "volumeMounts": _mounts(spec.job),
    }
    return strategic_merge(given, ours)


def _command(job: JobProgram) -> list[str]:
    """The arguments for the image's entrypoint; the program receives each argument unchanged."""
    main = job.file or job.url
    if job.config_map is not None:
        main = f"{PROGRAM_DIRECTORY}/{job.config_map.key}"
    assert main is not None, "a program has one main file"
    given = [pod_template.escape_expansion(argument) for argument in (main, *job.arguments)]
    return ["python3", "-m", "weir.cli", "drive", *given]


def _mounts(job: JobProgram) -> list[Manifest]:
    mounts = {CONFIG_VOLUME: CONFIG_DIRECTORY}
    if job.config_map is not None:
        mounts[PROGRAM_VOLUME] = PROGRAM_DIRECTORY
    return [{"name": name, "mountPath": place, "readOnly": True} for name, place in mounts.items()]


def _volumes(owner: Owner, driver: DriverAttempt) -> list[Manifest]:
    maps = {CONFIG_VOLUME: config_name(owner.name, driver.attempt)}
    if driver.spec.job.config_map is not None:
        maps[PROGRAM_VOLUME] = driver.spec.job.config_map.name
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
