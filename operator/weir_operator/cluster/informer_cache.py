"""What the watches have shown, kept so that a look at a job costs no call.

A watch may miss that something was deleted, so nothing here proves an absence: a plan that hangs on
one asks the API server, and a sweep now and then forgets what a full list does not show. An older
copy of an object never replaces a newer one.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from weir_operator.cluster.api_paths import Key
from weir_operator.cluster.object_cache import Kept
from weir_operator.cluster.observation import SeenNode, SeenPod
from weir_operator.cluster.resource_object import Opened, is_newer

MOST_BYTES_OF_JOBS = 64 * 1_024 * 1_024
MOST_BYTES_OF_SNAPSHOTS = 32 * 1_024 * 1_024
"""Room for ten thousand usual ones of each; beyond it they are read again when they are looked at,
so that no tenant can fill the operator's memory."""


@dataclass(slots=True)
class Watched:
    """Copies of what belongs to us, each under its key."""

    jobs: Kept = field(default_factory=lambda: Kept(MOST_BYTES_OF_JOBS))
    snapshots: Kept = field(default_factory=lambda: Kept(MOST_BYTES_OF_SNAPSHOTS))
    of_job: dict[Key, set[Key]] = field(default_factory=lambda: defaultdict(set))
    """The snapshots of each job."""
    pods: dict[Key, dict[str, SeenPod]] = field(default_factory=lambda: defaultdict(dict))
    """The pods of each job, by their uid."""
    nodes: dict[str, SeenNode] = field(default_factory=dict)

    def put_job(self, body: Opened) -> bool:
        """Keep a job; true if something changed that people can change."""
        return self.jobs.put(body)

    def drop_job(self, key: Key) -> None:
        self.jobs.drop(key)

    def put_snapshot(self, body: Opened) -> bool:
        """Keep a snapshot; true if something changed that people can change."""
        self.of_job[job_of(body)].add(body.key)
        return self.snapshots.put(body)

    def drop_snapshot(self, key: Key) -> None:
        self.snapshots.drop(key)
        for job in [job for job, keys in self.of_job.items() if key in keys]:
            self.of_job[job].discard(key)
            if not self.of_job[job]:
                del self.of_job[job]

    def put_pod(self, pod: SeenPod) -> None:
        before = self.pods[pod.job].get(pod.uid)
        if before is None or is_newer(pod.version, before.version):
            self.pods[pod.job][pod.uid] = pod

    def drop_pod(self, pod: SeenPod) -> None:
        self.pods[pod.job].pop(pod.uid, None)
        if not self.pods[pod.job]:
            del self.pods[pod.job]

    def pods_of(self, job: Key) -> tuple[SeenPod, ...]:
        return tuple(self.pods[job].values()) if job in self.pods else ()

    def jobs_on(self, node: str) -> frozenset[Key]:
        """The jobs that have a pod there."""
        return frozenset(
            job for job, pods in self.pods.items() if any(p.node == node for p in pods.values())
        )

    def replace_pods(self, job: Key, pods: Iterable[SeenPod]) -> None:
        """The API server itself has shown these and no others."""
        self.pods[job] = {pod.uid: pod for pod in pods}
        if not self.pods[job]:
            del self.pods[job]


def job_of(snapshot: Opened) -> Key:
    """The job that a snapshot is of."""
    return Key(snapshot.key.namespace, str(snapshot.spec.get("jobName", "")))
