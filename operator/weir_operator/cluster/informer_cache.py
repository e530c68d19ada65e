"""Holds what the watches delivered, so that a reconcile of a job needs no request.

A watch may miss a deletion, so this cache never proves that an object is absent: a plan that
depends on it reads from the API server, and a periodic resync drops what a full list does not show.
An older copy of an object never replaces a newer one.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.object_cache import ObjectCache
from weir_operator.cluster.observation import ObservedNode, ObservedPod
from weir_operator.cluster.resource_object import ResourceObject, is_newer

MOST_BYTES_OF_JOBS = 64 * 1_024 * 1_024
MOST_BYTES_OF_SNAPSHOTS = 32 * 1_024 * 1_024
"""Enough for ten thousand typical objects of each kind; beyond it they are read again for their
reconcile, so that no tenant can fill the operator's memory."""


@dataclass(slots=True)
class InformerCache:
    """Copies of the operator's objects, by key."""

    jobs: ObjectCache = field(default_factory=lambda: ObjectCache(MOST_BYTES_OF_JOBS))
    snapshots: ObjectCache = field(default_factory=lambda: ObjectCache(MOST_BYTES_OF_SNAPSHOTS))
    of_job: dict[NamespacedName, set[NamespacedName]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """The snapshots of each job."""
    pods: dict[NamespacedName, dict[str, ObservedPod]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The pods of each job, by their uid."""
    nodes: dict[str, ObservedNode] = field(default_factory=dict)

    def put_job(self, body: ResourceObject) -> bool:
        """Cache a job; true if something changed that users can change."""
        return self.jobs.put(body)

    def drop_job(self, key: NamespacedName) -> None:
        self.jobs.drop(key)

    def put_snapshot(self, body: ResourceObject) -> bool:
        """Cache a snapshot; true if something changed that users can change."""
        self.of_job[job_of(body)].add(body.key)
        return self.snapshots.put(body)

    def drop_snapshot(self, key: NamespacedName) -> None:
        self.snapshots.drop(key)
        for job in [job for job, keys in self.of_job.items() if key in keys]:
            self.of_job[job].discard(key)
            if not self.of_job[job]:
                del self.of_job[job]

    def put_pod(self, pod: ObservedPod) -> None:
        before = self.pods[pod.job].get(pod.uid)
        if before is None or is_newer(pod.version, before.version):
            self.pods[pod.job][pod.uid] = pod

    def drop_pod(self, pod: ObservedPod) -> None:
        self.pods[pod.job].pop(pod.uid, None)
        if not self.pods[pod.job]:
            del self.pods[pod.job]

    def pods_of(self, job: NamespacedName) -> tuple[ObservedPod, ...]:
        return tuple(self.pods[job].values()) if job in self.pods else ()

    def jobs_on(self, node: str) -> frozenset[NamespacedName]:
        """The jobs that have a pod on that node."""
        return frozenset(
            job for job, pods in self.pods.items() if any(p.node == node for p in pods.values())
        )

    def replace_pods(self, job: NamespacedName, pods: Iterable[ObservedPod]) -> None:
        """Replace the pods of a job by those that the API server returned."""
        self.pods[job] = {pod.uid: pod for pod in pods}
        if not self.pods[job]:
            del self.pods[job]


def job_of(snapshot: ResourceObject) -> NamespacedName:
    """The job of a snapshot."""
    return NamespacedName(snapshot.key.namespace, str(snapshot.spec.get("jobName", "")))
