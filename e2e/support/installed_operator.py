"""The operator as the chart installs it, for the whole cluster, and a namespace for its jobs.

It is installed as in the documentation, so that an existing one is upgraded to it: two would
interfere. Jobs are deleted before it, because it removes their finalizers. A test that installs it
otherwise, or not at all, does so in a block, after which it is restored.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import yaml

from applied_job import AppliedJob, Json, names
from chart import NAMESPACE, OURS, Edition, Helm
from cluster import Cluster
from wait_until import until

T = TypeVar("T")

BESIDE_THE_S3 = "nodeSelector.weir/storage=yes"
"""On the node that tests leave running."""
IMPATIENT = "nodeLostAfterSeconds=5"
"""Tests that lose a node need not wait longer; the cluster itself takes 15 s to notice."""
NAME = "weir-operator"
"""Of its Deployment and of its Lease."""
COUNTS = ("replicas", "updatedReplicas", "readyReplicas")
TIMEOUT_S, POLL_S = 120.0, 0.5


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
            if lease["metadata"]["name"] == NAME
        ]
        return str(held[0]) if held else ""

    def pods(self) -> list[str]:
        """Those that are not on their way out, whether they lead or wait."""
        pods = self.cluster.items("pods", namespace=NAMESPACE)
        return names(pod for pod in pods if "deletionTimestamp" not in pod["metadata"])

    def log(self) -> str:
        return self.cluster.kubectl("logs", f"deployment/{NAME}", namespace=NAMESPACE)

    def answer(self, job: AppliedJob, wish: str) -> Json:
        """The savepoint that is taken for an annotation with this value."""
        known = names(job.snapshots())
        job.annotate(f"weir.dev/savepoint={wish}")
        (taken,) = job.until(f"the savepoint {wish}", lambda: _completed(job, known))
        return taken

    def kill(self) -> None:
        """``kill -9``; Kubernetes starts the container again."""
        self.cluster.kill(self.pod(), NAMESPACE)

    def renew(self) -> None:
        """Another pod in its place: Kubernetes starts a container that died often ever later."""
        pods = self.pods()
        self.cluster.kubectl("delete", "pod", *pods, "--wait=false", namespace=NAMESPACE)
        self._until("a new operator leads", self._is_settled)

    def remove(self) -> None:
        """``kill -9``, and its pod is force-deleted, so that it does not restart under its name."""
        leader = self.pod()
        self.cluster.kill(leader, NAMESPACE)
        at_once = ("--force", "--grace-period=0", "--wait=false")
        self.cluster.kubectl("delete", "pod", leader, *at_once, namespace=NAMESPACE)

    def install(self, *values: str, edition: Edition = OURS) -> None:
        """Upgrade to what is given, or install it; one of its pods leads then, and all are ready.

        Without anything it is as all tests find it.
        """
        usual = (f"jobNamespaces={{{self.jobs}}}", BESIDE_THE_S3, IMPATIENT)
        Helm(self.cluster).install(NAMESPACE, *usual, *values, edition=edition)
        self._until("an operator leads", self._is_settled)

    @contextmanager
    def changed(self, *values: str, edition: Edition = OURS) -> Iterator[None]:
        """Installed otherwise, as long as the block lasts."""
        try:
            self.install(*values, edition=edition)
            yield
        finally:
            self.install()

    @contextmanager
    def uninstalled(self) -> Iterator[None]:
        """No operator runs within the block."""
        try:
            Helm(self.cluster).uninstall(NAMESPACE)
            self._until("no operator is left", self._is_gone)
            yield
        finally:
            self.install()

    def _is_settled(self) -> bool:
        """Whether every pod is as the release says and ready, and the Lease is one's of these."""
        deployment = self.cluster.look("deployment", NAME, namespace=NAMESPACE)
        wanted, status = deployment["spec"]["replicas"], deployment["status"]
        is_news = status.get("observedGeneration") != deployment["metadata"]["generation"]
        is_whole = {status.get(count, 0) for count in COUNTS} == {wanted}
        return not is_news and is_whole and self.pod() in self.pods()

    def _is_gone(self) -> bool:
        return not self.cluster.items("pods", namespace=NAMESPACE)

    def _until(self, what: str, look: Callable[[], T]) -> T:
        return until(what, look, self._explained, TIMEOUT_S, POLL_S)

    def _explained(self) -> str:
        what = ("deployments,pods,leases,events", "-o", "wide")
        return self.cluster.kubectl("get", *what, namespace=NAMESPACE)


@contextmanager
def installed_operator(cluster: Cluster, jobs: str) -> Iterator[InstalledOperator]:
    cluster.kubectl("create", "namespace", jobs)
    try:
        secret = cluster.look("secret", "s3")
        copied = {**secret, "metadata": {"name": "s3"}}
        cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump(copied), namespace=jobs)
        helm = Helm(cluster)
        helm.uninstall(NAMESPACE)  # its image may be older than what is on the nodes now
        operator = InstalledOperator(cluster, jobs)
        try:
            operator.install()
            yield operator
            _cleared(operator)
        finally:
            helm.uninstall(NAMESPACE)
    finally:
        cluster.kubectl("delete", "namespace", jobs, "--wait=false")


def _completed(job: AppliedJob, known: list[str]) -> list[Json]:
    """Snapshots that are complete, and not among those that were known."""
    complete = [s for s in job.snapshots() if s.get("status", {}).get("state") == "Completed"]
    return [found for found in complete if found["metadata"]["name"] not in known]


def _cleared(operator: InstalledOperator) -> None:
    """Delete all jobs that tests have left, while an operator can remove their finalizers."""
    kinds = "checkpointedjobs,checkpointedjobsnapshots"
    cluster, jobs = operator.cluster, operator.jobs
    cluster.kubectl("delete", kinds, "--all", "--wait=false", namespace=jobs)
    until(
        "no job is left",
        lambda: not cluster.items(kinds, namespace=jobs),
        operator.log,
        TIMEOUT_S,
        POLL_S,
    )
