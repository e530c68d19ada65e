"""The demo's job on the cluster, from plain manifests, in a separate namespace.

A test decides what happens to it; the bucket shows whether the output is exactly once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from bucket import Bucket
from cluster import ROOT, Cluster
from output_check import Verdict
from wait_until import until
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe

T = TypeVar("T")

MANIFESTS = ("driver-role.yaml", "driver-pod.yaml")
SCRIPT = ROOT / "demo" / "sums_by_key.py"
DRIVER = "running-sums-driver"
EXECUTORS = "weir/job=running-sums,spark-role=executor"
KEYS, SPLITS = 5_000, 2
"""As the demo's job has them."""

ROWS_PER_SECOND = 3_000

POLL_S = 0.5
"""Seldom enough that looking does not keep the cluster from working."""

TIMEOUT_S = 180.0
"""A lost node takes 20 s to be given up, and a new executor as long to come."""


@dataclass(frozen=True)
class DeployedJob:
    """One job, from its first pod to its last row."""

    cluster: Cluster
    bucket: Bucket
    namespace: str
    rows: int
    rows_per_second: int
    driver_node: str
    """The one that its driver must run on; empty: any."""

    @property
    def output(self) -> str:
        return f"s3://weir/{self.namespace}/output"

    # -- what a person does

    def start(self) -> None:
        """``kubectl apply`` everything; what is there already stays."""
        given = yaml.safe_dump_all(self._documents())
        self.cluster.kubectl("apply", "-f", "-", given=given, namespace=self.namespace)

    def _documents(self) -> Iterator[dict[str, Any]]:
        yield self._copied_secret()
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "running-sums-job"},
            "data": {SCRIPT.name: SCRIPT.read_text()},
        }
        for name in MANIFESTS:
            text = (ROOT / "e2e" / "manifests" / name).read_text()
            yield from map(self._chosen, yaml.safe_load_all(text))

    def _copied_secret(self) -> dict[str, Any]:
        """The Secret of the S3, in the job's namespace, where its pods can use it."""
        secret = self.cluster.look("secret", "s3")
        return {**secret, "metadata": {"name": "s3", "namespace": self.namespace}}

    def _chosen(self, document: dict[str, Any]) -> dict[str, Any]:
        """The manifest with this job's size and places in it."""
        if document["kind"] == "Pod":
            (container,) = document["spec"]["containers"]
            chosen = {
                "DEMO_CHECKPOINTS": f"s3://weir/{self.namespace}/checkpoints",
                "DEMO_OUTPUT": self.output,
                "DEMO_ROWS": str(self.rows),
                "DEMO_ROWS_PER_SECOND": str(self.rows_per_second),
            }
            if self.driver_node:
                document["spec"]["nodeSelector"] = {"kubernetes.io/hostname": self.driver_node}
            own = [e for e in container["env"] if e["name"] not in chosen]
            container["env"] = own + [{"name": n, "value": v} for n, v in chosen.items()]
        return document

    # -- what a person sees

    def executors(self) -> list[dict[str, Any]]:
        """Those that run, and are not on their way out."""
        pods = self.cluster.items("pods", "-l", EXECUTORS, namespace=self.namespace)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in alive if pod["status"]["phase"] == "Running"]

    def nodes(self) -> set[str]:
        """Where its executors run."""
        return {pod["spec"]["nodeName"] for pod in self.executors()}

    def has_ended(self) -> bool:
        pod = self.cluster.look("pod", DRIVER, namespace=self.namespace)
        phase = pod["status"]["phase"]
        assert phase != "Failed", f"the driver's pod failed: {pod['status']}"
        return bool(phase == "Succeeded")

    def until_committed(self) -> None:
        """Two more commits are in the output than now: the job makes progress."""
        goal = self.bucket.commits(self.output) + 2
        self.until(f"{goal} commits", lambda: self.bucket.commits(self.output) >= goal)

    def until_ended(self) -> None:
        self.until("the end of the job", self.has_ended)

    def until(self, what: str, look: Callable[[], T]) -> T:
        return until(what, look, self._pods, TIMEOUT_S, POLL_S)

    def _pods(self) -> str:
        return self.cluster.kubectl("get", "pods", "-o", "wide", namespace=self.namespace)

    def verdict(self) -> Verdict:
        source = GeneratorSource(Recipe(keys=KEYS), splits=SPLITS, total=self.rows)
        return self.bucket.verdict(self.output, source)

    # -- what happens to it

    def kill(self, pod: str) -> None:
        self.cluster.kill(pod, self.namespace)

    def delete_by_force(self, *pods: str) -> None:
        """Strike pods off the list, whatever has become of their processes."""
        force = ("--force", "--grace-period=0", "--ignore-not-found")
        self.cluster.kubectl("delete", "pod", *pods, *force, namespace=self.namespace)


@contextmanager
def deployed_job(
    cluster: Cluster, bucket: Bucket, namespace: str, *, rows: int, driver_node: str = ""
) -> Iterator[DeployedJob]:
    """A job that has been applied; its namespace goes with the block."""
    cluster.kubectl("create", "namespace", namespace)
    job = DeployedJob(cluster, bucket, namespace, rows, ROWS_PER_SECOND, driver_node)
    try:
        job.start()
        yield job
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")
