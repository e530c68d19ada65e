"""Turns what a user wrote about a pod into the pod: fields, template, mounts and Secrets.

Three layers: how our pods look unless somebody says otherwise, then the user's template, then what
was decided, by a field of the specification or by the operator. Secrets are named here and never
read: their values reach a container past us (spec X4).
"""

from collections.abc import Iterable, Mapping

from weir_operator.manifests.owner_reference import Manifest
from weir_operator.manifests.pod_layout import TLS_DIRECTORY
from weir_operator.manifests.strategic_merge import Tree, laid_over
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import PodShape

TLS_VOLUME = "weir-tls"

_POD = {"apiVersion": "v1", "kind": "Pod"}


def shaped(usual: Tree, template: Mapping[str, object] | None, decided: Tree) -> Manifest:
    """A pod of three layers, each over the one before; the first is its spec alone."""
    pod = {**_POD, "metadata": {}, "spec": usual}
    return laid_over(laid_over(pod, template or {}), {**_POD, **decided})


def container(shape: PodShape, spec: CheckpointedJobSpec) -> Manifest:
    """What the fields say about the main container, but for its resources."""
    return {
        "env": [variable.model_dump(exclude_none=True) for variable in shape.env],
        "envFrom": from_secrets(spec.storage_secrets),
        "volumeMounts": [
            *(mount.model_dump(exclude_defaults=True) for mount in shape.volume_mounts),
            *_tls_mounts(spec),
        ],
    }


def volumes(shape: PodShape, spec: CheckpointedJobSpec) -> list[Manifest]:
    return [*(volume.model_dump() for volume in shape.volumes), *_tls(spec)]


def from_secrets(names: Iterable[str]) -> list[Manifest]:
    """Every key of these Secrets as a variable."""
    return [{"secretRef": {"name": name}} for name in names]


def literal(text: str) -> str:
    """Text in which Kubernetes expands no variable: what it says may have come from anybody."""
    return text.replace("$", "$$")


def _tls_mounts(spec: CheckpointedJobSpec) -> list[Manifest]:
    if spec.tls_secret is None:
        return []
    return [{"name": TLS_VOLUME, "mountPath": TLS_DIRECTORY, "readOnly": True}]


def _tls(spec: CheckpointedJobSpec) -> list[Manifest]:
    if spec.tls_secret is None:
        return []
    return [{"name": TLS_VOLUME, "secret": {"secretName": spec.tls_secret}}]
