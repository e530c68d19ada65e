"""The user's settings for the pods of a driver and of its executors.

The most common ones have a field: resources, volumes, environment. For the rest there is a pod
template, merged by name: a container with the name of the main container is merged into it, another
one runs beside it. Kubernetes validates the template, and only what would break the job or bypass
the operator is rejected here.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, WithJsonSchema

from weir.api.config_problem import Problem, shown
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
    WEIR_PARALLELISM,
    WEIR_PORT,
    WEIR_SECRET,
    WEIR_TERMINATION_LOG,
    WEIR_TOKEN,
)
from weir.api.model import Model
from weir_operator.resource.kubernetes_quantity import KubernetesQuantity, quantity_value
from weir_operator.resource.list_map import ListMap
from weir_operator.resource.string_types import DnsLabel, StringPattern

DRIVER_CONTAINER = "driver"
EXECUTOR_CONTAINER = "executor"

OWN_VARIABLES = (
    "SPARK_CONF_DIR",
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
    WEIR_PARALLELISM,
    WEIR_PORT,
    WEIR_SECRET,
    WEIR_TERMINATION_LOG,
    WEIR_TOKEN,
)
"""Variables by which the operator identifies a driver and its restore point."""

OWN_PARTS = {
    "metadata": ("name", "namespace", "generateName", "ownerReferences"),
    "spec": ("restartPolicy", "serviceAccountName", "serviceAccount", "nodeName"),
}
OWN_CONTAINER_FIELDS = ("image", "imagePullPolicy", "command", "args")

FreeForm = Annotated[
    dict[str, object],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""An object of Kubernetes, which the API server validates when a pod is created from it."""


class Resources(Model):
    """What a container requests from its node, and its limits."""

    requests: Annotated[dict[str, KubernetesQuantity], Field(max_length=16)] = Field(
        default_factory=dict
    )
    """What the node must have free, by resource, as in cpu: 500m and memory: 2Gi."""

    limits: Annotated[dict[str, KubernetesQuantity], Field(max_length=16)] = Field(
        default_factory=dict
    )
    """What the container may use at most, by resource; above its limit of memory it is killed."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield requests that no limit can meet."""
        for name, request in self.requests.items():
            limit = self.limits.get(name)
            if limit is not None and quantity_value(request) > quantity_value(limit):
                yield Problem(
                    f"requests.{shown(name)}",
                    request,
                    f"the limit is {limit}, and a container never gets more than its limit",
                    "set the request to the limit or less",
                )


class Volume(Model):
    """A volume of the pod, with its source in the words of Kubernetes."""

    model_config = ConfigDict(extra="allow")

    name: DnsLabel
    """Name by which mounts refer to the volume. The other fields are the volume's source as in any
    pod, such as hostPath, persistentVolumeClaim or secret."""


class VolumeMount(Model):
    """A path in the container where a volume is mounted."""

    name: DnsLabel
    """Name of the volume."""

    mount_path: Annotated[
        str,
        StringPattern(
            pattern="^/[^:]*$",
            longest=1_024,
            because="a volume is mounted at an absolute path without a colon",
            remedy="write a path that begins with /",
        ),
    ]
    """Absolute path in the container."""

    sub_path: Annotated[str, Field(max_length=1_024)] | None = None
    """Path inside the volume that is mounted, if it is not the whole volume."""

    read_only: StrictBool = False
    """Mount it read-only."""


class EnvironmentVariable(Model):
    """An environment variable of the container."""

    name: Annotated[
        str,
        StringPattern(
            pattern="^[A-Za-z_][A-Za-z0-9_]*$",
            longest=256,
            because="this is no name of an environment variable",
            remedy="use letters, digits and underscores, with no digit first",
        ),
    ]
    """Name of the variable."""

    value: Annotated[str, Field(max_length=8_192)] | None = None
    """The value itself. Secrets belong into a Secret; name it in valueFrom."""

    value_from: FreeForm | None = None
    """Where the value comes from, as in any pod: secretKeyRef, configMapKeyRef or fieldRef."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield two values, and variables that are ours."""
        if self.value is not None and self.value_from is not None:
            yield Problem(
                "value", "***", "the variable has a valueFrom too", "remove value or valueFrom"
            )
        if self.name in OWN_VARIABLES:
            yield self.problem("name", "the operator sets this variable itself", "remove it")


