"""A sweep forgets what a watch has missed the end of, and keeps what came meanwhile."""

import asyncio

from reconciled_job import KEY, NAMESPACE, ReconciledJob, a_snapshot
from weir_operator.cluster.api_paths import JOBS, PODS, NamespacedName
from weir_operator.cluster.resync import resync


def swept(job):
    return asyncio.run(resync(job.api, job.cache, (None,)))


def test_everything_new_is_stirred_at_the_start():
    """K3: after a restart every job is looked at."""
    job = ReconciledJob()
    job.api.put(*a_snapshot("before"))

    changed = swept(job)

    assert changed.jobs == {KEY}
    assert changed.snapshots == {NamespacedName(NAMESPACE, "before")}
    assert swept(job).jobs == frozenset()


def test_what_is_gone_is_forgotten_and_stirs():
    """K10: a missed deletion is noticed at last."""
    job = ReconciledJob()
    job.reconcile()
    path, snapshot = a_snapshot("before")
    job.api.put(path, snapshot)
    swept(job)
    for gone in (
        path,
        PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1")),
        JOBS.object_path(KEY),
    ):
        del job.api.objects[gone]

    changed = swept(job)

    assert changed.jobs == {KEY}
    assert changed.snapshots == {NamespacedName(NAMESPACE, "before")}
    assert (job.cache.jobs, job.cache.pods_of(KEY)) == ({}, ())


def test_a_pod_that_came_during_the_list_is_kept():
    """K3: absence from an old list proves nothing."""
    job = ReconciledJob()
    job.reconcile()
    (pod,) = job.cache.pods_of(KEY)
    job.cache.drop_pod(pod)
    kept = job.api.objects.pop(PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1")))

    def arrives(request):
        if request.api_resource is PODS:
            job.cache.put_pod(pod)

    job.api.before = arrives
    swept(job)

    assert job.cache.pods_of(KEY) == (pod,)
    assert kept["metadata"]["uid"] == pod.uid


def test_large_resources_are_listed_a_few_at_a_time():
    """K9: a page is in memory at once, and one resource may have 1.5 MiB."""
    job = ReconciledJob()

    swept(job)

    limits = {call.resource: call.query["limit"] for call in job.api.calls}
    assert (limits["checkpointedjobs"], limits["checkpointedjobsnapshots"]) == ("20", "20")
