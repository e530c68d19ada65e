"""The operator as the chart installs it, for the whole cluster, and a namespace for its jobs.

It is installed where the documentation says, so that one that was there before becomes this one:
two would do each other's work. Jobs go before it does, for it is the one who lets them go.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from chart import NAMESPACE, Helm
from cluster import Cluster
from waiting import until

BESIDE_THE_S3 = "nodeSelector.weir/storage=yes"
"""On the node that tests leave running."""
PATIENCE_S, GLANCE_S = 120.0, 0.5


@dataclass(frozen=True, slots=True)
class InstalledOperator:
    """One that leads, and where drivers have their account."""

    cluster: Cluster
    jobs: str
    """Namespace of the jobs."""

    def pod(self) -> str:
        """The one that leads."""
        held = [
            lease["spec"].get("holderIdentity")
            for lease in self.cluster.items("leases", namespace=NAMESPACE)
            if lease["metadata"]["name"] == "weir-operator"
        ]
        return str(held[0]) if held else ""

    def log(self) -> str:
        return self.cluster.kubectl("logs", "deployment/weir-operator", namespace=NAMESPACE)

    def kill(self) -> None:
        """``kill -9``; Kubernetes starts the container again."""
        self.cluster.kill(self.pod(), NAMESPACE)


@contextmanager
def installed_operator(cluster: Cluster, jobs: str) -> Iterator[InstalledOperator]:
    cluster.kubectl("create", "namespace", jobs)
    try:
        secret = cluster.look("secret", "s3")
        copied = {**secret, "metadata": {"name": "s3"}}
        cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump(copied), namespace=jobs)
        helm = Helm(cluster)
        helm.uninstall(NAMESPACE)  # its image may be older than what is on the nodes now
        with helm.installed(NAMESPACE, f"jobNamespaces={{{jobs}}}", BESIDE_THE_S3):
            operator = InstalledOperator(cluster, jobs)
            until("an operator leads", lambda: _leads(operator), operator.log, PATIENCE_S, GLANCE_S)
            yield operator
            _cleared(operator)
    finally:
        cluster.kubectl("delete", "namespace", jobs, "--wait=false")


def _leads(operator: InstalledOperator) -> bool:
    """Whether the Lease is held by a pod of this installation."""
    pods = operator.cluster.items("pods", namespace=NAMESPACE)
    alive = [p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]]
    return operator.pod() in alive


def _cleared(operator: InstalledOperator) -> None:
    """Whatever tests have left of their jobs goes, while somebody is there to let it go."""
    kinds = "checkpointedjobs,checkpointedjobsnapshots"
    cluster, jobs = operator.cluster, operator.jobs
    cluster.kubectl("delete", kinds, "--all", "--wait=false", namespace=jobs)
    until(
        "no job is left",
        lambda: not cluster.items(kinds, namespace=jobs),
        operator.log,
        PATIENCE_S,
        GLANCE_S,
    )