class PodSettings(Model):
    """The settings for the pods of one role."""

    resources: Resources = Resources(
        requests={"cpu": "1", "memory": "2Gi"}, limits={"memory": "2Gi"}
    )
    """CPU and memory of the main container; if not given, one core and 2Gi. The slots of an
    executor share it. State lives in Python, so most of an executor's memory is left to Python."""

    volumes: Annotated[tuple[Volume, ...], ListMap("name", 32)] = ()
    """Volumes of the pod, as in any pod."""

    volume_mounts: Annotated[tuple[VolumeMount, ...], ListMap("mount_path", 32)] = ()
    """Where the main container mounts these volumes."""

    env: Annotated[tuple[EnvironmentVariable, ...], ListMap("name", 128)] = ()
    """Environment variables of the main container."""

    pod_template: FreeForm | None = None
    """A pod template (metadata and spec) that is merged into the pod, lists by name. The main
    container is called driver in the driver's pod and executor in an executor's; containers of
    other names run beside it."""

    def volume_names(self) -> frozenset[str]:
        """Every volume of the pod, those of the template too."""
        own = {volume.name for volume in self.volumes}
        return frozenset(own | {_name(volume) for volume in _list_in(self._spec(), "volumes")})

    def contradictions(self) -> Iterator[Problem]:
        """Yield mounts of nothing, and what a template must leave alone."""
        if self.pod_template is not None:
            yield from _misshapen(self.pod_template)
            yield from _slips_past_the_operator(self.pod_template)
        names = self.volume_names()
        for index, mount in enumerate(self.volume_mounts):
            if mount.name not in names:
                yield mount.problem(
                    "name", "the pod has no such volume", "add it to volumes, or remove the mount"
                ).under(f"volumeMounts.{index}")

    def _spec(self) -> Mapping[str, object]:
        return _mapping_in(self.pod_template or {}, "spec")


def _misshapen(template: Mapping[str, object]) -> Iterator[Problem]:
    """Yield lists that cannot be merged by name."""
    spec = template.get("spec", {})
    if not isinstance(spec, Mapping):
        yield Problem(
            "podTemplate.spec", shown(spec), "this is not a mapping", "write a pod's spec"
        )
        return
    for name in ("containers", "initContainers", "volumes"):
        elements = spec.get(name, [])
        if not isinstance(elements, list) or not all(_name(element) for element in elements):
            yield Problem(
                f"podTemplate.spec.{name}",
                shown(elements),
                "it is merged by name, and something here has none",
                "write a list in which every element has a name",
            )


def _slips_past_the_operator(template: Mapping[str, object]) -> Iterator[Problem]:
    for part, names in OWN_PARTS.items():
        for name in names:
            if name in _mapping_in(template, part):
                yield _ours(f"podTemplate.{part}.{name}", _mapping_in(template, part)[name])
    for index, container in enumerate(_list_in(_mapping_in(template, "spec"), "containers")):
        if _name(container) in (DRIVER_CONTAINER, EXECUTOR_CONTAINER):
            for path, value in _of_the_operator(container):
                yield _ours(f"podTemplate.spec.containers.{index}.{path}", value)


def _of_the_operator(container: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield fields of a main container that only the operator may set, by path."""
    for name in OWN_CONTAINER_FIELDS:
        if name in container:
            yield name, container[name]
    for index, variable in enumerate(_list_in(container, "env")):
        if _name(variable) in OWN_VARIABLES:
            yield f"env.{index}.name", _name(variable)


def _ours(path: str, value: object) -> Problem:
    return Problem(
        path, shown(value), "the operator sets this itself", "remove it from the template"
    )


def _mapping_in(tree: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}


def _list_in(tree: Mapping[str, object], name: str) -> tuple[Mapping[str, object], ...]:
    found = tree.get(name)
    return tuple(e for e in found if isinstance(e, Mapping)) if isinstance(found, list) else ()


def _name(element: object) -> str:
    name = element.get("name") if isinstance(element, Mapping) else None
    return name if isinstance(name, str) else ""
