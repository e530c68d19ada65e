"""Builds a pod from the user's fields, template, mounts and Secrets.

Three layers: the defaults, then the user's template, then what a field of the specification or the
operator sets. Secrets are referred to by name and never read: the kubelet passes their values to a
container (spec X4).
"""

from collections.abc import Iterable, Mapping

from weir_operator.manifests.owner_reference import Manifest
from weir_operator.manifests.pod_layout import TLS_DIRECTORY
from weir_operator.manifests.strategic_merge import Tree, strategic_merge
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import PodSettings

TLS_VOLUME = "weir-tls"

_POD = {"apiVersion": "v1", "kind": "Pod"}


def merged_pod(defaults: Tree, template: Mapping[str, object] | None, overrides: Tree) -> Manifest:
    """A pod of three layers, each merged over the one before; the first is a pod spec alone."""
    pod = {**_POD, "metadata": {}, "spec": defaults}
    return strategic_merge(strategic_merge(pod, template or {}), {**_POD, **overrides})


def container(pod: PodSettings, spec: CheckpointedJobSpec) -> Manifest:
    """The main container as the fields define it, without its resources."""
    return {
        "env": [variable.model_dump(exclude_none=True) for variable in pod.env],
        "envFrom": env_from_secrets(spec.storage_secrets),
        "volumeMounts": [
            *(mount.model_dump(exclude_defaults=True) for mount in pod.volume_mounts),
            *_tls_mounts(spec),
        ],
    }


def volumes(pod: PodSettings, spec: CheckpointedJobSpec) -> list[Manifest]:
    return [*(volume.model_dump() for volume in pod.volumes), *_tls(spec)]


def env_from_secrets(names: Iterable[str]) -> list[Manifest]:
    """Every key of these Secrets as a variable."""
    return [{"secretRef": {"name": name}} for name in names]


def escape_expansion(text: str) -> str:
    """Text in which Kubernetes expands no variable: it may come from any user."""
    return text.replace("$", "$$")


def _tls_mounts(spec: CheckpointedJobSpec) -> list[Manifest]:
    if spec.tls_secret is None:
        return []
    return [{"name": TLS_VOLUME, "mountPath": TLS_DIRECTORY, "readOnly": True}]


def _tls(spec: CheckpointedJobSpec) -> list[Manifest]:
    if spec.tls_secret is None:
        return []
    return [{"name": TLS_VOLUME, "secret": {"secretName": spec.tls_secret}}]
