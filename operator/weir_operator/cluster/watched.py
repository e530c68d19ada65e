"""What the watches have shown, kept so that a look at a job costs no call.

A watch may miss that something was deleted, so nothing here proves an absence: a plan that hangs on
one asks the API server, and a sweep now and then forgets what a full list does not show. An older
copy of an object never replaces a newer one.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from weir_operator.cluster.objects import Opened, Resource, is_newer
from weir_operator.cluster.places import Key
from weir_operator.cluster.sights import SeenNode, SeenPod


@dataclass(slots=True)
class Watched:
    """Copies of what belongs to us, each under its key."""

    jobs: dict[Key, Resource] = field(default_factory=dict)
    snapshots: dict[Key, Resource] = field(default_factory=dict)
    of_job: dict[Key, set[Key]] = field(default_factory=lambda: defaultdict(set))
    """The snapshots of each job."""
    pods: dict[Key, dict[str, SeenPod]] = field(default_factory=lambda: defaultdict(dict))
    """The pods of each job, by their uid."""
    nodes: dict[str, SeenNode] = field(default_factory=dict)

    def put_job(self, body: Opened) -> bool:
        """Keep a job; true if something changed that people can change."""
        return _put(self.jobs, body)

    def drop_job(self, key: Key) -> None:
        self.jobs.pop(key, None)

    def put_snapshot(self, body: Opened) -> bool:
        """Keep a snapshot; true if something changed that people can change."""
        self.of_job[job_of(body)].add(body.key)
        return _put(self.snapshots, body)

    def drop_snapshot(self, key: Key) -> None:
        self.snapshots.pop(key, None)
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


def _put(kept: dict[Key, Resource], body: Opened) -> bool:
    before = kept.get(body.key)
    known = None if before is None else before.opened()
    if known is not None and known.uid == body.uid and not is_newer(body.version, known.version):
        return False
    kept[body.key] = Resource.of(body.body)
    return known is None or known.wishes != body.wishes
