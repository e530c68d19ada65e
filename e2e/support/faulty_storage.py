"""A storage with faults: the cluster's S3 behind a proxy pod.

A job that uses the Secret ``s3-troubled`` instead of ``s3`` reaches the same bucket with the same
keys through that pod. The verification reads the bucket without it.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

import faulty_proxy
from cluster import Cluster, CommandFailed
from faulty_proxy import DELAY_S, PORT, FaultMode
from wait_until import until
from weir_operator.manifests.security_context import restricted_pod
from weir_operator.manifests.strategic_merge import strategic_merge

__all__ = ["DELAY_S", "TroubledStorage", "troubled_storage"]

Json = dict[str, Any]

NAME = "s3-troubled"
"""Of the pod and of everything that it needs, and of the Secret for jobs."""
ENDPOINT = "AWS_ENDPOINT_URL"
IMAGE = "localhost/weir:dev"
KINDS = "pod,service,configmap,secret"
PROGRAM = Path(faulty_proxy.__file__)
PLACE = "/program"
COMMAND = ("python3", f"{PLACE}/{PROGRAM.name}")

TIMEOUT_S, POLL_S = 120.0, 0.5


@dataclass(frozen=True, slots=True)
class TroubledStorage:
    """A storage that works until a fault is injected."""

    cluster: Cluster
    namespace: str
    secret: str = NAME
    """What a job names in its ``storageSecrets``."""

    def slow(self) -> None:
        """Every request takes ``DELAY_S`` longer."""
        self._switch(FaultMode.SLOW)

    def refuse(self) -> None:
        """Every request is answered with 503 SlowDown."""
        self._switch(FaultMode.REFUSING)

    def vanish(self) -> None:
        """Connections break, and what is asked by new ones is never answered."""
        self._switch(FaultMode.GONE)

    def heal(self) -> None:
        self._switch(FaultMode.WELL)

    def turned_away(self) -> int:
        """How many requests were refused or left without an answer so far."""
        return int(self._control())

    def _switch(self, mode: FaultMode) -> None:
        """Returns once the mode is active."""
        until(f"the storage is {mode}", lambda: self._is(mode), self.described, TIMEOUT_S, POLL_S)

    def _is(self, mode: FaultMode) -> bool:
        try:
            return bool(self._control(mode))
        except CommandFailed:
            return False  # the API server could not carry the order; it may be given twice

    def _control(self, *mode: str) -> str:
        return self._kubectl("exec", NAME, "--", *COMMAND, "tell", *mode)

    def described(self) -> str:
        return self._kubectl("describe", "pod", NAME)

    def start(self) -> None:
        """Make it, and wait until it serves."""
        self._kubectl("apply", "-f", "-", given=yaml.safe_dump_all(self._objects()))
        until("a storage to be troubled", self._is_ready, self.described, TIMEOUT_S, POLL_S)
        self.heal()

    def _is_ready(self) -> bool:
        pod = self.cluster.look("pod", NAME, namespace=self.namespace)
        conditions = pod["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _objects(self) -> Iterator[Json]:
        secret = self.cluster.look("secret", "s3")
        s3 = urlsplit(base64.b64decode(secret["data"][ENDPOINT]).decode())
        here = f"{s3.scheme}://{NAME}.{self.namespace}.svc:{PORT}"
        moved = {**secret["data"], ENDPOINT: base64.b64encode(here.encode()).decode()}
        program = {PROGRAM.name: PROGRAM.read_text()}
        door = {"selector": {"app": NAME}, "ports": [{"name": "s3", "port": PORT}]}
        yield {**secret, "metadata": {"name": NAME}, "data": moved}
        yield _core("ConfigMap", data=program)
        yield _core("Service", spec=door)
        yield _core("Pod", spec=_pod(f"{s3.hostname}", f"{s3.port}"))

    def remove(self) -> None:
        """Also what of it was made before something went wrong."""
        self._kubectl("delete", KINDS, NAME, "--ignore-not-found")

    def _kubectl(self, *words: str, given: str = "") -> str:
        return self.cluster.kubectl(*words, given=given, namespace=self.namespace)


@contextmanager
def troubled_storage(cluster: Cluster, namespace: str) -> Iterator[TroubledStorage]:
    """One that serves; jobs that name its Secret must be gone when the block ends."""
    storage = TroubledStorage(cluster, namespace)
    try:
        storage.start()
        yield storage
    finally:
        storage.remove()


def _core(kind: str, **content: object) -> Json:
    metadata = {"name": NAME, "labels": {"app": NAME}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}


def _pod(host: str, port: str) -> Json:
    """Hardened as a job's pods are, and beside the S3, on the node that tests leave running."""
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": [*COMMAND, "serve", host, port],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "program", "mountPath": PLACE, "readOnly": True}],
    }
    ours = {
        "nodeSelector": {"weir/storage": "yes"},
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "program", "configMap": {"name": NAME}}],
    }
    return strategic_merge(restricted_pod(NAME), ours)
