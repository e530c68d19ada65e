"""A sweep forgets what a watch has missed the end of, and keeps what came meanwhile."""

import asyncio

from reconciled_job import KEY, NAMESPACE, OperatedJob, a_snapshot
from weir_operator.cluster.api_paths import JOBS, PODS, Key
from weir_operator.cluster.resync import sweep


def swept(job):
    return asyncio.run(sweep(job.api, job.watched, (None,)))


def test_everything_new_is_stirred_at_the_start():
    """K3: after a restart every job is looked at."""
    job = OperatedJob()
    job.api.put(*a_snapshot("before"))

    stirred = swept(job)

    assert stirred.jobs == {KEY}
    assert stirred.snapshots == {Key(NAMESPACE, "before")}
    assert swept(job).jobs == frozenset()


def test_what_is_gone_is_forgotten_and_stirs():
    """K10: a missed deletion is noticed at last."""
    job = OperatedJob()
    job.look()
    path, snapshot = a_snapshot("before")
    job.api.put(path, snapshot)
    swept(job)
    for gone in (path, PODS.of(Key(NAMESPACE, "orders-driver-1")), JOBS.of(KEY)):
        del job.api.objects[gone]

    stirred = swept(job)

    assert stirred.jobs == {KEY}
    assert stirred.snapshots == {Key(NAMESPACE, "before")}
    assert (job.watched.jobs, job.watched.pods_of(KEY)) == ({}, ())


def test_a_pod_that_came_during_the_list_is_kept():
    """K3: absence from an old list proves nothing."""
    job = OperatedJob()
    job.look()
    (pod,) = job.watched.pods_of(KEY)
    job.watched.drop_pod(pod)
    kept = job.api.objects.pop(PODS.of(Key(NAMESPACE, "orders-driver-1")))

    def arrives(request):
        if request.place is PODS:
            job.watched.put_pod(pod)

    job.api.before = arrives
    swept(job)

    assert job.watched.pods_of(KEY) == (pod,)
    assert kept["metadata"]["uid"] == pod.uid


def test_large_resources_are_listed_a_few_at_a_time():
    """K9: a page is in memory at once, and one resource may have 1.5 MiB."""
    job = OperatedJob()

    swept(job)

    limits = {call.resource: call.query["limit"] for call in job.api.calls}
    assert (limits["checkpointedjobs"], limits["checkpointedjobsnapshots"]) == ("20", "20")
