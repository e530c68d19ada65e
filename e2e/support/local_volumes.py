"""Disks of the nodes, as executors mount them: plain directories, and claims on local volumes.

A test reads the copies there, and damages them as a bad disk would. Only their names are known
here: a checkpoint's number, a dash and a hash.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from cluster import Cluster, door
from wait_until import until

Json = dict[str, Any]

NODES = (1, 2)
SIZE = "1Gi"
TIMEOUT_S, POLL_S = 60.0, 0.5

FIND = "find \"$1\" -type f -name '[0-9]*-*' ! -name '*-complete'"
"""Marks of completed checkpoints lie beside the copies."""

DAMAGE = f"""{FIND} | while read -r copy; do
    new=${{copy%/*}}/.damaged
    cp -p "$copy" "$new" && printf damaged | dd of="$new" conv=notrunc status=none || exit 1
    mv "$new" "$copy" || exit 1
done"""
"""The length stays. A mapped file stays too, because a new file replaces it."""


@dataclass(frozen=True, slots=True)
class NodeDirectory:
    """A directory that every node has on its own disk."""

    path: str

    def copies(self, checkpoint: int) -> list[str]:
        """Those of a checkpoint, on whichever node."""
        found = [copy for number in NODES for copy in self._run(number, FIND).splitlines()]
        return [copy for copy in found if copy.rpartition("/")[2].startswith(f"{checkpoint}-")]

    def damage(self) -> None:
        for number in NODES:
            self._run(number, DAMAGE)

    def make(self) -> None:
        for number in NODES:
            self._run(number, 'mkdir -p "$1"')

    def remove(self) -> None:
        for number in NODES:
            self._run(number, 'rm -rf "$1"')

    def _run(self, number: int, script: str) -> str:
        return door("node", "exec", str(number), "sh", "-c", script, "sh", self.path)


@contextmanager
def node_directory(path: str) -> Iterator[NodeDirectory]:
    directory = NodeDirectory(path)
    directory.make()
    try:
        yield directory
    finally:
        directory.remove()


@contextmanager
def local_claim(cluster: Cluster, namespace: str, node: str, path: str) -> Iterator[str]:
    """The name of a claim that is bound to a directory of one node."""
    name = f"state-of-{namespace}"
    objects = yaml.safe_dump_all(_objects(name, node, path))
    made = [f"{kind}/{name}" for kind in ("persistentvolumeclaim", "persistentvolume")]
    try:
        cluster.kubectl("apply", "-f", "-", given=objects, namespace=namespace)
        until(
            "a bound claim",
            lambda: _is_bound(cluster, namespace, name),
            lambda: cluster.kubectl("describe", *made, namespace=namespace),
            TIMEOUT_S,
            POLL_S,
        )
        yield name
    finally:  # they go when the last pod that has them is gone
        options = ("--wait=false", "--ignore-not-found")
        cluster.kubectl("delete", *made, *options, namespace=namespace)
        cluster.kubectl("delete", "storageclass", name, *options)


def _is_bound(cluster: Cluster, namespace: str, name: str) -> bool:
    claim = cluster.look("persistentvolumeclaim", name, namespace=namespace)
    return bool(claim["status"].get("phase") == "Bound")


def _objects(name: str, node: str, path: str) -> Iterator[Json]:
    """As Kubernetes documents local volumes; the claim names its volume, so it is bound at once."""
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    modes = ["ReadWriteOnce"]
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": name,
            "capacity": {"storage": SIZE},
            "accessModes": modes,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": name,
            "volumeName": name,
            "accessModes": modes,
            "resources": {"requests": {"storage": SIZE}},
        },
    }
